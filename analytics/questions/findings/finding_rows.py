"""Rows that a rule is about, numbered by finding, and what they come to: one row a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from polars import selectors as cs

from analytics.questions.findings.evidence import EVIDENCE, RECORD_PREFIX
from schemas.finding_rules import FindingRule
from schemas.reading import SchemaError

if TYPE_CHECKING:
    from schemas.finding_rules import Threshold

# Which rows a rule is about: its conditions as a mask over a table.
#
# A comparison with null holds of nothing: what cannot be told is no finding of that rule.

MINUTES: Final = {"minutes": 1, "hours": 60, "days": 24 * 60}
_COMPARE: Final[Mapping[str, Callable[..., Any]]] = {
    "above": pc.greater,
    "at_least": pc.greater_equal,
    "below": pc.less,
    "at_most": pc.less_equal,
}

Condition = Mapping[str, Any]


def rows_of(rule: FindingRule, table: pa.Table, as_of: datetime) -> pa.Table:
    """Return the rows of a table that a rule is about.

    Args:
        rule: The rule.
        table: The one it names.
        as_of: The instant asked about.
    """
    return table.filter(mask_of(rule, table, as_of)) if table.num_rows else table


def mask_of(rule: FindingRule, table: pa.Table, as_of: datetime) -> Any:  # noqa: ANN401 - Arrow's arrays
    """Return of each row whether a rule is about it; never null.

    Args:
        rule: The rule.
        table: Rows of the one it names, at least one.
        as_of: The instant asked about.
    """
    masks = [_mask(each, table, rule.thresholds, as_of) for each in rule.where]
    both = reduce(pc.and_kleene, masks) if masks else pa.repeat(True, table.num_rows)  # noqa: FBT003
    return pc.fill_null(both, fill_value=False)


def _mask(
    condition: Condition, table: pa.Table, thresholds: Mapping[str, Threshold], as_of: datetime
) -> Any:  # noqa: ANN401 - Arrow's arrays
    column = table[condition["column"]]
    (operator, wanted), *_ = (each for each in condition.items() if each[0] != "column")
    if operator in {"is", "is_not"}:
        values = pa.array(wanted if isinstance(wanted, list) else [wanted]).cast(column.type)
        found = pc.is_in(column, value_set=values)
        return found if operator == "is" else pc.and_(pc.is_valid(column), pc.invert(found))
    if operator == "is_null":
        return pc.is_null(column) if wanted else pc.is_valid(column)
    if operator in {"older_than", "within"}:
        return _near(column, operator, thresholds[wanted], as_of)
    return _COMPARE[operator](column, _bound(wanted, table, thresholds))


def _near(column: pa.ChunkedArray, operator: str, threshold: Threshold, as_of: datetime) -> Any:  # noqa: ANN401
    span = timedelta(minutes=threshold.value * MINUTES[threshold.unit])
    if operator == "older_than":
        return pc.less_equal(column, pa.scalar(as_of - span, column.type))
    return pc.and_kleene(
        pc.greater_equal(column, pa.scalar(as_of, column.type)),
        pc.less_equal(column, pa.scalar(as_of + span, column.type)),
    )


def _bound(
    bound: float | str | Mapping[str, Any], table: pa.Table, thresholds: Mapping[str, Threshold]
) -> Any:  # noqa: ANN401
    if isinstance(bound, Mapping):
        other = table[bound["column"]]
        times = bound.get("times")
        if times is None:
            return other
        factor = thresholds[times].value if isinstance(times, str) else times
        return pc.multiply(other, factor)
    return thresholds[bound].value if isinstance(bound, str) else bound


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
