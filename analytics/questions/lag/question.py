"""How far behind groups are, what they have lost, and whether they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow as pa

from analytics.contracts import arrow_rows, in_key_order, polars_rows
from analytics.engine.part_runs import PartAnswer, PartAnswers, PartRunner
from analytics.errors import InputNotRecognizedError
from analytics.gaps.gap import Gap, gap
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import HOMES, groups_lacking_history, select_groups
from analytics.gaps.internal_topics import filters_of, has_topic_filter, left_out_of
from analytics.questions.lag.movement import HISTORY, KEY
from analytics.questions.lag.offsets import GroupTables, inputs_of, named_by_cluster
from analytics.questions.lag.pace import SAMPLES as SAMPLES_OF_ENDS
from analytics.questions.lag.pace import end_samples, log_ends
from analytics.questions.lag.retention import retention_frame, topic_retention
from analytics.questions.lag.sums import (
    BY,
    group_capacity,
    parts_of_sums,
    summed,
    sums_in_order,
    topic_readers,
    unread_topics,
    with_capacity,
    with_readers,
)
from analytics.questions.lag.table import (
    CANNOT_TELL,
    WORST_FIRST,
    LagQuestion,
    evaluate_lag,
    worst_first,
)
from analytics.questions.question import Answer, Question, check_choice
from analytics.questions.sums import divided
from analytics.replay.log.log_times import clocks_of_topic
from analytics.replay.log.losses import with_marks_of
from analytics.replayed.data_logs import EXACT, data_logs
from analytics.replayed.end_offsets import (
    SAMPLES,
    end_offset_samples,
    end_offsets_at,
    ends_statement,
    with_first_ends,
    without_settings,
)
from analytics.replayed.group_rows import PartedGroups
from analytics.replayed.replayed_workspace import instant_of, known_coverage
from analytics.replayed.topics import subtopology_inputs
from analytics.replayed.whole_groups import stored_parts, whole_group_parts
from analytics.tables.parted_table import Order, PartedTable, PartedTables
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS, table
from schemas.evaluation_rules import lag_rules
from schemas.manifest import cluster_ids

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.gaps.group_selection import GroupSelection
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

PARTITION, GROUP, TOPIC = "partition", "group", "topic"
ROWS, SUMS = "rows", "sums"
GROWTH: Final = "lag_growth"
_GROWING: Final = ("lag", "log_end_offset", "committed_offset")
_NEEDED: Final = {
    "groups": ("group_id", "group_type", "coordinator_partition", "missing"),
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
BY_PARTITION: Final = Order(KEY, partial(in_key_order, key=KEY))
"""What happened to a partition of a group stays in the order of the log."""
AT_ONCE: Final = 600_000
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

    def __post_init__(self) -> None:
        """Refuse what nothing is added up by.

        Raises:
            SettingRefusedError: `by` is no such word.
        """
        check_choice("by", self.by, (PARTITION, *BY))


def lag(state: ReplayedWorkspace, asked: LagSettings) -> Answer:
    """Return how far behind groups are.

    Its figures are `rows`, the partitions that are shown, and `sums` where `by` asks for them.

    Raises:
        InputNotRecognizedError: `since` is of another cluster, or not of an earlier instant.
        InputUnreadableError: A file or a setting is not what it has to be.
        WorkspaceError: A table cannot be read.
    """
    groups = select_groups(state, columns=HOMES)
    question = lag_question(state, asked.end_offsets)
    rules = question.rules
    # Another state is no matter of the parts of this one.
    made = _lag_tables(state, question, replace(asked, since=None))
    tables, together = dict(made.tables), _together(made.sums)
    samples = end_samples(question.samples, state, question.as_of_ms)
    wanted = _of_topics(samples, _wanted(state, samples))
    tables[SAMPLES_OF_ENDS] = PartedTable.held(arrow_rows(wanted))
    sums = tables.pop(SUMS, None)
    doubts = _doubts(together.reasons)
    if asked.since is not None:
        tables[GROWTH], left_out = _growth(asked.since, state, tables["lag"])
        doubts += left_out
    if asked.by == GROUP and _are_some_topics(state):
        doubts.append(gap("capacity_of_some_topics"))
    unread = _unread(state, groups, together.topics_read) if asked.by == TOPIC else None
    if asked.by == TOPIC:
        added = summed([each.sums for each in made.sums if each.sums is not None], TOPIC, rules)
        readers = polars_rows(tables["topic_readers"].whole())
        added = with_readers(added, readers, unread or (), is_whole=together.is_whole)
        sums = PartedTable.held(arrow_rows(added))
    return Answer(
        PartedTables(tables),
        groups,
        tuple(doubts),
        statements=ends_statement(state, asked.end_offsets),
        summary={
            "verdicts": dict(rules.verdicts),
            **({} if unread is None else {"unread_topics": unread}),
        },
        figures={
            ROWS: tables["lag"] if is_all(asked) else tables["lag"].where(_is_shown(asked)),
            **({} if sums is None else {SUMS: sums}),
        },
    )


class _PartSums(NamedTuple):
    """What parts are asked for together.

    Attributes:
        reasons: `reason`, why it cannot be told, and of how many (`len`) committed offsets.
        topics_read: `topic` of `topic_readers`, each once.
        is_whole: All rows are shown.
        sums: Of `parts_of_sums` by topic; None where lag is not added up by that.
    """

    reasons: pl.DataFrame
    topics_read: pl.DataFrame
    is_whole: bool
    sums: pl.DataFrame | None = None


def _together(parts: Sequence[_PartSums]) -> _PartSums:
    return _PartSums(
        pl.concat(each.reasons for each in parts),
        pl.concat(each.topics_read for each in parts).unique(),
        all(each.is_whole for each in parts),
    )


def _lag_tables(
    state: ReplayedWorkspace, question: LagQuestion, settings: LagSettings
) -> PartAnswers:
    """Return the tables of all groups that are asked about, and what they come to together."""
    inputs = inputs_of(subtopology_inputs(state))
    work = partial(lag_of_part, state, question, settings, inputs)
    rules = question.rules
    orders = {
        "lag": Order(WORST_FIRST, partial(worst_first, rules=rules)),
        "status_history": BY_PARTITION,
        "offset_moves": BY_PARTITION,
        SUMS: Order(
            ("verdict", "lag", *BY.get(settings.by, ())),
            partial(sums_in_order, by=settings.by, rules=rules),
        ),
    }
    runner = state.runner
    with stored_parts(state.tables, _NEEDED, AT_ONCE, runner.folder) as parts:
        return runner.run(work, parts, orders)


def lag_question(state: ReplayedWorkspace, end_offsets: str | None) -> LagQuestion:
    """Return what lag is evaluated from that is the same for all groups.

    Args:
        state: A replay.
        end_offsets: A file that says where logs ended.

    Raises:
        GroupscopeError: A side file is not what it has to be.
    """
    tables, settings, as_of = state.tables, state.settings, instant_of(state)
    logs = data_logs(state)
    ends = with_first_ends(polars_rows(end_offsets_at(state, end_offsets)), state)
    if not state.is_end:
        ends = _with_indexed(ends, polars_rows(logs.ends_at(as_of)))
    samples = [end_offset_samples(state, end_offsets, as_of), logs.samples(as_of)]
    topics = polars_rows(StoredTables(tables.workspace).read("topics"))
    topics = named_by_cluster(topics) if state.is_end else topics
    configs = polars_rows(tables.read("configs"))
    return LagQuestion(
        topics,
        ends,
        log_ends(pa.concat_tables(samples)),
        as_of,
        lag_rules(settings.from_file.thresholds("lag")),
        log_ends(logs.written() if state.is_end else SAMPLES.empty_table()),
        polars_rows(logs.segments),
        retention_frame(topic_retention(topics, configs, settings, without_settings(state))),
        state.is_end,
        polars_rows(logs.stable),
        clocks=clocks_of_topic(known_coverage(state).clocks, CONSUMER_OFFSETS),
    )


def _with_indexed(given: pl.DataFrame, indexed: pl.DataFrame) -> pl.DataFrame:
    """Return ends that were given, and where there are none those of time indexes."""
    others = indexed.join(given, ["topic", "partition"], "anti")
    return pl.concat([given.with_columns(log_end_bound=pl.lit(EXACT)), others], how="diagonal")


def lag_of_part(
    state: ReplayedWorkspace,
    question: LagQuestion,
    settings: LagSettings,
    inputs: pl.DataFrame,
    rows: Mapping[str, pl.DataFrame],
) -> PartAnswer:
    """Return the tables of some whole groups.

    Args:
        state: Says which topics are wanted.
        question: What is the same for all groups.
        settings: What of it is asked.
        inputs: Of `inputs_of`, of all groups.
        rows: `_NEEDED` of theirs.
    """
    tables = _group_tables(state, rows, inputs)
    lacking = groups_lacking_history(state, rows["groups"].to_arrow())
    question = replace(question, lacking=polars_rows(lacking))
    found = evaluate_lag(question, tables, rows["offset_history"])
    readers = topic_readers(found.rows, tables, rows["share_partitions"])
    readers = with_marks_of(readers, tables.groups, ["group_id"])
    readers = with_marks_of(readers, found.rows, ["group_id", "topic"])
    readers = _of_topics(readers, _wanted(state, readers)).select(_columns("topic_readers"))
    lags = _of_topics(found.rows, _wanted(state, found.rows))
    made = {
        "lag": lags,
        "status_history": BY_PARTITION.sort(found.statuses),
        "offset_moves": BY_PARTITION.sort(found.moves),
        "topic_readers": readers,
    }
    if settings.with_capacity:
        made["group_capacity"] = _capacity(state, question, tables, lags).sort("group_id")
    chosen = lags if is_all(settings) else lags.filter(_is_shown(settings))
    sums = parts_of_sums(chosen, settings.by, question.rules) if settings.by in BY else None
    if sums is not None and settings.by != TOPIC:
        # A group, and its members, are of this part alone.
        made[SUMS] = summed([sums], settings.by, question.rules)
        if settings.by == GROUP and settings.with_capacity:
            made[SUMS] = with_capacity(made[SUMS], made["group_capacity"])
    return PartAnswer(
        made,
        _PartSums(
            lags.filter(pl.col("verdict") == CANNOT_TELL).group_by("reason").agg(pl.len()),
            readers.select("topic").unique(),
            chosen.height == lags.height,
            sums if settings.by == TOPIC else None,
        ),
    )


def _group_tables(
    state: ReplayedWorkspace, rows: Mapping[str, pl.DataFrame], inputs: pl.DataFrame
) -> GroupTables:
    """Return the state of some whole groups."""
    groups = rows["groups"]
    lost = GroupCompleteness(state).lost_offsets_of(groups.to_arrow())
    return GroupTables(
        groups,
        rows["members"],
        rows["assignments"],
        rows["committed_offsets"],
        inputs.join(groups, "group_id", "semi"),
        pl.DataFrame(list(lost.items()), {"group_id": pl.String, "why": pl.String}, orient="row"),
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
    earlier: ReplayedWorkspace, state: ReplayedWorkspace, rows: PartedTable
) -> tuple[PartedTable, list[Gap]]:
    """Return how lags grew since an earlier dump was made, and what that lacks of what is asked."""
    name = earlier.tables.workspace.location
    then, today = (set(cluster_ids(one.manifest["copies"])) for one in (earlier, state))
    if then and today and not then & today:
        raise InputNotRecognizedError(f"--since {name} is of another cluster")
    begun, ended = instant_of(earlier), instant_of(state)
    if begun >= ended:
        raise InputNotRecognizedError(
            f"--since {name} is of {begun:%Y-%m-%dT%H:%M:%SZ}, which is not before this instant"
        )
    question = lag_question(earlier, None)
    # Of what it was made without it has no commit: that is not a lag from the log's start.
    before = _lag_tables(earlier, question, LagSettings(with_capacity=False)).tables["lag"]
    lacking = {
        "earlier_left_out": left_out_of(earlier.manifest, earlier.tables.selection),
        "earlier_lacks": select_groups(earlier, columns=HOMES).gaps,
    }
    growth = growth_in_parts(before, rows, (begun, ended), state.runner)
    gaps = [gap(code, earlier=name, why=why) for code, whys in lacking.items() for why in whys]
    return growth, gaps


def growth_in_parts(
    earlier: PartedTable, now: PartedTable, between: tuple[datetime, datetime], runner: PartRunner
) -> PartedTable:
    """Return `lag_growth` of all groups.

    Args:
        earlier: The table `lag` of an earlier instant.
        now: That of this one.
        between: Both instants.
        runner: Where parts are made.
    """
    both = {"then": _grown(earlier), "now": _grown(now)}
    with whole_group_parts(both, AT_ONCE, runner.folder) as parts:
        work = partial(_growth_of_part, *between)
        return runner.run(work, parts, {GROWTH: FASTEST_FIRST}).tables[GROWTH]


def _grown(lags: PartedTable) -> PartedGroups:
    """Return what `lag_growth` takes of the table `lag`: in no order."""
    return PartedGroups(lags, [*KEY, *_GROWING])


def _growth_of_part(
    begun: datetime, ended: datetime, rows: Mapping[str, pl.DataFrame]
) -> PartAnswer:
    return PartAnswer({GROWTH: lag_growth(rows["then"], rows["now"], begun, ended)})


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
    then = earlier.select(*KEY, *(pl.col(name).alias(f"earlier_{name}") for name in _GROWING))
    rows = now.select(*KEY, *_GROWING).join(then, KEY)
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
    return fastest_first(rows.select(_columns(GROWTH)))


def fastest_first(growth: pl.DataFrame) -> pl.DataFrame:
    """Sort rows of `lag_growth`."""
    return growth.sort("grown", *KEY, descending=[True, *[False] * len(KEY)])


FASTEST_FIRST: Final = Order(("grown", *KEY), fastest_first)
"""The order of `lag_growth`."""


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
    state: ReplayedWorkspace, groups: GroupSelection, topics_read: pl.DataFrame
) -> list[str] | None:
    """Return topics that no group reads; None where not all groups are known."""
    selection = state.tables.selection
    is_limited = selection.groups or selection.exclude_groups or filters_of(state.manifest)
    if groups.cannot_tell or is_limited:
        return None
    topics = polars_rows(state.tables.read("topics"))
    return unread_topics(_of_topics(topics, _wanted(state, topics)), topics_read)


def _doubts(reasons: pl.DataFrame) -> list[Gap]:
    """Return what cannot be told of committed offsets, each reason once with how often."""
    counted = reasons.group_by("reason").agg(pl.col("len").sum())
    gaps = (gap("lag_unknown", offsets=count, why=why) for why, count in counted.iter_rows())
    return sorted(gaps, key=lambda each: each.words)


def is_all(settings: LagSettings) -> bool:
    """Return whether all partitions are asked for."""
    return settings.min_lag is None and not settings.statuses


def _is_shown(settings: LagSettings) -> pl.Expr:
    """Return whether a row of the table `lag` is asked for."""
    is_shown = pl.lit(value=True)
    if settings.min_lag is not None:
        is_shown &= pl.col("lag") >= settings.min_lag
    if settings.statuses:
        names = pl.lit(list(settings.statuses), pl.List(pl.String))
        is_shown &= pl.col("status").is_in(names) | pl.col("verdict").is_in(names)
    return is_shown


LAG: Final = Question(
    name="lag",
    needs=(
        *("groups", "members", "assignments", "committed_offsets", "topics", "partition_leaders"),
        *("share_partitions", "offset_history", "configs"),
    ),
    tables=(
        *("lag", "status_history", "offset_moves", "topic_readers", "group_capacity"),
        *(SAMPLES_OF_ENDS, GROWTH),
    ),
    settings=LagSettings,
    answer=lag,
)
