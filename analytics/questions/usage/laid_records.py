"""Decoded records of internal topics read once, and laid out in parts of whole groups.

Here, or in tasks that each read some files; what all of them see of whole logs is added up.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow as pa

from analytics.contracts import polars_rows
from analytics.decode.selection import Selection
from analytics.engine.part_runs import GroupPart, PartRunner, RunTasks, put_value
from analytics.engine.record_layout import run_task
from analytics.questions.usage.bucket_answers import NamesThere
from analytics.questions.usage.records import (
    CLASSIC_GROUPS,
    COLUMNS,
    COMMIT_FIELDS,
    COMMITS,
    GROUP_FIELDS,
    LATEST,
    MARKED,
    RECORD,
    ROWS,
    AppendTimes,
    LogSums,
    Place,
    Transactions,
    records_of,
)
from analytics.replayed.group_rows import LaidOut, TaskRows
from analytics.replayed.whole_groups import whole_group_parts
from analytics.tables.buckets import BucketFiles
from analytics.tables.decoded_records import (
    decoded_tables,
    from_offset,
    record_batches,
    record_files,
)
from analytics.tables.record_keys import spread
from schemas import INTERNAL_TOPICS

if TYPE_CHECKING:
    from analytics.replayed.group_rows import GroupFiles, GroupRows
    from analytics.workspace import Workspace

_TASK_BYTES: Final = 32 << 20
"""Of decoded tables: what a task reads."""
_PLAIN: Final = pl.Schema({**RECORD, "topic": pl.String(), "table": pl.String()})
"""The dictionaries of several batches of one Arrow file must be one."""
_MARKED_ROWS: Final = pl.Schema({**_PLAIN, **MARKED})
_GROUP: Final = pl.coalesce("group_id", pl.col("offset").cast(pl.String))
"""Records without a group are in any part."""


class _File(NamedTuple):
    topic: str
    table: str
    path: str
    size: int


@dataclass
class LogSightings:
    """What is seen of whole logs while their records are read.

    Attributes:
        sums: What is added up of them.
        appended: Commits that were appended before earlier ones.
        names: Which patterns are names of groups.
        are_marked: Records that are given again say how their transactions ended (`MARKED`).
    """

    sums: LogSums
    appended: AppendTimes
    names: NamesThere
    are_marked: bool = False

    def add(self, records: pl.DataFrame) -> None:
        """Take records of a table in the order in which they are read: `RECORD`."""
        self.sums.add(records)
        self.appended.add(records)
        self.names.add(records)

    def add_sightings(self, others: LogSightings) -> None:
        """Take what was seen of other records."""
        self.sums.add_sums(others.sums)
        self.appended.add_found(others.appended.rows)
        self.names.found.update(others.names.found)


@dataclass(frozen=True)
class UsageRecords(TaskRows):
    """The decoded records of a workspace, and what is seen while they are laid out.

    Attributes:
        space: The workspace with the decoded tables.
        lists: By table the lists whose items are counted, as Parquet's paths.
        sightings: Are shown all of them.
    """

    space: Workspace
    lists: Mapping[str, Sequence[str]]
    sightings: LogSightings
    group = _GROUP

    @cached_property
    def files(self) -> list[_File]:
        """All files, in the order in which they are read."""
        return [
            _File(topic, table, path, size)
            for topic in INTERNAL_TOPICS
            for table in decoded_tables(topic)
            for path, size in record_files(self.space, table).items()
        ]

    def pieces(self) -> Iterator[pl.DataFrame]:
        """Yield the records, some at a time.

        Raises:
            WorkspaceError: A table is damaged, or lacks a column.
        """
        yield _PLAIN.to_frame()
        for each in self.files:
            for rows in read_records(self.space, each, self.lists):
                self.sightings.add(rows)
                yield rows.cast(_PLAIN)

    def lay_out(self, folder: str, name: str, parts: int, run_tasks: RunTasks) -> LaidOut:
        """Lay the records out in tasks, with `MARKED`; what these see is seen then.

        Raises:
            WorkspaceError: A table is damaged, or lacks a column.
        """
        seen, tasks = self.sightings, _tasks(self.files)
        times = CommitTimes(self.space, tasks)
        latest = run_tasks(len(tasks), partial(run_task, put_value(folder, times)))
        layout = UsageLayout(
            self.space,
            self.lists,
            tasks,
            _before_each(latest),
            seen.sums.complete_from,
            seen.appended.limit_ms,
            seen.names.asked,
            (folder, name, parts),
        )
        found = run_tasks(len(tasks), partial(run_task, put_value(folder, layout)))
        for _, told in found:
            seen.add_sightings(told)
        seen.are_marked = True
        return LaidOut(_MARKED_ROWS.to_frame(), frozenset(attempt for attempt, _ in found))


@dataclass(frozen=True)
class CommitTimes:
    """Looks for the latest time of each partition's commits.

    Attributes:
        space: The workspace with the decoded tables.
        tasks: Files, task by task.
    """

    space: Workspace
    tasks: Sequence[Sequence[_File]]

    def run(self, number: int) -> pl.DataFrame:
        """Return `LATEST` of the files of one task."""
        found = [LATEST.to_frame()]
        time = pl.col("timestamp").cast(pl.Datetime("ms", "UTC")).dt.epoch("ms")
        for each in self.tasks[number]:
            if each.table == COMMITS:
                columns = ["partition", "timestamp"]
                for batch in record_batches(self.space, *each[:2], columns, [each.path]):
                    rows = polars_rows(pa.table({each: batch[each] for each in columns}))
                    timed = rows.select("partition", latest=time).filter(pl.col("latest") >= 0)
                    found.append(_latest_of([timed.cast(LATEST)]))
        return _latest_of(found)


@dataclass(frozen=True)
class UsageLayout:
    """Lays records out, some files in each task.

    Attributes:
        space: The workspace with the decoded tables.
        lists: By table the lists whose items are counted.
        tasks: Files, task by task.
        latest: Of each task `LATEST` of all commits before it.
        complete_from: As of `LogSums`.
        limit_ms: As of `AppendTimes`.
        names: As of `NamesThere`.
        into: The folder, what the records are called there, and in how many parts they are.
    """

    space: Workspace
    lists: Mapping[str, Sequence[str]]
    tasks: Sequence[Sequence[_File]]
    latest: Sequence[pl.DataFrame]
    complete_from: Mapping[Place, int]
    limit_ms: int
    names: Selection
    into: tuple[str, str, int]

    def run(self, number: int) -> tuple[str, LogSightings]:
        """Lay out one task's files; return what names of its files end with, and what was seen."""
        attempt, (folder, name, parts) = uuid.uuid4().hex, self.into
        appended = AppendTimes(self.limit_ms, self.latest[number])
        sums = LogSums(Transactions.none(), self.complete_from)
        names = NamesThere(self.names)
        number_of, markers = spread(_GROUP) % parts, _Markers(self.space)
        with BucketFiles(folder, name, f"{number}-{attempt}") as files:
            for each in self.tasks[number]:
                for rows in read_records(self.space, each, self.lists):
                    transactions = markers.behind(rows)
                    part = LogSums(transactions, self.complete_from)
                    part.add(rows)
                    sums.add_sums(part.summed())
                    appended.add(rows)
                    names.add(rows)
                    marked = (
                        transactions.outcomes(rows).select(_MARKED_ROWS.names()).cast(_MARKED_ROWS)
                    )
                    files.add(marked, number_of)
        told = AppendTimes(self.limit_ms)
        told.add_found(appended.rows)
        return attempt, LogSightings(sums.summed(), told, names)


class _Markers:
    """The markers of partitions, each read when it is asked for: a file is of one mostly."""

    def __init__(self, space: Workspace) -> None:
        self._space = space
        self._read: dict[Place, pl.DataFrame] = {}

    def behind(self, records: pl.DataFrame) -> Transactions:
        """Return the markers that may end transactions of some records: `RECORD`."""
        waiting = records.filter(pl.col("producer_id").is_not_null())
        if waiting.is_empty():
            return Transactions.none()
        log = waiting.select(pl.col("topic").cast(pl.String), "partition").unique()
        is_behind = pl.col("offset") > waiting["offset"].min()
        found = [self._of(Place(*place)).filter(is_behind) for place in log.iter_rows()]
        return Transactions(pl.concat(found).sort("offset"))

    def _of(self, place: Place) -> pl.DataFrame:
        if place not in self._read:
            where = from_offset(*place, 0)
            self._read[place] = Transactions.in_workspace(self._space, where).markers
        return self._read[place]


def read_records(
    space: Workspace, file: _File, lists: Mapping[str, Sequence[str]]
) -> Iterator[pl.DataFrame]:
    """Yield the decoded records of a file, some at a time: `RECORD`.

    Args:
        space: The workspace with the decoded tables.
        file: The file.
        lists: By table the lists whose items are counted, as Parquet's paths.

    Raises:
        WorkspaceError: The file is damaged, or lacks a column.
    """
    topic, table, path, _ = file
    values = {COMMITS: COMMIT_FIELDS, CLASSIC_GROUPS: GROUP_FIELDS}.get(table, ())
    paths = lists.get(table, ())
    names = [each.partition(".")[0] for each in paths]
    columns = [*COLUMNS, *(f"value.{each}" for each in (*values, *paths))]
    for batch in record_batches(space, topic, table, columns, [path]):
        yield records_of(topic, table, batch, names)


@contextmanager
def parts_of_records(
    records: UsageRecords,
    of_groups: Mapping[str, GroupRows | GroupFiles],
    at_once: int,
    count: int,
    runner: PartRunner,
) -> Iterator[Sequence[GroupPart]]:
    """Read all records, and give them again in parts: a group is whole in one.

    Args:
        records: The records; when the parts are given, all were seen.
        of_groups: By name other tables that have `group_id`.
        at_once: How many rows a part has, about.
        count: How many records there are.
        runner: Where they are laid out.

    Yields:
        The parts, which have the records as `ROWS`, as long as what was laid out of them is there.
    """
    sources = {ROWS: records, **of_groups}
    with whole_group_parts(sources, at_once, runner.folder, count, runner.run_tasks) as parts:
        # One part is read when it is asked for, and all are to be taken now.
        read = parts if len(parts) > 1 else [GroupPart(partial(dict, dict(parts[0].read())))]
        yield [each.then(_as_records) for each in read]


def _as_records(rows: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    names = pl.col("topic", "table").cast(RECORD["topic"])
    return {**rows, ROWS: rows[ROWS].with_columns(names)}


def _tasks(files: Sequence[_File]) -> list[list[_File]]:
    """Return files task by task, in their order; one task at least."""
    tasks: list[list[_File]] = [[]]
    for each in files:
        if tasks[-1] and sum(one.size for one in tasks[-1]) + each.size > _TASK_BYTES:
            tasks.append([])
        tasks[-1].append(each)
    return tasks


def _before_each(latest: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Return of each task the latest times of all before it, of its own of each."""
    found = [LATEST.to_frame()]
    for each in latest[:-1]:
        found.append(_latest_of([found[-1], each]))
    return found


def _latest_of(times: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(times).group_by("partition").agg(pl.col("latest").max())
