"""The tables `assignment_balance` and `assignment_alternatives`, from cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analytics.evaluate.balance.alternatives import alternatives
from analytics.evaluate.balance.case import Case
from analytics.evaluate.balance.case_rows import Row, case_of
from analytics.evaluate.balance.judge import judge
from analytics.spark_worker import on_worker
from schemas import table
from schemas.evaluation_rules import BalanceRules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ARROW = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}

_Evaluate = Callable[[Row], Iterable[dict[str, Any]]]


def assignment_balance(cases: DataFrame, rules: BalanceRules, gaps: Mapping[str, str]) -> DataFrame:
    """Judge every case.

    Args:
        cases: One row a group and stretch of time (`cases_at`, `cases_of_history`).
        rules: Bands.
        gaps: Groups of which the dump lacks records that may matter, with why.
    """

    def judged(row: Row) -> Iterator[dict[str, Any]]:
        yield asdict(judge(case_with_gaps(row, gaps), rules))

    return _evaluated(cases, "assignment_balance", judged)


def assignment_alternatives(cases: DataFrame, gaps: Mapping[str, str]) -> DataFrame:
    """Run every fitting assignor on every case; arguments as in `assignment_balance`."""

    def tried(row: Row) -> Iterator[dict[str, Any]]:
        yield from map(asdict, alternatives(case_with_gaps(row, gaps)))

    return _evaluated(cases, "assignment_alternatives", tried)


def case_with_gaps(row: Row, gaps: Mapping[str, str]) -> Case:
    """Return the case of a row, unreadable where the dump lacks records of its group."""
    case = case_of(row)
    return replace(case, unreadable=gaps.get(case.group_id, case.unreadable))


def _evaluated(cases: DataFrame, name: str, evaluate: _Evaluate) -> DataFrame:
    """Run plain Python group by group: what is in a group fits into memory many times."""
    columns = table(name).columns
    schema = pa.schema([(column.name, _ARROW[column.type]) for column in columns])

    @on_worker
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [
                {**span_of(row), **each} for row in batch.to_pylist() for each in evaluate(row)
            ]
            yield pa.RecordBatch.from_pylist(found, schema=schema)

    return cases.mapInArrow(run, table(name).ddl(not_null=False))


def span_of(row: Row) -> dict[str, Any]:
    """Return the time that a case stands for."""
    return {name: row[name] for name in ("from_offset", "from_timestamp", "to_timestamp")}
