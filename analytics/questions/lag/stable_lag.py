"""The lag of groups that read committed records only: it ends at the last stable offset.

Kafka's tools count to the log's end whoever reads. A group with `isolation.level=read_committed` is
given nothing behind the first record of an open transaction; which groups are, nothing in a dump
says, so both numbers are told.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

STABLE: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("log_end_offset", pa.int64()),
        ("last_stable_offset", pa.int64()),
    ]
)
HELD_BACK: Final = (
    "a transaction is open from where it has committed on: who reads committed records only is "
    "given nothing"
)
_PLACE: Final = ["topic", "partition"]
_NONE: Final = pa.scalar(None, pa.int64())


def stable_lags(rows: pa.Table, stable: pa.Table) -> pa.Table:
    """Return where each row's log ends for readers of committed records, and their lag.

    Args:
        rows: `topic`, `partition`, `log_end_offset`, `lag`.
        stable: `STABLE`, of one copy a partition. It says nothing of a log that ends elsewhere: the
            end was then taken at another time, or from another copy.

    Returns:
        `last_stable_offset`, `lag_read_committed`: the lag without what lies behind that offset,
        below zero where the group has committed beyond it; null where that or the lag is not known.
    """
    numbered = rows.select([*_PLACE, "log_end_offset", "lag"])
    numbered = numbered.append_column("row", pa.array(range(len(rows)), pa.int64()))
    told = stable.rename_columns([*_PLACE, "stable_end", "last_stable_offset"])
    found = numbered.join(told, _PLACE).sort_by("row")
    is_same = pc.fill_null(pc.equal(found["stable_end"], found["log_end_offset"]), fill_value=False)
    offset = pc.if_else(is_same, found["last_stable_offset"], _NONE)
    behind = pc.subtract(found["log_end_offset"], offset)
    return pa.table(
        {
            "last_stable_offset": offset,
            "lag_read_committed": pc.subtract(found["lag"], behind),
        }
    )


def held_back(rows: pa.Table) -> pa.ChunkedArray:
    """Return why a group that reads committed records only has nothing to read, where that is so.

    Args:
        rows: `lag` and `lag_read_committed`.
    """
    is_held = pc.and_(pc.greater(rows["lag"], 0), pc.less_equal(rows["lag_read_committed"], 0))
    return pc.if_else(pc.fill_null(is_held, fill_value=False), HELD_BACK, None).cast(pa.string())
