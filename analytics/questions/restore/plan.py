"""What becomes of each committed offset of the past: it is given back, is there already, or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.dump.batches.stretches import SAME_CLOCK_MS
from analytics.questions.restore.data_logs import Logs, data_limits, with_limits
from analytics.questions.restore.refusals import (
    SHARE_GROUP,
    refusals_of,
    refusals_of_pending,
    with_reasons,
)

INCOMPLETE_GROUPS = pa.schema([("group_id", pa.string()), ("reason", pa.string())])
"""Groups of which one of the states does not tell all, and why."""
LEFT_OUT_TOPICS = pa.schema([("topic", pa.string()), ("left_out", pa.string())])
"""Topics of whose offsets one of the states has none because it was made without them, and why."""
KEY = ("group_id", "topic", "partition")
COMMITTED = (
    *(*KEY, "committed_offset", "committed_leader_epoch", "commit_timestamp", "via", "missing"),
)
"""Of the table `committed_offsets`, what is read."""

RESTORE: Final = "restore"
UNCHANGED: Final = "unchanged"
REFUSED: Final = "refused"

UNCLEAN = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("in_sync_until", pa.timestamp("us", tz="UTC")),
        ("unclean_at", pa.timestamp("us", tz="UTC")),
    ]
)
"""Unclean elections of data partitions, and until when the elected broker was in sync."""

PLAN = (
    *(*KEY, "verdict", "committed_offset", "present_offset", "difference", "via"),
    *("reason", "detail"),
)
"""The columns of a plan."""

_TRANSACTION_OF = "a transaction is pending on it "
_NO_FILE = "a share group: kafka-share-groups --reset-offsets takes no file"


@dataclass(frozen=True)
class State:
    """What one state knows.

    Attributes:
        committed: `COMMITTED` of the table `committed_offsets`.
        pending: `KEY`, `transactional_id` and `missing` of the table `pending_offsets`.
        topics: `topic`, `topic_id`, `partitions`, `has_several_ids` (nothing tells which is its
            id), `is_only_named` (nothing tells whether it is there), one row a topic that is there.
        incomplete_groups: `group_id`, `reason`: groups of which the state does not tell all.
        logs: The logs of data partitions, as far as they are known.
        knows_topics: A topic that is not in `topics` is not there.
        left_out_topics: Topics that the state was made without (`LEFT_OUT_TOPICS`).
    """

    committed: pa.Table
    pending: pa.Table
    topics: pa.Table
    incomplete_groups: pa.Table
    logs: Logs = field(default_factory=dict)
    knows_topics: bool = False
    left_out_topics: pa.Table = field(default_factory=LEFT_OUT_TOPICS.empty_table)


def restore_plan(
    then: State, now: State, unfit: pa.Table, unclean: pa.Table, *, include_live: bool = False
) -> pa.Table:
    """Judge every committed offset of the past.

    Args:
        then: The state whose offsets are wanted back.
        now: The state they are brought into.
        unfit: `group_id`, `unfit`: groups of now whose offsets no tool resets, and why.
        unclean: `UNCLEAN`: in any number of rows for a partition.
        include_live: Groups that have moved on since are rewound.

    Returns:
        `PLAN`, sorted by `KEY`: `verdict` is restore, unchanged (it is there already) or refused,
        then with `reason` (words with semicolons between) and `detail`; `difference` is how many
        records the group goes forward, negative for those it reads again; `via` is plain or
        transaction. Of what was pending alone then the offset is null.
    """
    rows = then.committed.select(COMMITTED)
    present = now.committed.select([*KEY, "committed_offset", "commit_timestamp", "missing"])
    names = [*KEY, "present_offset", "present_timestamp", "present_missing"]
    rows = rows.join(present.rename_columns(names), list(KEY), join_type="left outer")
    rows = rows.join(now.left_out_topics, ["topic"], join_type="left outer")
    rows = _with_groups(rows, then.incomplete_groups, now.incomplete_groups, unfit)
    rows = _without_untold_present(rows)
    rows = _with_topics(rows, then, now)
    rows = rows.join(_pending(then, now), list(KEY), join_type="left outer")
    rows = rows.join(_doubted(rows, unclean), list(KEY), join_type="left outer")
    epochs = pc.fill_null(rows["committed_leader_epoch"], -1)
    wanted = rows.select(["topic", "partition"]).append_column("epoch", pc.cast(epochs, pa.int32()))
    rows = with_limits(rows, data_limits(wanted, then.logs, now.logs))
    judged = _judged(rows, include_live=include_live)
    pending = _only_pending(then, now).cast(judged.schema)
    return in_order(pa.concat_tables([judged, pending]), *KEY)


def _doubted(rows: pa.Table, unclean: pa.Table) -> pa.Table:
    """Return `KEY` and `unclean_at`: the last election that may have changed the log of a commit.

    What was committed while the elected broker was in sync is on its disk. Commits have the time of
    a coordinator, elections that of the controller, whose clocks may differ a little.
    """
    commits = rows.select([*KEY, "committed_offset", "commit_timestamp"])
    pairs = commits.join(unclean, ["topic", "partition"], join_type="inner")
    at, until = pairs["commit_timestamp"], pairs["in_sync_until"]
    surely = pc.subtract(until, pa.scalar(SAME_CLOCK_MS * 1000, pa.duration("us")))
    is_before = pc.fill_null(pc.less_equal(at, pairs["unclean_at"]), fill_value=True)
    is_kept = pc.fill_null(pc.less_equal(at, surely), fill_value=False)
    # Before offset 0 there is nothing that could be other.
    is_kept = pc.or_(is_kept, pc.equal(pairs["committed_offset"], 0))
    doubted = pairs.filter(pc.and_(is_before, pc.invert(is_kept)))
    last = doubted.group_by(list(KEY)).aggregate([("unclean_at", "max")])
    return last.rename_columns([*KEY, "unclean_at"])


def share_plan(shares: pa.Table, present: pa.Table) -> pa.Table:
    """Return the refusals of share groups, whose start offsets no file gives back.

    Args:
        shares: `group_id`, `topic`, `partition`, `start_offset` of the past.
        present: The same of now.
    """
    old = shares.rename_columns([*KEY, "committed_offset"])
    rows = old.join(
        present.rename_columns([*KEY, "present_offset"]), list(KEY), join_type="left outer"
    )
    for name, text in (("verdict", REFUSED), ("reason", SHARE_GROUP), ("detail", _NO_FILE)):
        rows = rows.append_column(name, pa.chunked_array([pa.repeat(text, rows.num_rows)]))
    rows = rows.append_column("via", pa.nulls(rows.num_rows, pa.string()))
    return in_order(_with_difference(rows).select(PLAN), *KEY)


def _judged(rows: pa.Table, *, include_live: bool) -> pa.Table:
    same = pc.equal(rows["committed_offset"], rows["present_offset"])
    # What cannot be told is refused even where the numbers agree by chance.
    is_told = pc.and_(pc.is_null(rows["untold_then"]), pc.is_null(rows["untold_now"]))
    same = pc.fill_null(pc.and_(same, is_told), fill_value=False)
    there, rest = rows.filter(same), rows.filter(pc.invert(same))
    # Most offsets have not changed: reasons are sought for the others alone.
    rest = with_reasons(rest, refusals_of(rest, include_live=include_live))
    verdict = pc.if_else(pc.is_valid(rest["reason"]), REFUSED, RESTORE)
    rest = rest.append_column("verdict", verdict)
    for name, text in (("reason", None), ("detail", None), ("verdict", UNCHANGED)):
        there = there.append_column(name, pa.repeat(pa.scalar(text, pa.string()), there.num_rows))
    both = [_with_difference(each).select(PLAN) for each in (rest, there)]
    return pa.concat_tables(both)


def _with_difference(rows: pa.Table) -> pa.Table:
    return rows.append_column(
        "difference", pc.subtract(rows["committed_offset"], rows["present_offset"])
    )


def _with_groups(rows: pa.Table, then: pa.Table, now: pa.Table, unfit: pa.Table) -> pa.Table:
    rows = _joined(rows, unfit, "unfit")
    return _with_untold(rows, then, now, ("missing",), ("left_out", "present_missing"))


def _with_untold(
    rows: pa.Table, then: pa.Table, now: pa.Table, was: Sequence[str], present: Sequence[str]
) -> pa.Table:
    """Add `untold_then` and `untold_now`: why a row cannot be told, of its group or of itself.

    Args:
        rows: The rows.
        then: `group_id`, `reason`: groups of which the past does not tell all.
        now: The same of the present.
        was: Columns that say why the past does not tell of the row.
        present: The same of the present.
    """
    for table, name, own in ((then, "untold_then", was), (now, "untold_now", present)):
        rows = _joined(rows, table, name)
        rows = replaced(rows, name, pc.coalesce(rows[name], *(rows[each] for each in own)))
    return rows


def _without_untold_present(rows: pa.Table) -> pa.Table:
    """Null what a present that cannot be told was read as: it is no present offset."""
    for name in ("present_offset", "present_timestamp"):
        if name in rows.column_names:
            rows = replaced(
                rows, name, pc.if_else(pc.is_valid(rows["untold_now"]), None, rows[name])
            )
    return rows


def _joined(rows: pa.Table, table: pa.Table, name: str) -> pa.Table:
    named = table.rename_columns(["group_id", name])
    return rows.join(named, ["group_id"], join_type="left outer")


def _with_topics(rows: pa.Table, then: State, now: State) -> pa.Table:
    old = then.topics.select(["topic", "topic_id"]).rename_columns(["topic", "topic_id_then"])
    marks = ["has_several_ids", "is_only_named"]
    new = now.topics.select(["topic", "topic_id", "partitions", *marks]).rename_columns(
        ["topic", "topic_id_now", "partitions_now", *marks]
    )
    rows = rows.join(old, ["topic"], join_type="left outer").join(
        new, ["topic"], join_type="left outer"
    )
    known = pa.repeat(pa.scalar(now.knows_topics), rows.num_rows)
    return rows.append_column("knows_topics", pa.chunked_array([known]))


def _only_pending(then: State, now: State) -> pa.Table:
    """Return the refusals of offsets that were pending then, and of which nothing was committed."""
    rows = _open(then, "then").join(then.committed.select(KEY), list(KEY), join_type="left anti")
    rows = rows.rename_columns({"doubt": "doubt_then"})
    present = now.committed.select([*KEY, "committed_offset", "missing"])
    present = present.rename_columns([*KEY, "present_offset", "present_missing"])
    rows = rows.join(present, list(KEY), join_type="left outer")
    rows = rows.join(now.left_out_topics, ["topic"], join_type="left outer")
    still = _open(now, "at present").select([*KEY, "doubt"])
    rows = rows.join(still, list(KEY), join_type="left outer")
    rows = _with_untold(
        rows,
        then.incomplete_groups,
        now.incomplete_groups,
        ("doubt_then",),
        ("left_out", "present_missing", "doubt"),
    )
    rows = _without_untold_present(rows)
    rows = with_reasons(rows, refusals_of_pending(rows))
    rows = rows.append_column("committed_offset", pa.nulls(rows.num_rows, pa.int64()))
    for name, text in (("verdict", REFUSED), ("via", "transaction")):
        rows = rows.append_column(name, pa.chunked_array([pa.repeat(text, rows.num_rows)]))
    return _with_difference(rows).select(PLAN)


def _pending(then: State, now: State) -> pa.Table:
    """Return `KEY` and `pending`: which transaction is open on an offset, then or now."""
    both = pa.concat_tables([_open(then, "then"), _open(now, "at present")])
    return _one_a_key(both).select([*KEY, "pending"])


def _open(state: State, word: str) -> pa.Table:
    names = pc.fill_null(state.pending["transactional_id"], "id not known")
    words = pc.binary_join_element_wise(f"{_TRANSACTION_OF}{word} (", names, ")", "")
    doubts = state.pending["missing"]
    rows = state.pending.select(KEY).append_column("pending", words).append_column("doubt", doubts)
    return _one_a_key(rows)


def _one_a_key(rows: pa.Table) -> pa.Table:
    found = rows.group_by(list(KEY)).aggregate([("pending", "max"), ("doubt", "max")])
    return found.rename_columns([*KEY, "pending", "doubt"])


def replaced(rows: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    """Return rows with other values in one column, which is added where it is not there."""
    if name not in rows.column_names:
        return rows.append_column(name, column)
    return rows.set_column(rows.column_names.index(name), name, column)


def in_order(rows: pa.Table, *names: str) -> pa.Table:
    """Return rows sorted by columns: a join leaves them in any order."""
    return rows.sort_by([(name, "ascending") for name in names])
