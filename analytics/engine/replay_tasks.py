"""The tables of a replay, made in passes over buckets of records: here, or in tasks on Spark.

What all tasks take, and what each gives back besides parts of tables, goes through the staging
folder: it can be larger than what Spark sends along with tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.contracts import check_values, contract_frame, contract_schema
from analytics.engine.cut_tables import IN_BUCKETS, Cut, LaidOutRecords, tables_of
from analytics.engine.part_runs import get_value, put_value
from analytics.key_order import in_key_order
from analytics.locations import make_folder, open_location
from analytics.replay.graph import Pass, TableStep, passes, resolve
from analytics.replay.log.row_columns import arrow_rows, polars_rows
from analytics.spark_tasks import run_tasks
from analytics.tables.buckets import Bucket, BucketFiles, GroupBucket, rows_of_bucket
from analytics.tables.record_keys import key_hash
from analytics.tables.record_reader import RecordFile
from analytics.tables.stored_tables import folder_of
from analytics.workspace import Part
from schemas import record_types, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CUT, WHOLE, PART = "cut", "whole", "part"
"""What steps are given of the records: see `analytics.replay.state`."""

_AT_ONCE = 2
"""Steps that run at the same time: most of a small one is Python, which keeps one core busy."""

Keep = Callable[[str, pl.DataFrame], None]
"""Takes rows of a table and its name; several times where several steps make it."""


@dataclass
class ReplayResults:
    """What of a replay is there so far.

    Attributes:
        once: What was given, and what steps made once, by name.
        gathered: By name what a step made of each bucket.
    """

    once: dict[str, Any]
    gathered: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, steps: Sequence[TableStep], keep: Keep, at_once: int) -> None:
        """Run steps that are made once, and keep what of it is tables."""
        found = resolve(steps, {**self.once, **self.gathered}, at_once=at_once)
        self.once |= found
        keep_tables(steps, found, keep)


def replay_here(
    steps: Sequence[TableStep], initial: Mapping[str, Any], cut: Cut, keep: Keep
) -> None:
    """Make tables of a dump whose records are looked at in one go.

    Args:
        steps: What is made.
        initial: Of `replay_given`.
        cut: What is read.
        keep: Called with each table.
    """
    made = ReplayResults({**initial, WHOLE: cut.whole()})
    here = of_bucket(cut, None)
    for each in passes(steps):
        todo = [step for step in each.of_buckets if step.output not in here]
        found = resolve(todo, {**made.once, **here}, at_once=_AT_ONCE)
        here |= found
        made.gathered |= {name: [here[name]] for name in each.gathered}
        keep_tables(written_steps(each), here, keep)
        made.add(each.once, keep, _AT_ONCE)


def of_bucket(
    cut: Cut, bucket: Bucket | None, laid_out: LaidOutRecords | None = None
) -> dict[str, Any]:
    """Return what steps are given of a bucket; None is one that has everything."""
    return {CUT: cut.of(bucket, laid_out), PART: bucket.part if bucket else 0}


def keep_tables(steps: Iterable[TableStep], tables: Mapping[str, Any], keep: Keep) -> None:
    """Keep what steps made of tables.

    Raises:
        SchemaError: A value is none of its column's.
    """
    for step in steps:
        if step.table is not None:
            rows = contract_frame(tables[step.output], step.table)
            check_values(step.table, rows)
            keep(step.table, in_key_order(rows, table(step.table).key))


def written_steps(of: Pass) -> list[TableStep]:
    """Return the steps of a pass that make rows of tables of each bucket."""
    return [step for step in of.of_buckets if step.output in of.tables]


def without_rows(name: str) -> pl.DataFrame:
    """Return a table without rows."""
    return pl.DataFrame(schema=contract_schema(name))


def sorted_rows(rows: Sequence[pl.DataFrame], name: str) -> pa.Table:
    """Return rows in the order of the table's key: equal rows give equal files."""
    return arrow_rows(in_key_order(pl.concat(rows), table(name).key))


# Records of a large dump laid out by bucket: a file is read once, whatever the number of buckets.
#
# What is written lies in the staging folder, as Arrow files that are quick to write and to read,
# and goes with it. A task writes a file for each bucket: with very many buckets that would be as
# many as both multiplied. So records are laid into lots of buckets first, and then lot by lot.

_LEAST_TASK_BYTES: Final = 8 << 20
_MOST_TASK_BYTES: Final = 64 << 20
_MOST_TASKS: Final = 256
"""So many tasks lay records out before they are given more of them, as far as memory allows."""
_LOT_BYTES: Final = 64 << 20
"""Of decoded tables: what one task lays out of a lot, on average."""
MOST_PARTS: Final = 256
"""Into so many files a task divides the rows of a table."""
_ROW: Final = "row"
_PLACE: Final = ("topic", "partition", "offset", "timestamp", "key")
"""What tells whether a record counts, and its bucket."""


@dataclass(frozen=True)
class RecordLayout:
    """Lays records out.

    Attributes:
        cut: What is read.
        tasks: Files that are read, task by task.
        buckets: Into which they are laid.
        place: The folder for them.
        width: Of so many buckets a lot is; one is the bucket itself.
    """

    cut: Cut
    tasks: Sequence[Sequence[RecordFile]]
    buckets: Sequence[Bucket]
    place: str
    width: int = 1

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(each.size for files in self.tasks for each in files)

    def run(self, number: int) -> str:
        """Lay out the files of one task; return what the names of this attempt's files end with."""
        attempt = uuid.uuid4().hex
        for index, each in enumerate(self.tasks[number]):
            topic = _topic_of(each.table)
            lot = _bucket_of(each.table, topic, self.buckets) // self.width
            with BucketFiles(self.place, each.table, f"{number}-{index}-{attempt}") as files:
                for rows in self.cut.reader.batches(each):
                    placed = polars_rows(rows.select(_PLACE)).with_row_index(_ROW)
                    kept = self.cut.cut_rows(each.table, placed.filter(pl.col("topic") == topic))
                    is_whole = kept.height == rows.num_rows
                    counting = rows if is_whole else rows.take(kept[_ROW].to_arrow())
                    files.add_rows(counting, kept.select(lot).to_series().to_numpy())
        return attempt


@dataclass(frozen=True)
class LotLayout:
    """Lays the records of lots out, each into its buckets, or into lots of fewer.

    Attributes:
        source: The folder in which lots are laid out.
        attempts: What names of files there end with that count.
        shares: Tasks that divide the files of a lot among them.
        of: Of how many buckets the lots are.
        buckets: All buckets.
        place: The folder for what is written.
        width: Of so many buckets each of the new lots is.
    """

    source: str
    attempts: frozenset[str]
    shares: int
    of: int
    buckets: Sequence[Bucket]
    place: str
    width: int

    @property
    def count(self) -> int:
        """How many tasks there are."""
        return -(-len(self.buckets) // self.of) * self.shares

    def run(self, number: int) -> str:
        """Lay out a share of a lot; return what the names of this attempt's files end with."""
        attempt = uuid.uuid4().hex
        lot, share = divmod(number, self.shares)
        for name in sorted(tables_of(IN_BUCKETS)):
            into = _bucket_of(name, _topic_of(name), self.buckets) // self.width
            with BucketFiles(self.place, name, f"{number}-{attempt}") as files:
                for rows in rows_of_bucket(
                    self.source, lot, name, self.attempts, share=(share, self.shares)
                ):
                    files.add(rows, into)
        return attempt


def record_layout(cut: Cut, buckets: Sequence[Bucket], place: str, width: int = 1) -> RecordLayout:
    """Return the work of laying all records out, into lots of so many buckets."""
    files = [each for name in sorted(tables_of(IN_BUCKETS)) for each in cut.reader.files(name)]
    whole = sum(each.size for each in files)
    at_once = min(max(whole // _MOST_TASKS, _LEAST_TASK_BYTES), _MOST_TASK_BYTES)
    tasks: list[list[RecordFile]] = [[]]
    size = 0
    for each in files:
        if tasks[-1] and size + each.size > at_once:
            tasks.append([])
            size = 0
        tasks[-1].append(each)
        size += each.size
    return RecordLayout(cut, tasks, buckets, place, width)


def widths(buckets: int, most: int) -> list[int]:
    """Return of how many buckets the lots are that each pass makes; the last ones are the buckets.

    Args:
        buckets: How many there are.
        most: Into so many files a task shall divide its rows at most.
    """
    passes = 1
    while most**passes < buckets:
        passes += 1
    fan_out = 1
    while fan_out**passes < buckets:
        fan_out += 1
    return [fan_out**left for left in reversed(range(passes))]


def lay_out(
    run: Run, cut: Cut, buckets: Sequence[Bucket], staging: str
) -> tuple[str, frozenset[str]]:
    """Lay all records out by bucket, in as many passes as keep the number of files in bounds.

    Args:
        run: Runs the tasks.
        cut: What is read.
        buckets: All records, in parts that fit into memory.
        staging: The folder in which tasks write.

    Returns:
        The folder of all buckets, and what the names of files in it end with that count.
    """
    first, *further = widths(len(buckets), MOST_PARTS)
    place = f"{staging}/records"
    lays_out = record_layout(cut, buckets, place, first)
    attempts = frozenset[str](run(put_value(staging, lays_out), len(lays_out.tasks)))
    of = first
    for width in further:
        lots = -(-len(buckets) // of)
        shares = max(-(-lays_out.size // lots // _LOT_BYTES), 1)
        source, place = place, f"{staging}/records-{width}"
        lot = LotLayout(source, attempts, shares, of, buckets, place, width)
        attempts = frozenset[str](run(put_value(staging, lot), lot.count))
        filesystem, path = open_location(source)
        filesystem.delete_dir(path)
        of = width
    return place, attempts


def _topic_of(table: str) -> str:
    return next(
        topic
        for topic in IN_BUCKETS
        if any(kind.table == table for kind in record_types(topic).values())
    )


def _bucket_of(table: str, topic: str, buckets: Sequence[Bucket]) -> pl.Expr:
    """Return the number of the bucket that a record is in."""
    first: dict[int, int] = {}
    parts: dict[int, int] = {}
    rest, rest_parts = 0, 1
    for number, each in enumerate(buckets):
        if each.topic != topic:
            continue
        if each.is_rest:
            rest, rest_parts = number - each.part, each.parts
            continue
        for partition in each.partitions:
            first.setdefault(partition, number)
            parts[partition] = each.parts
    return _of(first, rest) + key_hash(table, topic) % _of(parts, rest_parts)


def _of(numbers: Mapping[int, int], otherwise: int) -> pl.Expr:
    if not numbers:
        return pl.lit(otherwise, pl.Int64)
    return pl.col("partition").replace_strict(
        list(numbers), list(numbers.values()), default=otherwise, return_dtype=pl.Int64
    )


@dataclass(frozen=True)
class Report:
    """What a task did: the parts of tables that it wrote, and where the rest is."""

    number: int
    parts: list[Part]
    gathered: str | None


@dataclass(frozen=True)
class BucketPass:
    """A pass over the buckets.

    Attributes:
        work: The pass.
        inputs: What its steps are given, and what was made once.
        cut: What is read.
        buckets: All records, in parts that fit into memory.
        records: The folder in which they are laid out.
        attempts: What names of the files there end with that count.
        staging: Where tasks write.
    """

    work: Pass
    inputs: Mapping[str, Any]
    cut: Cut
    buckets: Sequence[Bucket]
    records: str
    attempts: frozenset[str]
    staging: str

    def run(self, number: int) -> Report:
        """Make what the pass makes of one bucket."""
        here = of_bucket(
            self.cut,
            self.buckets[number],
            partial(rows_of_bucket, self.records, number, attempts=self.attempts),
        )
        here |= resolve(self.work.of_buckets, {**self.inputs, **here})
        parts: list[Part] = []

        def keep(name: str, rows: pl.DataFrame) -> None:
            if rows.height:
                groups = self.buckets[number].groups
                parts.append(_write_part(self.staging, name, rows, groups))

        keep_tables(written_steps(self.work), here, keep)
        gathered = {name: here[name] for name in self.work.gathered}
        return Report(number, parts, put_value(self.staging, gathered) if gathered else None)


Run = Callable[[str, int], list[Any]]
"""Runs `run_task` of a place for so many numbers, in any order, anywhere."""


def replay_in_tasks(
    run: Run,
    steps: Sequence[TableStep],
    initial: Mapping[str, Any],
    cut: Cut,
    buckets: Sequence[Bucket],
    staging: str,
    keep: Keep,
) -> list[Part]:
    """Make tables of a dump of any size.

    Args:
        run: Runs the tasks.
        steps: What is made.
        initial: Of `replay_given`.
        cut: What is read.
        buckets: All records, in parts that fit into memory.
        staging: The folder in which tasks write, as its URI or path; all machines see it.
        keep: Called with each table that is made once.

    Returns:
        The parts of tables that tasks wrote, in the order of buckets.
    """
    records, attempts = lay_out(run, cut, buckets, staging)
    made = ReplayResults({**initial, WHOLE: cut.whole()})
    parts: list[Part] = []
    for each in passes(steps):
        if each.of_buckets:
            work = BucketPass(each, _needed(each, made), cut, buckets, records, attempts, staging)
            found: list[Report] = run(put_value(staging, work), len(buckets))
            reports = sorted(found, key=lambda report: report.number)
            parts += [part for report in reports for part in report.parts]
            for name in each.gathered:
                made.gathered[name] = []
            for report in reports:
                for name, value in _gathered_results(report).items():
                    made.gathered[name].append(value)
        made.add(each.once, keep, 1)
    return parts


def _needed(work: Pass, results: ReplayResults) -> dict[str, Any]:
    names = {name for step in work.of_buckets for name in step.inputs}
    return {name: value for name, value in results.once.items() if name in names}


def on_spark(spark: SparkSession) -> Run:
    """Return what runs each number in a task of Spark's."""

    def run(place: str, count: int) -> list[Any]:
        return run_tasks(spark, count, partial(run_task, place))

    return run


def run_task(place: str, number: int) -> Report | str:
    """Do one number of what was put into a place: a layout, or `BucketPass`."""
    work: RecordLayout | LotLayout | BucketPass = get_value(place)
    return work.run(number)


def _write_part(staging: str, name: str, rows: pl.DataFrame, groups: GroupBucket | None) -> Part:
    filesystem, root = open_location(staging)
    folder = f"{root}/{name}"
    make_folder(filesystem, folder)
    path = f"{folder}/{uuid.uuid4().hex}.parquet"
    # Polars' own texts are written as they are; a file need not say that they were polars'.
    written = rows.to_arrow(compat_level=pl.CompatLevel.newest())
    with pq.ParquetWriter(
        path,
        written.schema,
        filesystem=filesystem,
        store_schema=False,
        # Numbers of a history seldom repeat: looking for those that do takes as long as all else.
        use_dictionary=[each for each, kind in rows.schema.items() if kind == pl.String],
    ) as file:
        file.write_table(written)
        if groups is not None:
            file.add_key_value_metadata(groups.label_of(rows))
    return Part(folder_of(name), path, rows.height)


def _gathered_results(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = get_value(report.gathered) if report.gathered else {}
    return found
