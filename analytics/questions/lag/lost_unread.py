"""Whether what retention deleted had been read: by the highest offset that was committed before.

A committed offset below the log start says that a consumer would read there, not that nobody ever
did: one that went back had been further. So records count as lost only from the highest commit for
the same topic on, and only where no earlier commit can be missing.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

WHOSE = pa.schema([("group_id", pa.string()), ("why", pa.string())])
"""Groups whose earlier commits may be missing, and why."""

READ_BEFORE: Final = (
    "{} had been committed before: nothing unread was deleted; a reader goes on where "
    "auto.offset.reset says"
)
NOT_KNOWN: Final = "whether what was deleted had been read is not known: "
A_GAP: Final = "commits before this one are missing"
_NONE: Final = pa.scalar(None, pa.int64())
_ZERO: Final = pa.scalar(0, pa.int64())


def with_lost_unread(rows: pa.Table, lacking: pa.Table) -> pa.Table:
    """Add `lost_offsets`, records that were deleted and never read, and say where that is unsure.

    Args:
        rows: `group_id`, `committed_offset`, `log_start_offset`, `offsets_below_start`, `reason`;
            `highest_committed` for the same topic, null where none was; `has_gaps`, whether earlier
            commits of the partition are missing.
        lacking: Of `WHOSE`.
    """
    below = rows["offsets_below_start"]
    reached = pc.max_element_wise(rows["committed_offset"], rows["highest_committed"])
    unread = pc.subtract(rows["log_start_offset"], reached)
    unread = pc.max_element_wise(pc.if_else(pc.is_null(unread), below, unread), _ZERO)
    unread = pc.if_else(pc.is_valid(below), pc.min_element_wise(unread, below), _NONE)
    place = pc.index_in(rows["group_id"], lacking["group_id"].combine_chunks())
    why = lacking["why"].combine_chunks().take(place.combine_chunks())
    has_gaps = pc.fill_null(rows["has_gaps"], fill_value=False)
    why = pc.coalesce(why, pc.if_else(has_gaps, A_GAP, None))
    is_lost = pc.fill_null(pc.greater(unread, _ZERO), fill_value=False)
    is_unsure = pc.and_(is_lost, pc.is_valid(why))
    is_read = pc.and_not(pc.fill_null(pc.greater(below, _ZERO), fill_value=False), is_lost)
    before, after = READ_BEFORE.split("{}")
    reason = pc.case_when(
        pc.make_struct(is_unsure, is_read),
        pc.binary_join_element_wise(NOT_KNOWN, why, ""),
        pc.binary_join_element_wise(before, pc.cast(reached, pa.string()), after, ""),
        rows["reason"],
    )
    rows = rows.append_column("lost_offsets", pc.if_else(is_unsure, _NONE, unread))
    return rows.set_column(rows.column_names.index("reason"), "reason", reason)
