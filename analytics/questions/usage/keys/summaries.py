"""Rows of `topic_usage` added up: by record type, group, partition or topic."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

BY: Final = {
    "record-type": ("topic", "record_type"),
    "group": ("group_id",),
    "partition": ("topic", "partition"),
    "topic": ("topic",),
}
"""What is added up by, and the columns that tell the sums apart."""

_SUMS: Final = (
    *("records", "bytes", "live_records", "live_bytes", "superseded_records", "superseded_bytes"),
    *("tombstoned_records", "tombstoned_bytes", "standing_tombstones", "standing_tombstone_bytes"),
    *(
        "expired_records",
        "aborted_records",
        "aborted_bytes",
        "open_records",
        "open_bytes",
        "unchanged_commits",
    ),
)
_DEAD: Final = ("superseded", "tombstoned", "aborted")


def summed(usage: pa.Table, by: str) -> pa.Table:
    """Add up rows of `topic_usage`, the most bytes first.

    Args:
        usage: The table `topic_usage`.
        by: A key of `BY`.

    Returns:
        The columns of `BY`, the sums, `dead_records` and `dead_bytes` (superseded, tombstoned or
        aborted), `share` of all bytes, `groups`. Sums are null where no row has a number.
    """
    keys = list(BY[by])
    found = usage.group_by(keys).aggregate(
        [*((name, "sum") for name in _SUMS), ("group_id", "count_distinct")]
    )
    names = {f"{name}_sum": name for name in _SUMS} | {"group_id_count_distinct": "groups"}
    found = found.rename_columns([names.get(name, name) for name in found.column_names])
    for unit in ("records", "bytes"):
        dead = found[f"superseded_{unit}"]
        for kind in _DEAD[1:]:
            dead = pc.add(dead, found[f"{kind}_{unit}"])
        found = found.append_column(f"dead_{unit}", dead)
    whole = pc.sum(found["bytes"]).as_py() or 0
    share = pc.divide(pc.cast(found["bytes"], pa.float64()), max(whole, 1))
    order = [("bytes", "descending"), ("records", "descending")]
    return found.append_column("share", share).sort_by(
        [*order, *((name, "ascending") for name in keys)]
    )
