"""The tables of a replay, made in passes over buckets of records: here, or in tasks on Spark.

What all tasks take, and what each gives back besides parts of tables, goes through the staging
folder: it can be larger than what Spark sends along with tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.contracts import (
    arrow_rows,
    check_values,
    contract_frame,
    contract_schema,
    in_key_order,
)
from analytics.decode.chunks import CONTROL_TABLE
from analytics.engine.cut_tables import Cut
from analytics.engine.part_runs import get_value, put_value, put_value_at
from analytics.engine.record_layout import Run, bucket_number, lay_out, run_task
from analytics.locations import make_folder, open_location
from analytics.replay.graph import Pass, TableStep, passes, resolve
from analytics.replay.history.partition_history import epochs_seen
from analytics.spark_tasks import run_tasks
from analytics.tables.buckets import (
    Bucket,
    BucketFiles,
    GroupBucket,
    buckets_in,
    rows_of_bucket,
)
from analytics.tables.record_keys import spread
from analytics.tables.stored_tables import folder_of
from analytics.workspace import Part
from schemas import CONSUMER_OFFSETS, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CUT, WHOLE, MARKER_EPOCHS = "cut", "whole", "marker_epochs"
"""What steps are given of the records: see `analytics.replay.state`."""

_AT_ONCE = 2
"""Steps that run at the same time: most of a small one is Python, which keeps one core busy."""

_LIGHT_AT_ONCE = 16
"""Buckets that a task looks at where no record is read: each task has its cost."""
_TOGETHER = 64
"""So many results are held before they are put together."""
_HOME = "coordinator_partition"
_GATHERED = "gathered"

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
    here = {CUT: cut.of(None)}
    seen = epochs_seen({CONTROL_TABLE: here[CUT][CONTROL_TABLE]})
    made = ReplayResults({**initial, WHOLE: cut.whole(), MARKER_EPOCHS: seen})
    for each in passes(steps):
        todo = [step for step in each.of_buckets if step.output not in here]
        found = resolve(todo, {**made.once, **here}, at_once=_AT_ONCE)
        here |= found
        made.gathered |= {name: [here[name]] for name in each.gathered}
        keep_tables(written_steps(each), here, keep)
        made.add(each.once, keep, _AT_ONCE)


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


@dataclass(frozen=True)
class Report:
    """What was made of a bucket.

    Attributes:
        number: Of the bucket.
        parts: The parts of tables that were written.
        attempt: What names of files end with that were written besides; None where none were.
    """

    number: int
    parts: list[Part]
    attempt: str | None


@dataclass(frozen=True)
class BucketPass:
    """A pass over the buckets.

    Attributes:
        work: The pass.
        inputs: What its steps are given, and what was made once.
        apart: By name what was made by partition and lies by bucket.
        by_partition: What is gathered by partition.
        cut: What is read.
        buckets: All records, in parts that fit into memory.
        records: The folder in which they are laid out.
        attempts: What names of the files there end with that count.
        attempts_before: By name of each bucket the attempt that kept it.
        staging: Where tasks write.
    """

    work: Pass
    inputs: Mapping[str, Any]
    apart: Mapping[str, RowsApart]
    by_partition: frozenset[str]
    cut: Cut
    buckets: Sequence[Bucket]
    records: str
    attempts: frozenset[str]
    attempts_before: Mapping[str, Sequence[str]]
    staging: str

    @property
    def at_once(self) -> int:
        """How many buckets a task looks at: several where no record is read."""
        reads_records = any(CUT in step.inputs for step in self.work.of_buckets)
        return 1 if reads_records else _LIGHT_AT_ONCE

    @property
    def count(self) -> int:
        """How many tasks there are."""
        return -(-len(self.buckets) // self.at_once)

    def run(self, number: int) -> list[Report]:
        """Make what the pass makes of some buckets, of one mostly."""
        first = number * self.at_once
        return [self._of_bucket(each) for each in range(len(self.buckets))[first:][: self.at_once]]

    def _of_bucket(self, number: int) -> Report:
        laid = partial(rows_of_bucket, self.records, number, attempts=self.attempts)
        here: dict[str, Any] = {CUT: self.cut.of(self.buckets[number], laid)}
        here |= {name: each.of_bucket(number) for name, each in self.apart.items()}
        here |= {
            name: get_value(_beside(self.staging, name, attempts[number]))
            for name, attempts in self.attempts_before.items()
        }
        here |= resolve(self.work.of_buckets, {**self.inputs, **here})
        parts: list[Part] = []

        def keep(name: str, rows: pl.DataFrame) -> None:
            if rows.height:
                groups = self.buckets[number].groups
                parts.append(_write_part(self.staging, name, rows, groups))

        keep_tables(written_steps(self.work), here, keep)
        return Report(number, parts, self._put_beside(here))

    def _put_beside(self, results: Mapping[str, Any]) -> str | None:
        """Write what is not of tables; return the attempt, None where there is nothing."""
        if not (self.work.gathered or self.work.keeps):
            return None
        attempt = uuid.uuid4().hex
        gathered = {name: results[name] for name in self.work.gathered - self.by_partition}
        put_value_at(_beside(self.staging, _GATHERED, attempt), gathered)
        for name in self.work.keeps:
            put_value_at(_beside(self.staging, name, attempt), results[name])
        for name in self.work.gathered & self.by_partition:
            with BucketFiles(_partitions_of(self.staging, name), name, f"0-{attempt}") as files:
                files.add(results[name], pl.col(_HOME).cast(pl.Int64))
        return attempt


@dataclass(frozen=True)
class RowsApart:
    """Rows of groups that lie apart by bucket.

    Attributes:
        place: The folder of all buckets.
        name: What they are.
        attempts: What names of the files there end with that count.
        empty: Such rows, none of them.
    """

    place: str
    name: str
    attempts: frozenset[str]
    empty: pl.DataFrame

    def of_bucket(self, number: int) -> pl.DataFrame:
        """Return those of a bucket."""
        return pl.concat(
            [self.empty, *rows_of_bucket(self.place, number, self.name, self.attempts)]
        )


@dataclass(frozen=True)
class PartitionStep:
    """A step that is made partition by partition, of what buckets gave.

    Attributes:
        step: The step.
        inputs: What is given or was made once.
        partitions: Those of which there are rows.
        attempts: What names of the files of rows end with that count.
        buckets: Into which what is made is laid.
        staging: Where tasks write.
    """

    step: TableStep
    inputs: Mapping[str, Any]
    partitions: Sequence[int]
    attempts: frozenset[str]
    buckets: Sequence[Bucket]
    staging: str

    def run(self, number: int) -> str:
        """Make it of one partition; return what the names of this attempt's files end with."""
        attempt, partition = uuid.uuid4().hex, self.partitions[number]
        rows = self.result(
            lambda name: list(
                rows_of_bucket(_partitions_of(self.staging, name), partition, name, self.attempts)
            )
        )
        if rows.height:
            into = bucket_number(spread(pl.col("group_id")), CONSUMER_OFFSETS, self.buckets)
            with BucketFiles(self.place, self.step.output, f"{number}-{attempt}") as files:
                files.add(rows, into)
        return attempt

    @property
    def place(self) -> str:
        """The folder of what is made."""
        return f"{self.staging}/apart-{self.step.output}"

    def result(self, rows_of: Callable[[str], list[pl.DataFrame]]) -> pl.DataFrame:
        """Return what is made of rows by name."""
        taken = (self.inputs[n] if n in self.inputs else rows_of(n) for n in self.step.inputs)
        rows: pl.DataFrame = self.step.function(*taken)
        return rows


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
    laid = lay_out(run, cut, buckets, staging)
    given = {**initial, WHOLE: cut.whole(), MARKER_EPOCHS: laid.marker_epochs}
    made = ReplayResults(given)
    by_partition = frozenset(n for step in steps if step.by_partition for n in step.inputs)
    together = {step.output: step.together for step in steps}
    apart: dict[str, RowsApart] = {}
    kept: dict[str, list[str]] = {}
    parts: list[Part] = []
    attempts = frozenset[str]()
    for each in passes(steps):
        if each.of_buckets:
            names = {name for step in each.of_buckets for name in step.inputs}
            needed = {name: value for name, value in made.once.items() if name in names}
            of_groups = {name: value for name, value in apart.items() if name in names}
            again = {name: kept[name] for name in each.reads}
            records = laid.place, laid.attempts
            work = BucketPass(
                each, needed, of_groups, by_partition, cut, buckets, *records, again, staging
            )
            found: Sequence[Sequence[Report]] = run(put_value(staging, work), work.count)
            reports = sorted(chain.from_iterable(found), key=lambda report: report.number)
            parts += [part for report in reports for part in report.parts]
            its = [report.attempt for report in reports if report.attempt]
            attempts |= set(its)
            kept |= dict.fromkeys(each.keeps, its)
            places = (_beside(staging, _GATHERED, attempt) for attempt in its)
            made.gathered |= _gathered(places, each.gathered - by_partition, together)
        for step in each.once:
            if step.by_partition:
                apart[step.output] = _by_partition(run, step, made.once, attempts, buckets, staging)
        made.add([step for step in each.once if not step.by_partition], keep, 1)
    return parts


def _by_partition(
    run: Run,
    step: TableStep,
    once: Mapping[str, Any],
    attempts: frozenset[str],
    buckets: Sequence[Bucket],
    staging: str,
) -> RowsApart:
    """Make a step of each partition of which buckets gave rows, in a task each."""
    inputs = {name: once[name] for name in step.inputs if name in once}
    rows = (_partitions_of(staging, name) for name in step.inputs if name not in once)
    partitions = sorted(set(chain.from_iterable(map(buckets_in, rows))))
    work = PartitionStep(step, inputs, partitions, attempts, buckets, staging)
    found = frozenset[str](run(put_value(staging, work), len(partitions)) if partitions else ())
    return RowsApart(work.place, step.output, found, work.result(lambda _: []))


def _gathered(
    places: Iterable[str],
    names: Collection[str],
    together: Mapping[str, Callable[[Sequence[Any]], Any] | None],
) -> dict[str, list[Any]]:
    """Return by name what tasks made, put together as it comes where there is a way to."""
    found: dict[str, list[Any]] = {name: [] for name in names}
    for place in places if names else ():
        for name, value in get_value(place).items():
            held, put_together = found[name], together[name]
            held.append(value)
            if put_together is not None and len(held) == _TOGETHER:
                found[name] = [put_together(held)]
    return found


def _beside(staging: str, name: str, attempt: str) -> str:
    return f"{staging}/between-{name}/{attempt}"


def _partitions_of(staging: str, name: str) -> str:
    return f"{staging}/partitions-{name}"


def on_spark(spark: SparkSession) -> Run:
    """Return what runs each number in a task of Spark's."""

    def run(place: str, count: int) -> list[Any]:
        return run_tasks(spark, count, partial(run_task, place))

    return run


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
