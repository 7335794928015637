"""Rows that a rule is about, numbered by finding, and what they come to: one row a finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import polars as pl
from polars import selectors as cs

from analytics.questions.findings.evidence import EVIDENCE, RECORD_PREFIX
from schemas.errors import SchemaError
from schemas.finding_rules import FindingRule

NUMBER: Final = "number of finding"
_ROW: Final = "row of finding"
SINCE: Final = "since of finding"
RECORDS: Final = "records of finding"
_KEY: Final = "key of finding "
_VALUE: Final = "value of finding "
_MORE: Final = "more of finding "
_MOST_RECORDS: Final = 3
_MOST_NAMES: Final = 3
_LISTED: Final = ("names", "numbers")


def key(name: str) -> str:
    """Return the column of `finding_rows` that has one of the columns that findings are per."""
    return _KEY + name


def value(name: str) -> str:
    """Return the column of `finding_rows` that has one of a rule's values."""
    return _VALUE + name


def pieces(rows: pl.DataFrame, per: Sequence[str], at_once: int) -> Iterator[pl.DataFrame]:
    """Yield rows with `NUMBER`, those of some findings at a time.

    The rows of a finding are together, in their order; findings are in order of appearance.

    Args:
        rows: Those that a rule is about.
        per: Columns whose values make one finding; null is one of them.
        at_once: Of how many findings at most.
    """
    if rows.is_empty():
        return
    rows = rows.with_columns(cs.by_dtype(pl.Null, pl.Categorical, pl.Enum).cast(pl.String))
    places = _numbered(rows.select(per))
    numbers = places[NUMBER]
    begins = [*range(0, numbers[-1] + 1, at_once), numbers[-1] + 1]
    bounds = [numbers.search_sorted(each, side="left") for each in begins]
    for first, end in pairwise(bounds):
        some = places.slice(first, end - first)
        yield rows[some[_ROW]].with_columns(some[NUMBER])


def _numbered(keys: pl.DataFrame) -> pl.DataFrame:
    """Return the number of the finding of each row, and the place of the row; by both."""
    distinct = keys.unique(maintain_order=True).with_row_index(NUMBER)
    known = keys.with_row_index(_ROW).join(distinct, on=keys.columns, nulls_equal=True)
    return known.select(NUMBER, _ROW).sort(NUMBER, _ROW)


def finding_rows(rule: FindingRule, rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row a finding.

    Args:
        rule: The rule.
        rows: As `pieces` yields them, with the records that each rests on.

    Returns:
        `NUMBER`; `key` of the columns that findings are per; `value` of the rule's values; `SINCE`,
        null where the rule has no such instant; `RECORDS`, the first records, each once, or a log
        alone where no record is known.
    """
    taken = {value(name): each for name, each in rule.values.items()}
    if rule.since is not None:
        taken[SINCE] = rule.since
    findings = rows.group_by(NUMBER, maintain_order=True).agg(
        *(pl.col(each).first().alias(key(each)) for each in rule.per),
        *(_aggregated(each, rows.schema).alias(name) for name, each in taken.items()),
    )
    findings = findings.with_columns(
        _finished(name, each["take"]) for name, each in taken.items() if each["take"] in _LISTED
    )
    if rule.since is None:
        findings = findings.with_columns(pl.lit(None, pl.Datetime("us", "UTC")).alias(SINCE))
    return findings.join(_records(rows), on=NUMBER, how="left", maintain_order="left").with_columns(
        pl.col(RECORDS).fill_null([])
    )


def _aggregated(aggregation: Mapping[str, str], schema: pl.Schema) -> pl.Expr:
    """Return one value for those that rows have in a column; null where they have none.

    Of `_LISTED` it is all values that are listed, each once, as text.

    Args:
        aggregation: `take`, one of `schemas.finding_rules.AGGREGATIONS`, and `column`.
        schema: Of the rows.
    """
    take = aggregation["take"]
    if take == "count":
        return pl.len().cast(pl.Int64)
    column, kind = pl.col(aggregation["column"]), schema[aggregation["column"]]
    if take in _LISTED:
        if kind != pl.String and not kind.is_integer():
            raise SchemaError(
                f"{take} of {aggregation['column']}: texts and whole numbers are listed"
            )
        known = column.drop_nulls()
        distinct = known.unique(maintain_order=True) if take == "names" else known.unique().sort()
        return distinct.cast(pl.String)
    # What is added up may be more than 64 bits hold.
    total = (column if kind.is_float() else column.cast(pl.Int128)).sum()
    return {
        "sum": pl.when(column.count() > 0).then(total),
        "min": column.min(),
        "max": column.max(),
        "first": column.first(ignore_nulls=True),
    }[take]


def _finished(name: str, take: str) -> pl.Expr:
    """Return what is listed as one text: some names and how many more there are, or all numbers."""
    listed = pl.col(name)
    if take == "numbers":
        text = listed.list.join(",")
    else:
        more = listed.list.len().cast(pl.Int64) - _MOST_NAMES
        also = pl.when(more > 0).then(pl.format(" and {} more", more)).otherwise(pl.lit(""))
        text = pl.concat_str(listed.list.head(_MOST_NAMES).list.join(", "), also)
    return pl.when(listed.list.len() > 0).then(text).alias(name)


def _records(rows: pl.DataFrame) -> pl.DataFrame:
    """Return of each finding the first records of its rows, each once."""
    records = rows.select(NUMBER, *(pl.col(RECORD_PREFIX + each).alias(each) for each in EVIDENCE))
    known = records.drop_nulls("partition").unique(maintain_order=True)
    return known.group_by(NUMBER, maintain_order=True).agg(
        pl.struct(EVIDENCE).head(_MOST_RECORDS).alias(RECORDS)
    )
