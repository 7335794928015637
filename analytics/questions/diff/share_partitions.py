"""Share partitions whose start offset moved or whose delivery state changed."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.diff.elections import with_elections
from analytics.questions.diff.paired import (
    CHANGED,
    differs,
    in_order,
    one_reason,
    paired,
    replaced,
    with_cannot_tell,
    with_moves,
)
from schemas import SHARE_GROUP_STATE

KEY = ("group_id", "topic_id", "partition")
COMPARED = (
    *("phase", "state_epoch", "available_count", "acknowledged_count", "archiving_count"),
    *("archived_count", "max_delivery_count", "delivery_complete_count"),
)
COLUMNS = (
    *(*KEY, "topic", "start_offset", *COMPARED),
    *("coordinator_partition", "record_offset", "missing"),
)
"""Of the table `share_partitions`, what is compared or shown."""


def changed_share_partitions(
    before: pa.Table,
    after: pa.Table,
    incomplete: pa.Table,
    lost: pa.Table,
    lost_before: Collection[int] = (),
    lost_after: Collection[int] = (),
) -> pa.Table:
    """Return the share partitions that differ.

    Args:
        before: `COLUMNS` of the first state.
        after: Those of the second.
        incomplete: Groups of which one state does not tell all (`INCOMPLETE_GROUPS`).
        lost: Lines of the share state topic that the second state lost (`LOST_LINES`).
        lost_before: Partitions of the share state topic of which the first state knows nothing.
        lost_after: Those of which the second knows nothing.

    Returns:
        `KEY`, `topic`, `change`, the other columns of both states, `difference` (offsets),
        `reason`, and of what an election took `cause`, `copy`, `elected_at`, `elected_after`.
    """
    rows = paired(before.select(COLUMNS), after.select(COLUMNS), KEY)
    rows = replaced(rows, "doubt", one_reason(rows["from_missing"], rows["to_missing"]))
    changed = reduce(pc.or_, (differs(rows, name) for name in ("start_offset", *COMPARED)))
    rows = with_moves(rows, "start_offset", (changed, CHANGED), incomplete)
    reason = pc.coalesce(
        rows["reason"],
        _without_home(rows, "from", "to", lost_after),
        _without_home(rows, "to", "from", lost_before),
    )
    rows = with_cannot_tell(rows, reason)
    rows = replaced(rows, "topic", pc.coalesce(rows["to_topic"], rows["from_topic"]))
    return in_order(with_elections(rows, lost), *KEY)


def _without_home(rows: pa.Table, there: str, absent: str, lost: Collection[int]) -> pa.Array:
    """Return why a state that has no row of a share partition may have had one."""
    home = rows[f"{there}_coordinator_partition"]
    known = pc.is_in(home, pa.array(sorted(lost), home.type))
    words = pc.binary_join_element_wise(
        f"its state belongs to {SHARE_GROUP_STATE}-",
        pc.cast(home, pa.string()),
        ", of which one state knows nothing or not all",
        "",
    )
    alone = pc.and_(known, pc.invert(rows[f"in_{absent}"]))
    return pc.if_else(alone, words, pa.scalar(None, pa.string()))
