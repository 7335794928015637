"""Our own verdict on a partition, where Burrow's words say too little.

Burrow sees commits and ends of logs. It is blind to who owns a partition, to what retention took,
to a topic that is another one now, and to an offset that nobody reads any more.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.lag.read_partitions import NEVER_COMMITTED, STALE, is_owned

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.evaluation_rules import LagRules

CANNOT_TELL: Final = "cannot_tell"
NO_LOG_START: Final = "where the log starts is not known: retention may have taken what is next"


def verdicts(rows: pa.Table, rules: LagRules, as_of: datetime) -> pa.ChunkedArray:
    """Return a verdict for each row; what each means is in `rules/lag.json`.

    Args:
        rows: `kind`, `owners`, `complete`, `is_other_log`, `lag`, `log_start_offset`,
            `lost_offsets`, `offsets_below_start`, `offsets_beyond_end`, `commits`,
            `last_commit_at`, `last_advance_at`.
        rules: After how long without progress a partition is stuck.
        as_of: The instant.
    """
    zero = pa.scalar(0, pa.int64())
    since = pa.scalar(as_of - timedelta(minutes=rules.stuck_minutes), rows["last_advance_at"].type)
    lag = rows["lag"]

    def there(name: str) -> pa.ChunkedArray:
        return pc.fill_null(pc.greater(rows[name], zero), fill_value=False)

    def lately(name: str) -> pa.ChunkedArray:
        return pc.fill_null(pc.greater_equal(rows[name], since), fill_value=False)

    is_stuck = pc.invert(lately("last_advance_at"))
    # One commit may have advanced from anywhere: only a second one shows that nothing moves.
    commits_again = pc.fill_null(pc.greater(rows["commits"], 1), fill_value=False)
    conditions = {
        CANNOT_TELL: pc.or_(
            pc.invert(pc.fill_null(rows["complete"], fill_value=True)), loss_is_unknown(rows)
        ),
        "other_topic": rows["is_other_log"],
        "lost_records": there("lost_offsets"),
        "below_log_start": there("offsets_below_start"),
        "beyond_end": there("offsets_beyond_end"),
        "stale": pc.equal(rows["kind"], STALE),
        "idle": pc.and_(pc.is_null(lag), is_stuck),
        "moving": pc.is_null(lag),
        "caught_up": pc.equal(lag, zero),
        "never_committed": pc.equal(rows["kind"], NEVER_COMMITTED),
        "unread": pc.invert(is_owned(rows)),
        "commits_without_progress": pc.and_(
            pc.and_(is_stuck, commits_again), lately("last_commit_at")
        ),
        "silent": pc.and_(is_stuck, pc.invert(lately("last_commit_at"))),
    }
    return pc.case_when(pc.make_struct(*conditions.values()), *conditions, "behind")


def loss_is_unknown(rows: pa.Table) -> pa.ChunkedArray:
    """Return whether retention may have taken what is next to read, unseen.

    Where a log starts is not known then. Nothing can be lost of what is read to its end; where the
    end is not known either, only what a group no longer reads would be judged worse.
    """
    is_behind = pc.greater(rows["lag"], pa.scalar(0, pa.int64()))
    is_stale = pc.and_(pc.is_null(rows["lag"]), pc.equal(rows["kind"], STALE))
    may_be_lost = pc.and_(pc.is_valid(rows["committed_offset"]), pc.or_kleene(is_behind, is_stale))
    return pc.fill_null(pc.and_(pc.is_null(rows["log_start_offset"]), may_be_lost), False)  # noqa: FBT003
