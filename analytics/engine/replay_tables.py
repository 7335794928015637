"""The tables of a replay, made in passes over buckets of records: here, or in tasks on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa

from analytics.contracts import check_values, contract_frame, contract_schema
from analytics.engine.cut_tables import Cut, LaidOutRecords
from analytics.key_order import in_key_order
from analytics.replay.graph import Pass, TableStep, passes, resolve
from analytics.replay.log.arrow_rows import arrow_rows
from analytics.tables.buckets import Bucket
from schemas import table

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
