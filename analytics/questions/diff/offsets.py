"""Committed offsets that moved, went back, vanished or appeared."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.diff.elections import with_elections
from analytics.questions.diff.paired import (
    differs,
    in_order,
    one_reason,
    paired,
    replaced,
    with_moves,
)

KEY = ("group_id", "topic", "partition")
_PLACE = ("coordinator_partition", "record_offset")
COLUMNS = (
    *(*KEY, "committed_offset", "committed_leader_epoch", "commit_timestamp"),
    *(*_PLACE, "missing"),
)
"""Of the table `committed_offsets`, what is compared, and what says how sure that is."""

EPOCH_CHANGED = "leader_epoch_changed"
"""The same offset, read under another leader epoch: perhaps another record."""


def changed_offsets(
    before: pa.Table,
    after: pa.Table,
    incomplete: pa.Table,
    born_again: pa.Table,
    lost: pa.Table,
    left_out: pa.Table,
) -> pa.Table:
    """Return the committed offsets that differ, or may differ.

    Args:
        before: `COLUMNS` of the first state.
        after: Those of the second.
        incomplete: Groups of which one state does not tell all (`INCOMPLETE_GROUPS`).
        born_again: As `topics_born_again` returns it.
        lost: Lines of the offsets topic that the second state lost (`LOST_LINES`).
        left_out: Topics that one state was made without (`LEFT_OUT_TOPICS`).

    Returns:
        `KEY`, `change`, the other columns of both states, `difference` (records, null where one
        offset is absent), `note` (the topic is another one of the same name), `reason`, and of
        what an election took `cause`, `copy`, `elected_at`, `elected_after`.
    """
    rows = paired(before.select(COLUMNS), after.select(COLUMNS), KEY)
    rows = rows.join(left_out, ["topic"], join_type="left outer")
    doubt = one_reason(rows["from_missing"], rows["to_missing"])
    rows = replaced(rows, "doubt", pc.coalesce(rows["left_out"], doubt)).drop_columns(["left_out"])
    epoch_changed = (differs(rows, "committed_leader_epoch"), EPOCH_CHANGED)
    rows = with_moves(rows, "committed_offset", epoch_changed, incomplete)
    rows = with_elections(_only_known(rows), lost)
    return in_order(rows.join(born_again, ["topic"], join_type="left outer"), *KEY)


def _only_known(rows: pa.Table) -> pa.Table:
    """Leave out an offset that a lost record may have changed: `reason` says what it may be."""
    for side in ("from", "to"):
        name = f"{side}_committed_offset"
        known = pc.is_null(rows[f"{side}_missing"])
        rows = replaced(rows, name, pc.if_else(known, rows[name], pa.scalar(None, pa.int64())))
    return rows


def topics_born_again(before: pa.Table, after: pa.Table) -> pa.Table:
    """Return the topics that have another id in the second state.

    Args:
        before: The table `topics` of the first state.
        after: That of the second.

    Returns:
        `topic`, `note`.
    """
    rows = paired(_living(before), _living(after), ["topic"])
    both = pc.and_(rows["in_from"], rows["in_to"])
    rows = rows.filter(pc.and_(both, differs(rows, "topic_id")))
    note = pc.binary_join_element_wise(
        "the topic was created again: ", rows["from_topic_id"], " is now ", rows["to_topic_id"], ""
    )
    return pa.table({"topic": rows["topic"], "note": note})


def _living(topics: pa.Table) -> pa.Table:
    """Return the ids of topics that are there; one name has one."""
    known = pc.and_(pc.is_valid(topics["topic"]), pc.is_valid(topics["topic_id"]))
    rows = topics.filter(pc.and_(known, pc.is_null(topics["deleted_at"])))
    return (
        rows.group_by("topic")
        .aggregate([("topic_id", "max")])
        .rename_columns({"topic_id_max": "topic_id"})
    )
