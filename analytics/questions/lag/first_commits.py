"""What a group never committed of a partition that it took on later than its topic.

A group that reads a topic already and begins a new partition of it at the end (KIP-1327) passes
over what was written before its members learned of it. No commit tells whether that was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

BELOW_FIRST: Final = (
    "of offsets {} to {} at most it never committed any, though it read the topic: not read, or "
    "not known"
)
_TOPIC: Final[Sequence[str]] = ("group_id", "topic")


def with_first_commits(rows: pa.Table, progress: pa.Table, lacking: pa.Table) -> pa.Table:
    """Add `offsets_below_first`, and say so where a group had committed to the topic before.

    Args:
        rows: `group_id`, `topic`, `log_start_offset`, `first_committed`, `first_epoch`,
            `has_gaps`, `is_other_log`, `reason`.
        progress: `group_id`, `topic`, `first_epoch` of all partitions that were ever committed,
            those included whose offsets were removed since.
        lacking: Of `lost_unread.WHOSE`: of these groups earlier commits may be missing.
    """
    may_lack = pc.or_(
        pc.is_in(rows["group_id"], lacking["group_id"].combine_chunks()),
        pc.or_(pc.fill_null(rows["has_gaps"], fill_value=True), rows["is_other_log"]),
    )
    below = pc.subtract(rows["first_committed"], rows["log_start_offset"])
    below = pc.max_element_wise(below, pa.scalar(0, pa.int64()), skip_nulls=False)
    below = pc.if_else(may_lack, pa.scalar(None, pa.int64()), below)
    begun = progress.group_by(list(_TOPIC)).aggregate([("first_epoch", "min")])
    keyed = rows.select(list(_TOPIC)).append_column(
        "row", pa.array(range(rows.num_rows), pa.int64())
    )
    first = keyed.join(begun, list(_TOPIC)).sort_by("row")["first_epoch_min"]
    is_later = pc.greater(rows["first_epoch"], first)
    is_passed_over = pc.fill_null(pc.and_(is_later, pc.greater(below, 0)), fill_value=False)
    before, between, after = BELOW_FIRST.split("{}")
    last = pc.cast(pc.subtract(rows["first_committed"], 1), pa.string())
    start = pc.cast(rows["log_start_offset"], pa.string())
    said = pc.binary_join_element_wise(before, start, between, last, after, "")
    reason = pc.if_else(is_passed_over, said, rows["reason"])
    rows = rows.append_column("offsets_below_first", below)
    return rows.set_column(rows.column_names.index("reason"), "reason", reason)
