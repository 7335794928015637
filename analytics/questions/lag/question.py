"""How far behind groups are, what they have lost, and whether they move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from analytics.contracts import table_of_frame
from analytics.errors import InputNotRecognizedError
from analytics.gaps.compacted_history import groups_lacking_history
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import select_groups
from analytics.gaps.workspace_parts import filters_of, has_topic_filter, left_out_of
from analytics.questions.answer import Answer
from analytics.questions.lag.capacity import group_capacity
from analytics.questions.lag.data_logs import EXACT, data_logs
from analytics.questions.lag.movement import HISTORY, KEY
from analytics.questions.lag.pace import log_ends
from analytics.questions.lag.partitions import GroupTables, inputs_of
from analytics.questions.lag.retention import retention_frame, topic_retention
from analytics.questions.lag.sums import (
    BY,
    parts_of_sums,
    summed,
    topic_readers,
    unread_topics,
    with_capacity,
    with_readers,
)
from analytics.questions.lag.table import (
    CANNOT_TELL,
    Lag,
    LagQuestion,
    evaluate_lag,
    lag_together,
)
from analytics.questions.question import Question
from analytics.questions.quotients import divided
from analytics.replay.log.arrow_rows import arrow_rows
from analytics.replay.log.log_clocks import clocks_of_topic
from analytics.replay.log.marks import with_marks_of
from analytics.replayed.answered_instant import instant_of
from analytics.replayed.end_offsets import SAMPLES, end_offset_samples, end_offsets_at
from analytics.replayed.replayed_workspace import known_coverage
from analytics.replayed.topics import subtopology_inputs
from analytics.replayed.whole_groups import frame_of, group_reads
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS, table
from schemas.evaluation_rules import lag_rules

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.gaps.group_selection import GroupSelection
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

PARTITION, GROUP, TOPIC = "partition", "group", "topic"
ROWS, SUMS = "rows", "sums"
_ONLY_SOME_TOPICS: Final = (
    "how many members groups could use: only some of their topics are looked at"
)
_NEEDED: Final = {
    "groups": ("group_id", "group_type", "missing"),
    "members": (
        *("group_id", "member_id", "client_id", "client_host"),
        *("subscribed_topics", "subscribed_regex"),
    ),
    "assignments": (*KEY, "member_id", "kind", "role", "subtopology_id"),
    "committed_offsets": (
        *(*KEY, "committed_offset", "topic_id", "commit_timestamp", "complete", "missing"),
    ),
    "share_partitions": ("group_id", "topic"),
    "offset_history": HISTORY,
}
"""What is read of each group."""
_AT_ONCE: Final = 600_000
"""So many rows of whole groups are looked at together, about."""
_HOUR_S: Final = 3600.0
_TIME: Final = pl.Datetime("us", "UTC")


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


@dataclass(frozen=True)
class Found:
    """What was found of some whole groups, to be put together with what was of others.

    Attributes:
        lag: The table `lag` of the topics that are wanted, and how it came about.
        readers: The table `topic_readers`.
        capacity: The table `group_capacity`; None where it is not asked for.
        sums: Of what is shown (`parts_of_sums`); None where nothing is added up.
    """

    lag: Lag
    readers: pl.DataFrame
    capacity: pl.DataFrame | None
    sums: pl.DataFrame | None


def lag(state: ReplayedWorkspace, asked: LagSettings) -> Answer:
    """Return how far behind groups are.

    Its figures are `rows`, the partitions that are shown, and `sums` where `by` asks for them.

    Raises:
        InputNotRecognizedError: `since` is of another cluster, or not of an earlier instant.
        InputUnreadableError: A file or a setting is not what it has to be.
        WorkspaceError: A table cannot be read.
    """
    groups = select_groups(state)
    question = lag_question(state, groups, asked.end_offsets)
    parts = [
        found_of(state, question, asked, tables, rows)
        for tables, rows in _buckets(state, groups.rows)
    ]
    rules = question.rules
    found = lag_together([each.lag for each in parts], rules)
    rows = found.rows
    readers = pl.concat(each.readers for each in parts).sort("topic", "group_id")
    tables = {
        "lag": rows,
        "status_history": found.statuses,
        "offset_moves": found.moves,
        "topic_readers": readers,
    }
    if asked.with_capacity:
        tables["group_capacity"] = pl.concat(
            each.capacity for each in parts if each.capacity is not None
        ).sort("group_id")
    doubts = _limitations(rows)
    if asked.since is not None:
        tables["lag_growth"], left_out = _growth(asked.since, state, rows)
        doubts += left_out
    if asked.by == GROUP and _are_some_topics(state):
        doubts.append(_ONLY_SOME_TOPICS)
    unread = _unread(state, groups, readers) if asked.by == TOPIC else None
    sums = {}
    if asked.by in BY:
        added = summed([each.sums for each in parts if each.sums is not None], asked.by, rules)
        if asked.by == TOPIC:
            is_whole = shown(rows, asked).height == rows.height
            added = with_readers(added, readers, unread or (), is_whole=is_whole)
        if asked.by == GROUP and asked.with_capacity:
            added = with_capacity(added, tables["group_capacity"])
        sums[SUMS] = arrow_rows(added)
    is_all = asked.min_lag is None and not asked.statuses
    told = {name: table_of_frame(name, each) for name, each in tables.items()}
    return Answer(
        told,
        groups,
        tuple(doubts),
        summary={
            "verdicts": dict(rules.verdicts),
            **({} if unread is None else {"unread_topics": unread}),
        },
        figures={
            ROWS: told["lag"] if is_all else table_of_frame("lag", shown(rows, asked)),
            **sums,
        },
    )


def lag_question(
    state: ReplayedWorkspace, asked: GroupSelection, end_offsets: str | None
) -> LagQuestion:
    """Return what lag is evaluated from that is the same for all groups.

    Args:
        state: A replay.
        asked: The groups.
        end_offsets: A file that says where logs ended.

    Raises:
        GroupscopeError: A side file is not what it has to be.
    """
    tables, settings, as_of = state.tables, state.settings, instant_of(state)
    logs = data_logs(state)
    ends = frame_of(end_offsets_at(state, end_offsets))
    if not state.is_end:
        ends = _with_indexed(ends, frame_of(logs.ends_at(as_of)))
    samples = [end_offset_samples(state, end_offsets, as_of), logs.samples(as_of)]
    topics = frame_of(StoredTables(tables.workspace).read("topics"))
    configs = frame_of(tables.read("configs"))
    return LagQuestion(
        topics,
        ends,
        log_ends(pa.concat_tables(samples)),
        as_of,
        lag_rules(settings.from_file.thresholds("lag")),
        log_ends(logs.written() if state.is_end else SAMPLES.empty_table()),
        frame_of(logs.segments),
        retention_frame(topic_retention(topics, configs, settings)),
        state.is_end,
        frame_of(logs.stable),
        frame_of(groups_lacking_history(state, asked.rows)),
        clocks_of_topic(known_coverage(state).clocks, CONSUMER_OFFSETS),
    )


def _with_indexed(given: pl.DataFrame, indexed: pl.DataFrame) -> pl.DataFrame:
    """Return ends that were given, and where there are none those of time indexes."""
    others = indexed.join(given, ["topic", "partition"], "anti")
    return pl.concat([given.with_columns(log_end_bound=pl.lit(EXACT)), others], how="diagonal")


def _buckets(
    state: ReplayedWorkspace, groups: pa.Table
) -> Iterator[tuple[GroupTables, Mapping[str, pl.DataFrame]]]:
    """Yield the state of whole groups, and their rows of the tables that are read.

    Args:
        state: A replay.
        groups: Those that are asked about.
    """
    lost = GroupCompleteness(state).lost_offsets_of(groups)
    why = pl.DataFrame(list(lost.items()), {"group_id": pl.String, "why": pl.String}, orient="row")
    inputs = inputs_of(subtopology_inputs(state))
    for read in group_reads(state.tables, _NEEDED, _AT_ONCE):
        rows = read()
        there = rows["groups"].select("group_id")
        yield (
            GroupTables(
                rows["groups"],
                rows["members"],
                rows["assignments"],
                rows["committed_offsets"],
                inputs.join(there, "group_id", "semi"),
                why.join(there, "group_id", "semi"),
            ),
            rows,
        )


def found_of(
    state: ReplayedWorkspace,
    question: LagQuestion,
    asked: LagSettings,
    tables: GroupTables,
    rows: Mapping[str, pl.DataFrame],
) -> Found:
    """Return what is found of some whole groups.

    Args:
        state: Says which topics are wanted.
        question: What is the same for all groups.
        asked: What is asked.
        tables: State of the groups.
        rows: `offset_history` and `share_partitions` of theirs.
    """
    found = evaluate_lag(question, tables, rows["offset_history"])
    readers = topic_readers(found.rows, tables, rows["share_partitions"])
    readers = with_marks_of(readers, tables.groups, ["group_id"])
    readers = with_marks_of(readers, found.rows, ["group_id", "topic"])
    readers = readers.select(_columns("topic_readers"))
    wanted = _wanted(state, found.rows)
    told = Lag(_of_topics(found.rows, wanted), found.statuses, found.moves)
    return Found(
        told,
        _of_topics(readers, _wanted(state, readers)),
        _capacity(state, question, tables, told.rows) if asked.with_capacity else None,
        parts_of_sums(shown(told.rows, asked), asked.by, question.rules)
        if asked.by in BY
        else None,
    )


def _columns(name: str) -> list[str]:
    return [each.name for each in table(name).columns]


def _wanted(state: ReplayedWorkspace, rows: pl.DataFrame) -> Sequence[str]:
    topics = pa.chunked_array([rows["topic"].unique().to_arrow().cast(pa.string())])
    names: list[str] = state.topics_wanted(topics).to_pylist()
    return names


def _of_topics(rows: pl.DataFrame, wanted: Sequence[str]) -> pl.DataFrame:
    return rows.filter(pl.col("topic").is_in(wanted))


def _growth(
    earlier: ReplayedWorkspace, state: ReplayedWorkspace, rows: pl.DataFrame
) -> tuple[pl.DataFrame, list[str]]:
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
    groups = select_groups(earlier)
    question = lag_question(earlier, groups, None)
    before = pl.concat(
        evaluate_lag(question, tables, some["offset_history"]).rows
        for tables, some in _buckets(earlier, groups.rows)
    )
    # Of what it was made without it has no commit: that is not a lag from the log's start.
    before = _of_topics(before, _wanted(earlier, before))
    left_out = left_out_of(earlier.manifest, earlier.tables.selection)
    growth = lag_growth(before, rows, begun, ended)
    return growth, [f"--since {name}: {each}" for each in left_out]


def lag_growth(
    earlier: pl.DataFrame, now: pl.DataFrame, begun: datetime, ended: datetime
) -> pl.DataFrame:
    """Return how lags grew, the fastest first: the table `lag_growth`.

    Args:
        earlier: The table `lag` of an earlier instant.
        now: That of this one.
        begun: The earlier instant.
        ended: This one.

    Returns:
        A row for each partition of a group whose lag is known at both; a log that ends before where
        it ended then is another one, and is left out.
    """
    names = ("lag", "log_end_offset", "committed_offset")
    then = earlier.select(*KEY, *(pl.col(name).alias(f"earlier_{name}") for name in names))
    rows = now.select(*KEY, *names).join(then, KEY)
    grown = pl.col("lag") - pl.col("earlier_lag")
    hours = (ended - begun).total_seconds() / _HOUR_S
    rows = rows.with_columns(
        pl.lit(begun, _TIME).alias("from_timestamp"),
        pl.lit(ended, _TIME).alias("to_timestamp"),
        grown.alias("grown"),
        divided(grown.cast(pl.Float64), hours).alias("grown_per_hour"),
        (pl.col("log_end_offset") - pl.col("earlier_log_end_offset")).alias("appended"),
        (pl.col("committed_offset") - pl.col("earlier_committed_offset")).alias("committed"),
    )
    rows = rows.filter(pl.col("grown").is_not_null() & (pl.col("appended") >= 0))
    order = ["grown", *KEY]
    return rows.select(_columns("lag_growth")).sort(order, descending=[True, *[False] * len(KEY)])


def _are_some_topics(state: ReplayedWorkspace) -> bool:
    return bool(state.tables.selection.topics) or has_topic_filter(state.manifest)


def _capacity(
    state: ReplayedWorkspace, question: LagQuestion, tables: GroupTables, rows: pl.DataFrame
) -> pl.DataFrame:
    """Return how many members groups could use; nothing where not all they read is looked at."""
    capacity = group_capacity(rows, tables.members)
    if _are_some_topics(state):
        capacity = capacity.clear()
    # Paces are of the commits that are there: earlier ones would give others.
    columns = ["group_id", "missing"]
    lacking = question.lacking.select("group_id", pl.col("why").alias("missing"))
    made_of = pl.concat([tables.groups.select(columns), rows.select(columns), lacking])
    return with_marks_of(capacity, made_of, ["group_id"]).select(_columns("group_capacity"))


def _unread(
    state: ReplayedWorkspace, groups: GroupSelection, readers: pl.DataFrame
) -> list[str] | None:
    """Return topics that no group reads; None where not all groups are known."""
    selection = state.tables.selection
    is_limited = selection.groups or selection.exclude_groups or filters_of(state.manifest)
    if groups.cannot_tell or is_limited:
        return None
    topics = frame_of(state.tables.read("topics"))
    return unread_topics(_of_topics(topics, _wanted(state, topics)), readers)


def _limitations(rows: pl.DataFrame) -> list[str]:
    """Return what cannot be told of committed offsets, each reason once with how often."""
    lost = rows.filter(pl.col("verdict") == CANNOT_TELL)
    counted = lost.group_by("reason").agg(pl.len())
    return sorted(f"{count} committed offsets: {why}" for why, count in counted.iter_rows())


def shown(rows: pl.DataFrame, asked: LagSettings) -> pl.DataFrame:
    """Return the rows of the table `lag` that are asked for."""
    if asked.min_lag is not None:
        rows = rows.filter(pl.col("lag") >= asked.min_lag)
    if asked.statuses:
        rows = rows.filter(
            pl.col("status").is_in(asked.statuses) | pl.col("verdict").is_in(asked.statuses)
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
