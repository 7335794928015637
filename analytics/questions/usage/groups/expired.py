"""Live commits that have expired: the coordinator's next sweep puts tombstones in their place."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.usage.keys.key_states import COMMITS
from schemas import CONSUMER_OFFSETS

EXPIRED: Final = ("due", "overdue", "blocked")
"""Words of the column `status` of `offset_expiration`."""
_KEY: Final = ("topic", "partition", "group_id", "record_type")


def with_expired(usage: pa.Table, expiration: pa.Table | None) -> pa.Table:
    """Return `topic_usage` with `expired_records`.

    Args:
        usage: The table without it.
        expiration: The table `offset_expiration` of the same instant; None where there is none.
    """
    if expiration is None:
        return usage.append_column("expired_records", pa.nulls(usage.num_rows, pa.int64()))
    over = expiration.filter(pc.is_in(expiration["status"], pa.array(EXPIRED)))
    counts = over.group_by(["coordinator_partition", "group_id"]).aggregate([([], "count_all")])
    counts = counts.rename_columns(["partition", "group_id", "expired_records"])
    rows = counts.num_rows
    counts = counts.append_column("topic", pa.repeat(CONSUMER_OFFSETS, rows)).append_column(
        "record_type", pa.repeat(COMMITS, rows)
    )
    joined = usage.append_column("order", pa.array(range(usage.num_rows), pa.int64())).join(
        counts, list(_KEY)
    )
    joined = joined.sort_by("order").drop_columns(["order"])
    place = joined.column_names.index("expired_records")
    none = pc.and_(pc.is_null(joined["expired_records"]), pc.equal(joined["record_type"], COMMITS))
    return joined.set_column(
        place, "expired_records", pc.if_else(none, 0, joined["expired_records"])
    )
