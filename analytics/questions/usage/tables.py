"""The tables about usage, made of a workspace: decoded records are read once, by bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from analytics.contracts import table_of
from analytics.engine.key_places import homes_in
from analytics.questions.usage.accounts import (
    identity,
    limitations,
    partition_usage,
    untabled_usage,
)
from analytics.questions.usage.clock_differences import (
    AppendTimes,
    clock_differences,
    stated_times,
)
from analytics.questions.usage.coordinator_load import (
    Placed,
    coordinator_load,
    groups_placed,
    placed,
)
from analytics.questions.usage.deletions import offset_deletions, one_shot_groups
from analytics.questions.usage.key_usage import (
    KnownLogs,
    commit_rows,
    committers,
    ordered,
    topic_usage,
    usage_rows,
)
from analytics.questions.usage.limits import growth_rows, record_growth, size_limits
from analytics.questions.usage.log_cleaning import (
    CopyOfLog,
    bounds_of,
    copies_of_logs,
    left_in_logs,
    left_rows,
    log_cleaning,
)
from analytics.questions.usage.records import (
    LogSums,
    Place,
    Transactions,
    laid_out,
    read_records,
)
from analytics.tables.buckets import MOST_ROWS
from schemas import CONSUMER_OFFSETS, table

if TYPE_CHECKING:
    from analytics.questions.usage.accounts import Identity
    from analytics.questions.usage.log_settings import LogSettings
    from analytics.workspace import Workspace
    from schemas.usage_rules import UsageRules


@dataclass(frozen=True)
class KnownState:
    """State tables that usage is held against, as far as there are any.

    Attributes:
        groups: The table `groups`.
        leaders: The table `partition_leaders`.
        topics: The table `topics`.
        committed: The table `committed_offsets`: `OFFSETS_COLUMNS`.
        expiration: The evaluation `offset_expiration` of the same instant, where there is one.
    """

    groups: pa.Table
    leaders: pa.Table
    topics: pa.Table
    committed: pa.Table
    expiration: pa.Table | None = None

    @classmethod
    def nothing(cls) -> KnownState:
        """Return that no state is known."""
        groups, leaders, topics = (
            pa.schema([(each.name, pa.null()) for each in table(name).columns]).empty_table()
            for name in ("groups", "partition_leaders", "topics")
        )
        return cls(groups, leaders, topics, table_of("committed_offsets", []))

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
        limitations: What cannot be told, one sentence each.
    """

    tables: Mapping[str, pa.Table]
    even: Identity
    placed: Placed
    limitations: list[str]

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


def usage_tables(
    space: Workspace,
    manifest: Mapping[str, Any],
    settings: LogSettings,
    known: KnownState | None = None,
    interval_ms: int | None = None,
    now_ms: int | None = None,
    bucket_rows: int = MOST_ROWS,
) -> Usage:
    """Read every decoded record once.

    Args:
        space: The workspace with the decoded tables.
        manifest: Its own, or that of a replay of it.
        settings: Those in force.
        known: State tables.
        interval_ms: What commits are held against; None is the rules' interval.
        now_ms: The instant; None is the end of each broker's copy.
        bucket_rows: About so many records are looked at in one go.

    Raises:
        WorkspaceError: A table is damaged.
    """
    known, rules = known or KnownState.nothing(), settings.rules
    interval_ms = interval_ms or round(rules.interval_seconds * 1000)
    logs, of_logs, markers, made = _of_buckets(
        space, manifest, settings, interval_ms, now_ms, bucket_rows
    )
    left = left_in_logs(made["left"], made["batches"], markers, of_logs)
    lacks_bytes = bool(made["topic_usage"]["without_bytes"].sum())
    rows = topic_usage(made["topic_usage"], untabled_usage(manifest), known.expiration)
    partitions = partition_usage(manifest)
    even = identity(partitions, rows)
    homes = homes_in(manifest).get(CONSUMER_OFFSETS)
    found = placed(groups_placed(rows), homes.partitions if homes else known.offsets_partitions)
    clusters, deletions = one_shot_groups(rows, known.groups, rules)
    tables = {
        "topic_usage": rows,
        "partition_usage": partitions,
        "log_cleaning": log_cleaning(logs, settings, left, rows),
        "committers": committers(made["committers"], rules, interval_ms, lacks_bytes=lacks_bytes),
        "size_limits": size_limits(rows, settings),
        "record_growth": record_growth(made["record_growth"], rules.growing, settings),
        "clock_differences": clock_differences(made["clock_differences"]),
        "one_shot_groups": clusters,
        "group_deletions": deletions,
        "offset_deletions": offset_deletions(known.committed, known.groups, known.topics),
        "coordinator_load": coordinator_load(rows, partitions, known.leaders, found, rules),
    }
    return Usage(tables, even, found, limitations(manifest, even))


def usage_of_bucket(
    records: pl.DataFrame, logs: KnownLogs, rules: UsageRules, interval_ms: int
) -> dict[str, pl.DataFrame]:
    """Return what the records of one bucket give to the tables: whole rows, or sums that add up.

    Args:
        records: `RECORD`, of whole groups.
        logs: What is known of the logs.
        rules: How far apart times may be.
        interval_ms: What commits are held against.

    Returns:
        By name what `usage_rows`, `commit_rows`, `growth_rows` and `stated_times` return, and both
        that `left_rows` returns.
    """
    rows = ordered(records, logs)
    left, batches = left_rows(rows, logs)
    return {
        "topic_usage": usage_rows(rows),
        "committers": commit_rows(rows, logs, interval_ms),
        "left": left,
        "batches": batches,
        "record_growth": growth_rows(records),
        "clock_differences": stated_times(records, _clock_limit(rules)),
    }


def _of_buckets(
    space: Workspace,
    manifest: Mapping[str, Any],
    settings: LogSettings,
    interval_ms: int,
    now_ms: int | None,
    bucket_rows: int,
) -> tuple[list[CopyOfLog], KnownLogs, pl.DataFrame, dict[str, pl.DataFrame]]:
    """Return the logs, what is known of them, their markers, and what all buckets give."""
    rules = settings.rules
    sums = LogSums(
        Transactions.in_workspace(space), _complete(copies_of_logs(manifest, {}, now_ms))
    )
    appended = AppendTimes(_clock_limit(rules))
    lists = {name: each.lists for name, each in rules.growing.items()}
    records = sum(each["records"] or 0 for each in manifest["partitions"])
    with TemporaryDirectory(prefix="groupscope-", ignore_cleanup_errors=True) as folder:
        buckets = laid_out(
            read_records(space, lists, (sums, appended)), records, folder, bucket_rows
        )
        logs = copies_of_logs(manifest, sums.first_open, now_ms)
        known = _known(logs, sums, settings)
        found = [usage_of_bucket(each, known, rules, interval_ms) for each in buckets]
    made = {name: pl.concat([each[name] for each in found]) for name in found[0]}
    differences = [made["clock_differences"], *appended.rows]
    return logs, known, sums.markers, {**made, "clock_differences": pl.concat(differences)}


def _known(logs: list[CopyOfLog], sums: LogSums, settings: LogSettings) -> KnownLogs:
    leading = {each.place: each for each in logs if each.is_leading}
    return KnownLogs(
        sums.transactions,
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


def _clock_limit(rules: UsageRules) -> int:
    """Return by how many milliseconds times may differ."""
    return round(rules.clock_seconds * 1000)
