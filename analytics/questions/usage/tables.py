"""The tables about usage, made of a workspace: decoded records are read once, by bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from analytics.contracts import arrow_rows, contract_schema, polars_rows
from analytics.decode.selection import Selection
from analytics.engine.key_places import homes_in
from analytics.engine.part_runs import PartAnswers, PartRunner
from analytics.questions.usage.accounts import (
    Placed,
    coordinator_load,
    gaps_in_usage,
    identity,
    log_sums,
    log_sums_together,
    partition_usage,
    placed_together,
    untabled_usage,
)
from analytics.questions.usage.bucket_answers import (
    BATCHES,
    COMMITTED,
    EXPIRATION,
    GROUPS,
    ORDERS,
    PATTERNS,
    SUMS,
    BucketQuestion,
    NamesThere,
    WantedGroups,
    chosen,
    clock_limit,
    usage_of_bucket,
)
from analytics.questions.usage.deletions import OFFSETS_COLUMNS, clusters_of
from analytics.questions.usage.key_usage import KnownLogs, topic_usage
from analytics.questions.usage.laid_records import LogSightings, UsageRecords, parts_of_records
from analytics.questions.usage.log_cleaning import (
    CopyOfLog,
    bounds_of,
    copies_of_logs,
    left_in_logs,
    log_cleaning,
)
from analytics.questions.usage.records import (
    RECORD,
    AppendTimes,
    LogSums,
    Place,
    Transactions,
    clock_differences,
)
from analytics.questions.usage.sums import GROUP, UsageSums, most_first, sums_of, together
from analytics.replayed.group_rows import GroupRows
from analytics.tables.buckets import MOST_ROWS
from analytics.tables.parted_table import PartedTable, PartedTables
from schemas import CONSUMER_OFFSETS, table

if TYPE_CHECKING:
    from analytics.gaps.gap import Gap
    from analytics.questions.usage.accounts import Identity
    from analytics.questions.usage.cleaner import LogSettings
    from analytics.replayed.group_rows import GroupFiles
    from analytics.workspace import Workspace
    from schemas.manifest import Manifest


@dataclass(frozen=True)
class KnownState:
    """State tables that usage is held against, as far as there are any.

    Attributes:
        leaders: The table `partition_leaders`.
        topics: The table `topics`.
        groups: The table `groups`.
        committed: The table `committed_offsets`: `OFFSETS_COLUMNS`.
        expiration: The evaluation `offset_expiration` of the same instant, where there is one.
    """

    leaders: pa.Table
    topics: pa.Table
    groups: GroupRows | GroupFiles
    committed: GroupRows | GroupFiles
    expiration: GroupRows | GroupFiles | None = None

    @classmethod
    def nothing(cls) -> KnownState:
        """Return that no state is known."""
        leaders, topics, groups = (
            pa.schema([(each.name, pa.null()) for each in table(name).columns]).empty_table()
            for name in ("partition_leaders", "topics", "groups")
        )
        kinds = contract_schema("committed_offsets")
        committed = pl.DataFrame(schema={name: kinds[name] for name in OFFSETS_COLUMNS})
        no_group = polars_rows(groups).cast({"group_id": pl.String})
        group = pl.col("group_id")
        return cls(leaders, topics, GroupRows([no_group], group), GroupRows([committed], group))

    @property
    def of_groups(self) -> dict[str, GroupRows | GroupFiles]:
        """The tables that have rows of groups, by the names that buckets have."""
        found = {GROUPS: self.groups, COMMITTED: self.committed}
        return found if self.expiration is None else {**found, EXPIRATION: self.expiration}

    @property
    def offsets_partitions(self) -> int | None:
        """How many partitions `__consumer_offsets` has, None where nothing says."""
        columns = (self.topics[name].to_pylist() for name in ("topic", "partitions", "deleted_at"))
        counts = [
            count
            for topic, count, deleted in zip(*columns, strict=True)
            if topic == CONSUMER_OFFSETS and deleted is None and count
        ]
        return counts[0] if len(counts) == 1 else None


@dataclass(frozen=True)
class Usage:
    """What was found.

    Attributes:
        tables: The tables by their names; `topic_usage` and its like are of all groups.
        even: Whether bytes come out even.
        placed: How groups lie on partitions.
        gaps: What cannot be told.
        sums: What was asked to be added up.
        wanted_groups: The groups that were added up.
    """

    tables: PartedTables
    even: Identity
    placed: Placed
    gaps: list[Gap]
    sums: UsageSums
    wanted_groups: WantedGroups

    @property
    def rows(self) -> pa.Table:
        """The table `topic_usage`."""
        return self.tables["topic_usage"]

    @property
    def partitions(self) -> pa.Table:
        """The table `partition_usage`."""
        return self.tables["partition_usage"]

    @property
    def cleaning(self) -> pa.Table:
        """The table `log_cleaning`."""
        return self.tables["log_cleaning"]


@dataclass(frozen=True)
class UsageAsked:
    """What is asked of records.

    Attributes:
        interval_ms: What commits are held against; None is the rules' interval.
        by: What records and bytes are added up by.
        groups: The groups that are added up.
        bucket_rows: About so many records, and rows of state, are looked at in one go.
    """

    interval_ms: int | None = None
    by: str = "record-type"
    groups: Selection = field(default_factory=Selection)
    bucket_rows: int = MOST_ROWS


def usage_tables(
    space: Workspace,
    manifest: Manifest,
    settings: LogSettings,
    known: KnownState | None = None,
    request: UsageAsked | None = None,
    now_ms: int | None = None,
    runner: PartRunner | None = None,
) -> Usage:
    """Read every decoded record once.

    Args:
        space: The workspace with the decoded tables.
        manifest: Its own, or that of a replay of it.
        settings: Those in force.
        known: State tables.
        request: What is asked.
        now_ms: The instant; None is the end of each broker's copy.
        runner: Where buckets are looked at.

    Raises:
        WorkspaceError: A table is damaged.
    """
    known, request = known or KnownState.nothing(), request or UsageAsked()
    found = _of_buckets(space, manifest, settings, known, request, now_ms, runner or PartRunner())
    tables, question = dict(found.answers.tables), found.question
    wanted, by, parts = question.wanted_groups, question.by, found.answers.sums
    without_keys = pl.concat(each.without_keys for each in parts)
    others = topic_usage(
        without_keys,
        untabled_usage(manifest["reconciliation"]),
        None if known.expiration is None else _NOT_EXPIRED,
        lacks_bytes=question.lacks_bytes,
    )
    of_others = polars_rows(others)
    tables["topic_usage"] = _with_held(tables["topic_usage"], others)
    tables["clock_differences"] = _with_held(
        tables["clock_differences"], clock_differences(found.appended)
    )
    batches = map(polars_rows, tables.pop(BATCHES).pieces())
    topic = RECORD["topic"]
    left = pl.concat(each.left for each in parts).with_columns(pl.col("topic").cast(topic))
    left_by_log = left_in_logs(left, batches, found.markers, question.logs)
    logs = log_sums_together([*(each.logs for each in parts), log_sums(of_others)])
    partitions = partition_usage(manifest)
    even = identity(partitions, arrow_rows(logs))
    lie = placed_together([each.places for each in parts], question.partitions)
    clusters = clusters_of(map(polars_rows, tables.pop(PATTERNS).pieces()), settings.rules)
    is_cluster = pl.col("pattern").is_in(clusters["pattern"].to_pylist())
    tables["group_deletions"] = tables["group_deletions"].where(is_cluster)
    sums = _sums(tables.pop(SUMS, None), parts, chosen(of_others, wanted), by)
    held = {
        "partition_usage": partitions,
        "log_cleaning": log_cleaning(found.logs, settings, left_by_log, arrow_rows(logs)),
        "one_shot_groups": clusters,
        "coordinator_load": coordinator_load(logs, partitions, known.leaders, lie, settings.rules),
    }
    tables |= {name: PartedTable.held(rows) for name, rows in held.items()}
    return Usage(PartedTables(tables), even, lie, gaps_in_usage(manifest, even), sums, wanted)


_NOT_EXPIRED = pa.table(
    {
        "group_id": pa.array([], pa.string()),
        "coordinator_partition": pa.array([], pa.int32()),
        "status": pa.array([], pa.string()),
    }
)
"""Of records without keys no commit is one."""


def _with_held(rows: PartedTable, further: pa.Table) -> PartedTable:
    """Return a table with a few rows besides, none of which is equal to one of its own."""
    if not further.num_rows:
        return rows
    if len(rows.parts) == 1 and isinstance(rows.parts[0], pa.Table):
        both = pa.concat_tables([rows.parts[0], further.cast(rows.schema)])
        sorted_rows = rows.order.sort(polars_rows(both))
        return PartedTable(rows.schema, [arrow_rows(sorted_rows).cast(rows.schema)], rows.order)
    return PartedTable(rows.schema, [*rows.parts, further.cast(rows.schema)], rows.order)


def _sums(
    by_group: PartedTable | None, parts: Sequence[Any], others: pl.DataFrame, by: str
) -> UsageSums:
    """Return what was added up, with the rows that are of no bucket."""
    of_others = sums_of(others, by)
    if by_group is None:
        found = together([*(each.sums for each in parts), of_others], by)
        return UsageSums(PartedTable.held(arrow_rows(found)), int(found["bytes"].sum()))
    whole = _with_held(by_group, arrow_rows(together([of_others], GROUP)))
    sizes = [*(each.sums["bytes"] for each in parts), of_others["bytes"]]
    return UsageSums(whole, sum(int(each.sum()) for each in sizes))


@dataclass(frozen=True)
class _BucketResults:
    """What was found of all buckets.

    Attributes:
        answers: What was made of each.
        question: What each was asked.
        logs: Copies of logs.
        markers: Control records, and whether they are needed.
        appended: Commits that were appended before earlier ones.
    """

    answers: PartAnswers
    question: BucketQuestion
    logs: list[CopyOfLog]
    markers: pl.DataFrame
    appended: pl.DataFrame


def _of_buckets(
    space: Workspace,
    manifest: Manifest,
    settings: LogSettings,
    facts: KnownState,
    request: UsageAsked,
    now_ms: int | None,
    runner: PartRunner,
) -> _BucketResults:
    rules = settings.rules
    seen = LogSightings(
        LogSums(Transactions.in_workspace(space), _complete(copies_of_logs(manifest, {}, now_ms))),
        AppendTimes(clock_limit(settings)),
        NamesThere(request.groups),
    )
    lists = {name: each.lists for name, each in rules.growing.items()}
    count = sum(each["records"] or 0 for each in manifest["partitions"])
    records, at_once = UsageRecords(space, lists, seen), request.bucket_rows
    with parts_of_records(records, facts.of_groups, at_once, count, runner) as parts:
        logs = copies_of_logs(manifest, seen.sums.first_open, now_ms)
        homes = homes_in(manifest).get(CONSUMER_OFFSETS)
        question = BucketQuestion(
            _known(logs, seen, settings),
            settings,
            request.interval_ms or round(rules.interval_seconds * 1000),
            facts.topics,
            homes.partitions if homes else facts.offsets_partitions,
            bool(seen.sums.without_bytes),
            WantedGroups(request.groups, sorted(seen.names.found)),
            request.by,
        )
        orders = {**ORDERS, SUMS: most_first(request.by)}
        asked = partial(usage_of_bucket, question)
        answers = runner.run(asked, parts, orders)
    return _BucketResults(answers, question, logs, seen.sums.markers, seen.appended.rows)


def _known(logs: list[CopyOfLog], sightings: LogSightings, settings: LogSettings) -> KnownLogs:
    leading = {each.place: each for each in logs if each.is_leading}
    sums = sightings.sums
    return KnownLogs(
        Transactions.none() if sightings.are_marked else sums.transactions,
        bounds_of(logs, settings),
        sums.complete_from,
        sums.since,
        {place: each.now_ms for place, each in leading.items() if each.now_ms is not None},
        {place: each.files.horizons for place, each in leading.items() if each.files},
    )


def _complete(logs: list[CopyOfLog]) -> dict[Place, int]:
    return {
        each.place: each.complete_from
        for each in logs
        if each.is_leading and each.complete_from is not None
    }
