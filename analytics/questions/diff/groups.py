"""Groups that appeared, vanished or changed, and members who joined, left or restarted."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.diff.elections import with_elections
from analytics.questions.diff.paired import (
    APPEARED,
    CHANGED,
    VANISHED,
    chosen,
    differs,
    in_order,
    paired,
    presence,
    replaced,
    with_change,
)

COMPARED = (
    *("group_type", "protocol_type", "state", "epoch", "assignment_epoch", "protocol"),
    "member_count",
)
GROUP_COLUMNS = ("group_id", *COMPARED, "coordinator_partition", "record_offset")
"""Of the table `groups`, what is compared, and where it is from."""

MEMBER_KEY = ("group_id", "member_id")
MEMBER_COLUMNS = (*MEMBER_KEY, "group_instance_id", "client_id", "client_host")
"""Of the table `members`, what is compared or shown."""

JOINED, LEFT, RESTARTED = "joined", "left", "restarted"


def changed_groups(
    before: pa.Table, after: pa.Table, incomplete: pa.Table, lost: pa.Table
) -> pa.Table:
    """Return the groups that differ in type, state, epochs, assignor or number of members.

    Groups of which one state does not tell all may differ, and are among them.

    Args:
        before: `GROUP_COLUMNS` of the first state.
        after: Those of the second.
        incomplete: Groups of which one state does not tell all (`INCOMPLETE_GROUPS`).
        lost: Lines of the offsets topic that the second state lost (`LOST_LINES`).

    Returns:
        `group_id`, `change`, the other columns of both states, `reason`, and of what an election
        took `cause`, `copy`, `elected_at`, `elected_after`.
    """
    rows = paired(before.select(GROUP_COLUMNS), after.select(GROUP_COLUMNS), ["group_id"])
    doubts = incomplete.rename_columns(["group_id", "doubt"])
    rows = rows.join(doubts, ["group_id"], join_type="left outer")
    vanished, appeared = presence(rows)
    change = chosen(
        (vanished, VANISHED),
        (appeared, APPEARED),
        (reduce(pc.or_, (differs(rows, name) for name in COMPARED)), CHANGED),
    )
    return in_order(with_elections(with_change(rows, change, incomplete), lost), "group_id")


def changed_members(before: pa.Table, after: pa.Table, incomplete: pa.Table) -> pa.Table:
    """Return the members who joined, left, or came back under another id (static membership).

    Args:
        before: `MEMBER_COLUMNS` of the first state.
        after: Those of the second.
        incomplete: Groups of which one state does not tell all (`INCOMPLETE_GROUPS`).

    Returns:
        `group_id`, `member_id`, `previous_member_id` (of who restarted), `group_instance_id`,
        `client_id`, `client_host`, `change`, `reason`.
    """
    rows = paired(before.select(MEMBER_COLUMNS), after.select(MEMBER_COLUMNS), MEMBER_KEY)
    vanished, appeared = presence(rows)
    rows = with_change(rows, chosen((vanished, LEFT), (appeared, JOINED)), incomplete)
    for name in ("group_instance_id", "client_id", "client_host"):
        rows = replaced(rows, name, pc.coalesce(rows[f"to_{name}"], rows[f"from_{name}"]))
    instance = ["group_id", "group_instance_id"]
    gone = rows.filter(pc.and_(pc.invert(rows["in_to"]), pc.is_valid(rows["group_instance_id"])))
    gone = gone.select([*instance, "member_id"]).rename_columns([*instance, "previous_member_id"])
    new = rows.filter(rows["in_to"]).join(gone, instance, join_type="left outer")
    came_back = pc.is_valid(new["previous_member_id"])
    sure = pc.and_(came_back, pc.is_null(new["reason"]))
    new = replaced(new, "change", pc.if_else(sure, RESTARTED, new["change"]))
    again = new.filter(came_back).select([*instance, "previous_member_id"])
    again = again.rename_columns([*instance, "member_id"])
    old = rows.filter(pc.invert(rows["in_to"])).join(
        again, ["group_id", "member_id"], join_type="left anti"
    )
    old = old.append_column("previous_member_id", pa.nulls(old.num_rows, pa.string()))
    shown = [*MEMBER_COLUMNS, "previous_member_id", "change", "reason"]
    return in_order(pa.concat_tables([new.select(shown), old.select(shown)]), *MEMBER_KEY)
