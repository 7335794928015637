"""How far behind groups are, what they have lost, and whether they move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.errors import InputNotRecognizedError
from analytics.gaps.compacted_history import groups_lacking_history
from analytics.gaps.group_selection import GroupSelection, select_groups
from analytics.gaps.workspace_filters import filters_of, has_topic_filter, left_out_of
from analytics.questions.answer import Answer
from analytics.questions.lag.capacity import CAPACITY, group_capacity
from analytics.questions.lag.evidence import lag_question
from analytics.questions.lag.growth import lag_growth
from analytics.questions.lag.summaries import BY, summed, with_capacity, with_readers
from analytics.questions.lag.table import HISTORY, Lag, evaluate_lag
from analytics.questions.lag.topic_readers import topic_readers, unread_topics
from analytics.questions.marks import marked
from analytics.questions.question import Question
from analytics.replayed.answered_instant import instant_of
from schemas.evaluation_rules import lag_rules

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.evaluation_rules import LagRules

PARTITION, GROUP, TOPIC = "partition", "group", "topic"
ROWS, SUMS = "rows", "sums"
_ONLY_SOME_TOPICS: Final = (
    "how many members groups could use: only some of their topics are looked at"
)


@dataclass(frozen=True)
class LagSettings:
    """What of lag is asked.

    Attributes:
        by: What lag is added up by: partition (not at all), group, topic or member.
        min_lag: Only partitions with at least this lag are added up, and shown.
        statuses: Likewise only partitions with one of these statuses or verdicts.
        end_offsets: A file that says where logs ended.
        since: The state of an earlier dump of the same brokers: answer with `lag_growth`, too.
        with_capacity: Answer with `group_capacity`, too.
    """

    by: str = PARTITION
    min_lag: int | None = None
    statuses: tuple[str, ...] = ()
    end_offsets: str | None = None
    since: ReplayedWorkspace | None = None
    with_capacity: bool = True


def lag(state: ReplayedWorkspace, asked: LagSettings) -> Answer:
    """Return how far behind groups are.

    Its figures are `rows`, the partitions that are shown, and `sums` where `by` asks for them.

    Raises:
        InputNotRecognizedError: `since` is of another cluster, or not of an earlier instant.
        InputUnreadableError: A file or a setting is not what it has to be.
        WorkspaceError: A table cannot be read.
    """
    rules = lag_rules(state.settings.given.thresholds("lag"))
    groups = select_groups(state)
    found, readers = _evaluated(state, groups, asked.end_offsets)
    tables = {
        "lag": found.rows,
        "status_history": found.statuses,
        "offset_moves": found.moves,
        "topic_readers": readers,
    }
    if asked.with_capacity:
        tables["group_capacity"] = _capacity(state, groups, found)
    doubts = _limitations(found.rows)
    if asked.since is not None:
        tables["lag_growth"], left_out = _growth(asked.since, state, found.rows)
        doubts += left_out
    if asked.by == GROUP and _are_some_topics(state):
        doubts.append(_ONLY_SOME_TOPICS)
    unread = _unread(state, groups, readers) if asked.by == TOPIC else None
    return Answer(
        tables,
        groups,
        tuple(doubts),
        summary={
            "verdicts": dict(rules.verdicts),
            **({} if unread is None else {"unread_topics": unread}),
        },
        figures=_figures(tables, asked, rules, unread or ()),
    )


def _evaluated(
    state: ReplayedWorkspace, groups: GroupSelection, end_offsets: str | None
) -> tuple[Lag, pa.Table]:
    """Return what was found of the topics that are wanted, and who reads them."""
    question = lag_question(state, groups, end_offsets)
    found = evaluate_lag(question, state.tables.batches("offset_history", HISTORY))
    shares = state.tables.read("share_partitions", ["group_id", "topic"])
    readers = topic_readers(found.rows, question.tables, shares)
    readers = marked(readers, question.tables.groups, ["group_id"])
    readers = marked(readers, found.rows, ["group_id", "topic"])
    rows, readers = (
        each.filter(pc.is_in(each["topic"], state.topics_wanted(each["topic"])))
        for each in (found.rows, readers)
    )
    return replace(found, rows=rows), readers


def _growth(
    earlier: ReplayedWorkspace, state: ReplayedWorkspace, rows: pa.Table
) -> tuple[pa.Table, list[str]]:
    """Return how lags grew since an earlier dump was made, and what that lacks.

    The second has a sentence for each filter that the earlier workspace was made with and that
    leaves out some of what is asked.
    """
    name = earlier.tables.workspace.location
    clusters = [
        {each["cluster_id"] for each in one.manifest["copies"] if each.get("cluster_id")}
        for one in (earlier, state)
    ]
    if all(clusters) and not clusters[0] & clusters[1]:
        raise InputNotRecognizedError(f"--since {name} is of another cluster")
    begun, ended = instant_of(earlier), instant_of(state)
    if begun >= ended:
        raise InputNotRecognizedError(
            f"--since {name} is of {begun:%Y-%m-%dT%H:%M:%SZ}, which is not before this instant"
        )
    question = lag_question(earlier, select_groups(earlier), None)
    before = evaluate_lag(question, earlier.tables.batches("offset_history", HISTORY)).rows
    # Of what it was made without it has no commit: that is not a lag from the log's start.
    before = before.filter(pc.is_in(before["topic"], earlier.topics_wanted(before["topic"])))
    left_out = left_out_of(earlier.manifest, earlier.tables.selection)
    growth = lag_growth(before, rows, begun, ended)
    return growth, [f"--since {name}: {each}" for each in left_out]


def _are_some_topics(state: ReplayedWorkspace) -> bool:
    return bool(state.tables.selection.topics) or has_topic_filter(state.manifest)


def _capacity(state: ReplayedWorkspace, groups: GroupSelection, found: Lag) -> pa.Table:
    """Return how many members groups could use; nothing where not all they read is looked at."""
    tables, columns = state.tables, ["group_id", "missing"]
    capacity = (
        CAPACITY.empty_table()
        if _are_some_topics(state)
        else group_capacity(found.rows, tables.read("members", ["group_id"]))
    )
    # Paces are of the commits that are there: earlier ones would give others.
    lacking = groups_lacking_history(state, groups.found).rename_columns(columns)
    made_of = pa.concat_tables(
        [tables.read("groups", columns), found.rows.select(columns), lacking]
    )
    return marked(capacity, made_of, ["group_id"])


def _unread(
    state: ReplayedWorkspace, groups: GroupSelection, readers: pa.Table
) -> list[str] | None:
    """Return topics that no group reads; None where not all groups are known."""
    selection = state.tables.selection
    is_limited = selection.groups or selection.exclude_groups or filters_of(state.manifest)
    if groups.cannot_tell or is_limited:
        return None
    topics = state.tables.read("topics")
    wanted = topics.filter(pc.is_in(topics["topic"], state.topics_wanted(topics["topic"])))
    return unread_topics(wanted, readers)


def _limitations(rows: pa.Table) -> list[str]:
    """Return what cannot be told of committed offsets, each reason once with how often."""
    lost = rows.filter(pc.equal(rows["verdict"], "cannot_tell"))
    counted = pc.value_counts(lost["reason"]).to_pylist()
    return sorted(f"{each['counts']} committed offsets: {each['values']}" for each in counted)


def _figures(
    tables: dict[str, pa.Table], asked: LagSettings, rules: LagRules, unread: Sequence[str]
) -> dict[str, pa.Table]:
    """Return the partitions that are shown, and their sums."""
    rows = _selected(tables["lag"], asked)
    if asked.by not in BY:
        return {ROWS: rows}
    sums = summed(rows, asked.by, rules)
    if asked.by == TOPIC:
        is_whole = rows.num_rows == tables["lag"].num_rows
        sums = with_readers(sums, tables["topic_readers"], unread, is_whole=is_whole)
    if asked.by == GROUP and "group_capacity" in tables:
        sums = with_capacity(sums, tables["group_capacity"])
    return {ROWS: rows, SUMS: sums}


def _selected(rows: pa.Table, asked: LagSettings) -> pa.Table:
    if asked.min_lag is not None:
        rows = rows.filter(pc.greater_equal(rows["lag"], pa.scalar(asked.min_lag, pa.int64())))
    if asked.statuses:
        words = pa.array(asked.statuses)
        rows = rows.filter(
            pc.or_(pc.is_in(rows["status"], words), pc.is_in(rows["verdict"], words))
        )
    return rows


LAG: Final = Question(
    name="lag",
    needs=(
        *("groups", "members", "assignments", "committed_offsets", "topics", "partition_leaders"),
        *("share_partitions", "offset_history", "configs"),
    ),
    tables=(
        *("lag", "status_history", "offset_moves", "topic_readers", "group_capacity"),
        "lag_growth",
    ),
    settings=LagSettings,
    answer=lag,
)
