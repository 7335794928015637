"""Our own verdict on a partition, where Burrow's words say too little.

Burrow sees commits and ends of logs. It is blind to who owns a partition, to what retention took,
to a topic that is another one now, and to an offset that nobody reads any more.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.lag.read_partitions import NEVER_COMMITTED, STALE

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.evaluation_rules import LagRules

CANNOT_TELL: Final = "cannot_tell"


def verdicts(rows: pa.Table, rules: LagRules, as_of: datetime) -> pa.ChunkedArray:
    """Return a verdict for each row; what each means is in `rules/lag.json`.

    Args:
        rows: `kind`, `member_id`, `complete`, `is_other_log`, `lag`, `lost_offsets`,
            `offsets_below_start`, `offsets_beyond_end`, `last_commit_at`, `last_advance_at`.
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

    is_owned = pc.is_valid(rows["member_id"])
    is_stuck = pc.invert(lately("last_advance_at"))
    conditions = {
        CANNOT_TELL: pc.invert(pc.fill_null(rows["complete"], fill_value=True)),
        "other_topic": rows["is_other_log"],
        "lost_records": there("lost_offsets"),
        "below_log_start": there("offsets_below_start"),
        "beyond_end": there("offsets_beyond_end"),
        "stale": pc.equal(rows["kind"], STALE),
        "idle": pc.and_(pc.is_null(lag), is_stuck),
        "moving": pc.is_null(lag),
        "caught_up": pc.equal(lag, zero),
        "never_committed": pc.equal(rows["kind"], NEVER_COMMITTED),
        "unread": pc.invert(is_owned),
        "commits_without_progress": pc.and_(is_stuck, lately("last_commit_at")),
        "silent": is_stuck,
    }
    return pc.case_when(pc.make_struct(*conditions.values()), *conditions, "behind")
