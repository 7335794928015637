"""A replay in tasks on Spark: each reads a bucket of records, and writes what is made of it.

What all tasks take, and what each gives back besides parts of tables, goes through the staging
folder: it can be larger than what Spark sends along with tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow.parquet as pq

from analytics.engine.laid_records import RecordLayout, record_layout
from analytics.engine.replay_tables import (
    WHOLE,
    Keep,
    ReplayResults,
    keep_tables,
    of_bucket,
    written_steps,
)
from analytics.engine.staged_values import get_value, put_value
from analytics.replay.graph import Pass, TableStep, passes, resolve
from analytics.spark_tasks import run_tasks
from analytics.tables.buckets import rows_of_bucket
from analytics.tables.stored_tables import folder_of
from analytics.workspace import Part, open_location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.engine.cut_tables import Cut
    from analytics.tables.buckets import Bucket


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
                parts.append(_write_part(self.staging, name, rows))

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
    records = f"{staging}/records"
    lays_out = record_layout(cut, buckets, records)
    attempts = frozenset[str](run(put_value(staging, lays_out), len(lays_out.tasks)))
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
    """Do one number of what was put into a place: `RecordLayout` or `BucketPass`."""
    work: RecordLayout | BucketPass = get_value(place)
    return work.run(number)


def _write_part(staging: str, name: str, rows: pl.DataFrame) -> Part:
    filesystem, root = open_location(staging)
    folder = f"{root}/{name}"
    filesystem.create_dir(folder, recursive=True)
    path = f"{folder}/{uuid.uuid4().hex}.parquet"
    pq.write_table(
        # Polars' own texts are written as they are; a file need not say that they were polars'.
        rows.to_arrow(compat_level=pl.CompatLevel.newest()),
        path,
        filesystem=filesystem,
        store_schema=False,
        # Numbers of a history seldom repeat: looking for those that do takes as long as all else.
        use_dictionary=[each for each, kind in rows.schema.items() if kind == pl.String],
    )
    return Part(folder_of(name), path, rows.height)


def _gathered_results(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = get_value(report.gathered) if report.gathered else {}
    return found
