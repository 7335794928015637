"""One word on each share partition: what a person on call should look into first."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.share_rules import ShareRules

CANNOT_TELL: Final = "cannot_tell"
_UNMEASURED: Final = "unmeasured"
NOT_SEEN: Final = "whether a member owns it cannot be told: the dump does not show all of its group"
_NOT_SEEN: Final = "not seen"


def with_status(rows: pa.Table, rules: ShareRules, as_of: datetime) -> pa.Table:
    """Add `status`, and say in `reason` where it rests on who owns a partition and that is unknown.

    Args:
        rows: Of `statuses`, with `reason`.
        rules: After how long something counts.
        as_of: The instant.
    """
    status = statuses(rows, rules, as_of)
    is_untold = pc.and_(pc.equal(status, CANNOT_TELL), rows["complete"])
    is_untold = pc.and_(is_untold, pc.is_null(rows["members"]))
    reason = pc.if_else(is_untold, NOT_SEEN, rows["reason"])
    place = rows.column_names.index("reason")
    return rows.set_column(place, "reason", reason).append_column("status", status)


def statuses(rows: pa.Table, rules: ShareRules, as_of: datetime) -> pa.ChunkedArray:
    """Return a status for each row; what each means is in `rules/share.json`.

    Args:
        rows: The table `share_backlog` but for `status`; also `fault`, `has_state`,
            `done_behind` (offsets beyond the next one that are finally dealt with),
            `is_phase_unmeasured` and `is_stall_unmeasured` (a clock was set meanwhile).
        rules: After how long something counts.
        as_of: The instant.
    """
    zero = pa.scalar(0, pa.int64())

    def positive(name: str) -> pa.ChunkedArray:
        return pc.fill_null(pc.greater(rows[name], zero), fill_value=False)

    def is_older(name: str, minutes: float) -> pa.ChunkedArray:
        since = pa.scalar(as_of - timedelta(minutes=minutes), rows[name].type)
        return pc.fill_null(pc.less_equal(rows[name], since), fill_value=False)

    def is_phase(word: str) -> pa.ChunkedArray:
        return pc.equal(rows["phase"], word)

    left, ends = rows["records_left"], pc.is_valid(rows["log_end_offset"])
    # Where the log ends is not known, what is stored may still show that records are left.
    is_silent = pc.invert(pc.or_(ends, positive("in_flight")))
    is_stalled = is_older("stalled_since", rules.stalled_minutes)
    is_full = pc.greater_equal(rows["window_offsets"], rows["max_record_locks"])
    is_undated = rows["is_phase_unmeasured"]
    conditions = {
        "refused": pc.is_valid(rows["fault"]),
        CANNOT_TELL: pc.or_(pc.invert(rows["complete"]), is_undated),
        "orphan": is_phase("orphan"),
        "stuck_deleting": pc.and_(
            is_phase("deleting"), is_older("phase_since", rules.deleting_minutes)
        ),
        "deleting": is_phase("deleting"),
        "stuck_initializing": pc.and_(
            is_phase("initializing"), is_older("phase_since", rules.initializing_minutes)
        ),
        "initializing": is_phase("initializing"),
        "no_state": pc.invert(rows["has_state"]),
        "not_started": pc.is_null(rows["start_offset"]),
        "lost_records": positive("lost_offsets"),
        "beyond_end": positive("offsets_beyond_end"),
        "caught_up": pc.fill_null(pc.less_equal(left, zero), fill_value=False),
        "moving": pc.and_(is_silent, _moved_lately(rows, rules, as_of)),
        "idle": is_silent,
        "unread": pc.fill_null(pc.equal(rows["members"], zero), fill_value=False),
        _NOT_SEEN: pc.is_null(rows["members"]),
        "window_full": pc.fill_null(is_full, fill_value=False),
        _UNMEASURED: rows["is_stall_unmeasured"],
        "blocked": pc.and_(is_stalled, positive("done_behind")),
        "held_back": pc.and_(is_stalled, _is_held_back(rows)),
        "stalled": is_stalled,
    }
    words = [CANNOT_TELL if word in (_NOT_SEEN, _UNMEASURED) else word for word in conditions]
    return pc.case_when(pc.make_struct(*conditions.values()), *words, "behind")


def _is_held_back(rows: pa.Table) -> pa.ChunkedArray:
    """Return where an open transaction keeps the next records.

    What lies below the last stable offset it does not keep; where that is not known, the
    transaction is taken to.
    """
    is_behind = pc.greater_equal(rows["next_offset"], rows["last_stable_offset"])
    return pc.coalesce(is_behind, pc.is_valid(rows["transactional_id"]))


def _moved_lately(rows: pa.Table, rules: ShareRules, as_of: datetime) -> pa.ChunkedArray:
    moved = rows["start_moved_at"]
    since = pa.scalar(as_of - timedelta(minutes=rules.stalled_minutes), moved.type)
    is_exact = pc.equal(rows["start_moved_bound"], "exact")
    return pc.fill_null(pc.and_(pc.greater(moved, since), is_exact), fill_value=False)
