"""The tables of a replay, made in passes over buckets of records: here, or in tasks on Spark.

What all tasks take, and what each gives back besides parts of tables, goes through the staging
folder: it can be larger than what Spark sends along with tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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
from analytics.engine.part_runs import get_value, put_value
from analytics.engine.record_layout import Run, bucket_number, lay_out, run_task
from analytics.locations import make_folder, open_location
from analytics.replay.graph import Pass, TableStep, passes, resolve
from analytics.replay.history.partition_history import epochs_seen
from analytics.spark_tasks import run_tasks
from analytics.tables.buckets import Bucket, BucketFiles, GroupBucket, rows_of_bucket
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
        of_groups: By name what was made once and lies apart by bucket, here without rows.
        apart: The folder in which it lies.
        cut: What is read.
        buckets: All records, in parts that fit into memory.
        records: The folder in which they are laid out.
        attempts: What names of the files there end with that count.
        staging: Where tasks write.
    """

    work: Pass
    inputs: Mapping[str, Any]
    of_groups: Mapping[str, pl.DataFrame]
    apart: str
    cut: Cut
    buckets: Sequence[Bucket]
    records: str
    attempts: frozenset[str]
    staging: str

    def run(self, number: int) -> Report:
        """Make what the pass makes of one bucket."""
        laid = partial(rows_of_bucket, self.records, number, attempts=self.attempts)
        here: dict[str, Any] = {CUT: self.cut.of(self.buckets[number], laid)}
        own = {
            name: pl.concat([empty, *rows_of_bucket(self.apart, number, name)])
            for name, empty in self.of_groups.items()
        }
        here |= resolve(self.work.of_buckets, {**self.inputs, **own, **here})
        parts: list[Part] = []

        def keep(name: str, rows: pl.DataFrame) -> None:
            if rows.height:
                groups = self.buckets[number].groups
                parts.append(_write_part(self.staging, name, rows, groups))

        keep_tables(written_steps(self.work), here, keep)
        gathered = {name: here[name] for name in self.work.gathered}
        return Report(number, parts, put_value(self.staging, gathered) if gathered else None)


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
    by_group = {step.output for step in steps if step.of_groups}
    parts: list[Part] = []
    for each in passes(steps):
        if each.of_buckets:
            needed = _needed(each, made)
            of_groups = {name: needed.pop(name) for name in by_group & needed.keys()}
            apart = f"{staging}/apart-{uuid.uuid4().hex}"
            empty = {
                name: _lay_apart(apart, name, rows, buckets) for name, rows in of_groups.items()
            }
            records = laid.place, laid.attempts
            work = BucketPass(each, needed, empty, apart, cut, buckets, *records, staging)
            found: Sequence[Report] = run(put_value(staging, work), len(buckets))
            reports = sorted(found, key=lambda report: report.number)
            parts += [part for report in reports for part in report.parts]
            for name in each.gathered:
                made.gathered[name] = []
            for report in reports:
                for name, value in _gathered_results(report).items():
                    made.gathered[name].append(value)
        made.add(each.once, keep, 1)
    return parts


def _lay_apart(
    place: str, name: str, rows: pl.DataFrame, buckets: Sequence[Bucket]
) -> pl.DataFrame:
    """Lay rows out by the buckets of their groups; return them without rows.

    All tasks together read each row once: handed to every task they would be read as often as
    there are buckets.
    """
    if rows.height:
        with BucketFiles(place, name) as files:
            files.add(rows, bucket_number(spread(pl.col("group_id")), CONSUMER_OFFSETS, buckets))
    return rows.clear()


def _needed(work: Pass, results: ReplayResults) -> dict[str, Any]:
    names = {name for step in work.of_buckets for name in step.inputs}
    return {name: value for name, value in results.once.items() if name in names}


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


def _gathered_results(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = get_value(report.gathered) if report.gathered else {}
    return found
