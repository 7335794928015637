"""Which rows a rule is about: its conditions as a mask over a table.

A comparison with null holds of nothing: what cannot be told is no finding of that rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from schemas.finding_rules import FindingRule, Threshold

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
