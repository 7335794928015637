"""What a replay of a decoded workspace makes, and of what: whoever asks for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from analytics.cluster_probe import ListedFile, check_executors
from analytics.contracts import polars_rows
from analytics.decode.selection import Selection
from analytics.engine.cut_tables import buckets_of, cut_of, timeless_partitions
from analytics.engine.key_places import homes_metadata, internal_topics
from analytics.engine.replay_tasks import (
    Keep,
    on_spark,
    replay_here,
    replay_in_tasks,
    sorted_rows,
    without_rows,
)
from analytics.replay.dump.choices import as_of_metadata
from analytics.replay.dump.coverage import (
    coverage_of,
    log_sizes,
    log_starts,
    snapshot_configs,
    snapshot_topics,
    topics_beside,
)
from analytics.replay.dump.followed_lines import (
    at_instant,
    lines_metadata,
    of_history,
    read_before_swaps,
)
from analytics.replay.graph import TableStep, needed_for
from analytics.replay.history.tables import HISTORY as HISTORY_TABLES
from analytics.replay.log.log_times import AsOf, frame_rows
from analytics.replay.log.rules import replay_rules
from analytics.replay.state import STATE as STATE_TABLES
from analytics.replay.state import replay_given
from analytics.tables.buckets import MOST_ROWS
from analytics.tables.decoded_records import absolute
from analytics.tables.record_reader import RecordReader
from analytics.tables.stored_tables import StoredTables, folder_of, write_rows
from analytics.workspace import HISTORY, MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from analytics.replay.dump.followed_lines import FollowedLine
    from analytics.replay.log.topic_homes import TopicHomes
    from analytics.workspace import Part, Staging, Workspace
    from schemas.manifest import Filters, Manifest, OnlyOfSomeReplays, Replay

NamedTopic = tuple[str, str, int | None]
"""Topic, id, and how many partitions, as a person gave them."""
DIVERGENCES, LOAD_FAULTS = "divergences", "load_faults"


@dataclass(frozen=True)
class ReplayWork:
    """What a replay was asked for.

    Attributes:
        instant: Which records count.
        release: Whose rules apply.
        side_file: Names of topic ids that a person gave.
        filters: Options that leave records of a workspace out; empty leaves out nothing.
        needs: The tables that are made; None is all.
        lines: Followed instead of those that survived.
        assumed: What archived rows do not tell and a person vouches for.
        homes: Of `topic_homes`: where keys are looked for, of topics that were given more
            partitions or hold a log that belongs to another partition.
        partition_counts: How many partitions internal topics have, as all records show it.
        is_release_named: A person named the release; else the dump shows it, or nothing does.
    """

    instant: AsOf
    release: str
    side_file: Sequence[NamedTopic]
    filters: Mapping[str, tuple[Any, ...]]
    needs: Sequence[str] | None = None
    lines: Sequence[FollowedLine] = ()
    assumed: Sequence[str] = ()
    homes: Mapping[str, TopicHomes] = field(default_factory=dict)
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    is_release_named: bool = False

    def with_homes(self, source: Workspace, manifest: Manifest) -> Self:
        """Return the same with what all records of the workspace show of internal topics.

        Args:
            source: The workspace with the decoded tables.
            manifest: Of the workspace.
        """
        manifest = at_instant(manifest, is_end=self.instant.is_end)
        swapped = read_before_swaps(manifest)
        everything = RecordReader(source, self.lines, before_swaps=swapped)
        shown = internal_topics(everything, manifest, self.instant)
        return replace(self, homes=shown.homes, partition_counts=shown.partition_counts)

    @property
    def steps(self) -> list[TableStep]:
        """What is made."""
        steps = [*STATE_TABLES, *HISTORY_TABLES]
        return steps if self.needs is None else needed_for(steps, self.needs)

    def reader(
        self, source: Workspace, before_swaps: Sequence[tuple[str, int]] = ()
    ) -> RecordReader:
        """Return what reads the decoded tables of a workspace as far as they are wanted.

        Args:
            source: The workspace.
            before_swaps: Partitions of which the log is read that was before swap files.
        """
        if not any(self.filters.values()):
            return RecordReader(source, self.lines, homes=self.homes, before_swaps=before_swaps)
        selection = Selection.of_options(self.filters)
        within = self.filters["topics"], self.filters["partitions"]
        return RecordReader(source, self.lines, selection, *within, self.homes, before_swaps)

    def metadata(self, parts: Iterable[Part]) -> Replay:
        """Return the section `replay` of the manifest."""
        rows: Counter[str] = Counter()
        for part in parts:
            rows[part.table.rpartition("/")[2]] += part.rows
        of_some: OnlyOfSomeReplays = {}
        if self.instant.frames:
            of_some["frames"] = frame_rows(self.instant.frames)
        return {
            "as_of": as_of_metadata(self.instant.timestamp_ms, self.instant.offsets),
            "lines": lines_metadata(self.lines),
            **of_some,
            "kafka_version": self.release,
            "kafka_version_is_named": self.is_release_named,
            "assumed": list(self.assumed),
            "topic_ids": [list(each) for each in self.side_file],
            "filters": _filters_metadata(self.filters),
            "homes": homes_metadata(self.homes),
            "partition_counts": dict(self.partition_counts),
            "rows": dict(rows),
        }


def _filters_metadata(filters: Mapping[str, tuple[Any, ...]]) -> Filters:
    """Return what was left out as the manifest has it."""
    said: Filters = {}
    if groups := filters.get("groups"):
        said["groups"] = list(groups)
    if exclude_groups := filters.get("exclude_groups"):
        said["exclude_groups"] = list(exclude_groups)
    if data_topics := filters.get("data_topics"):
        said["data_topics"] = list(data_topics)
    if topics := filters.get("topics"):
        said["topics"] = list(topics)
    if partitions := filters.get("partitions"):
        said["partitions"] = list(partitions)
    return said


def replay_workspace(
    source: Workspace,
    staging: Staging,
    work: ReplayWork,
    manifest: Manifest,
    spark: SparkSession | None = None,
) -> list[Part]:
    """Make the tables that are wanted in a staging folder and return them, in order.

    Args:
        source: The workspace with the decoded tables.
        staging: Where the tables go.
        work: What is made.
        manifest: Of the workspace, with `with_archived_losses`.
        spark: The session whose tasks do it; None where all is looked at in one go, here.

    Raises:
        ClusterUnfitError: Executors do not see both workspaces.
    """
    if spark is not None:
        of_records = [ListedFile(f"{absolute(source)}/{MANIFEST}", 0)]
        check_executors(spark, of_records, staging.location)
    kept: dict[str, list[pl.DataFrame]] = {}

    def keep(name: str, rows: pl.DataFrame) -> None:
        kept.setdefault(name, []).append(rows)

    parts: list[Part] = []
    for number, (logs, tables) in enumerate(_logs_of(manifest, work)):
        reader = work.reader(source, read_before_swaps(logs))
        place = f"{staging.location}/logs-{number}"
        parts += _replay(_Logs(logs, reader, tables), source, place, work, keep, spark)
    _keep_divergences(source, keep)
    written = {part.table for part in parts}
    for step in work.steps:
        if step.table and folder_of(step.table) not in written:
            kept.setdefault(step.table, [without_rows(step.table)])
    for name, rows in sorted(kept.items()):
        whole = sorted_rows(rows, name)
        if whole.num_rows or folder_of(name) not in written:
            parts.append(write_rows(staging, name, whole))
    # Tables are done in any order; state comes before history.
    return sorted(parts, key=lambda part: (part.table.startswith(HISTORY), part.table))


@dataclass(frozen=True)
class _Logs:
    """The logs that tables are made of: what the manifest says of them, and what reads them."""

    manifest: Manifest
    reader: RecordReader
    tables: Collection[str]


def _replay(
    logs: _Logs,
    source: Workspace,
    place: str,
    work: ReplayWork,
    keep: Keep,
    spark: SparkSession | None,
) -> list[Part]:
    """Make tables of some logs; return the parts that tasks wrote, and keep what was made here.

    Args:
        logs: What they are made of, and which.
        source: The workspace with the decoded tables.
        place: A folder for tasks.
        work: What was asked for.
        keep: Called with each table that is not written by tasks.
        spark: The session whose tasks do it; None where all is looked at in one go, here.
    """
    manifest, instant = logs.manifest, work.instant
    starts = log_starts(manifest) if instant.is_end else {}
    cut = cut_of(logs.reader, instant, starts)
    coverage = coverage_of(manifest, instant, source, work.lines, work.assumed, work.homes)
    made = work.filters.get("data_topics"), manifest["options"].get("data_topics")
    given = replay_given(
        replay_rules(work.release),
        replace(coverage, has_topic_filter=any(made)),
        [
            topics_beside(manifest, work.side_file),
            snapshot_topics(manifest, is_end=instant.is_end),
        ],
        None if spark is None else timeless_partitions(logs.reader),
        snapshot_configs(manifest, is_end=instant.is_end),
    )

    def keep_asked(name: str, rows: pl.DataFrame) -> None:
        # What these tables are made of may be tables, too, and is made of other logs.
        if name in logs.tables:
            keep(name, rows)

    steps = needed_for(work.steps, logs.tables)
    if spark is None:
        replay_here(steps, given, cut, keep_asked)
        return []
    laid = buckets_of(logs.reader.prepared(), MOST_ROWS, log_sizes(manifest))
    parts = replay_in_tasks(on_spark(spark), steps, given, cut, laid, place, keep_asked)
    folders = {folder_of(name) for name in logs.tables}
    return [part for part in parts if part.table in folders]


def _logs_of(manifest: Manifest, work: ReplayWork) -> Iterator[tuple[Manifest, frozenset[str]]]:
    """Yield what the manifest says of logs that tables are made of, and which tables.

    At the end of the dump state is of what a broker will load, history of what happened.
    """
    names = frozenset(each.table for each in work.steps if each.table)
    earlier = of_history(manifest)
    if work.instant.is_end and read_before_swaps(earlier):
        told = _of_history(work.steps)
        yield manifest, names - told
        yield earlier, told
    else:
        yield earlier, names


def _of_history(steps: Sequence[TableStep]) -> frozenset[str]:
    """Return the tables that tell what happened, and not what a broker will load."""
    return frozenset(
        step.table
        for step in steps
        if step.table and folder_of(step.table).startswith(HISTORY) and step.table != LOAD_FAULTS
    )


def _keep_divergences(source: Workspace, keep: Keep) -> None:
    """Keep what decoding has put into the folder of history, which is replaced."""
    keep(DIVERGENCES, polars_rows(StoredTables(source).read(DIVERGENCES)))
