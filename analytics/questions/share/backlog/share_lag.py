"""Lag of share groups as Kafka counts it (KIP-1226)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def with_share_lag(shares: pa.Table, ends: pa.Table) -> pa.Table:
    """Add where logs start and end, and the lag that `kafka-share-groups --describe` prints.

    It is the log end - start offset - offsets beyond the start whose delivery is complete. It is
    null where the end is not known, before the first start offset, and where that count was not
    stored (releases before 4.2 do not).

    Args:
        shares: Rows of `share_partitions`: `topic`, `partition`, `start_offset`,
            `delivery_complete_count`, ...
        ends: `topic`, `partition`, `log_start_offset`, `log_end_offset` at the instant.

    Returns:
        The rows with `log_start_offset`, `log_end_offset` and `lag`.
    """
    rows = shares.join(ends, ["topic", "partition"])
    start = rows["start_offset"]
    known = pc.if_else(pc.less(start, 0), pa.scalar(None, pa.int64()), start)
    behind = pc.subtract(rows["log_end_offset"], known)
    complete = rows["delivery_complete_count"].cast(pa.int64())
    return rows.append_column("lag", pc.subtract(behind, complete))
