"""Rows of `data_quality`: what came of every expectation of one table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import ARROW_TYPES
from analytics.questions.data_quality.great_expectations_engine import Engine, Judged
from analytics.questions.data_quality.row_checks import CHECKS, mask_of
from schemas.expectation_suites import COLUMNS_TYPE, OUR_SUITES

if TYPE_CHECKING:
    from analytics.questions.data_quality.row_checks import Others
    from schemas.expectation_suites import Expectation

# Whether a stored table has the columns of its contract, in order and by type.


def wrong_columns(schema: pa.Schema, types: Mapping[str, str]) -> list[str]:
    """Return what is wrong with each column, by its name; nothing where all is well.

    Args:
        schema: As stored.
        types: Spark's type by column, in order; of a list or struct only that it is one counts.
    """
    wrong = [f"{name} is missing" for name in types if name not in schema.names]
    wrong += [f"{name} is unknown" for name in schema.names if name not in types]
    if not wrong and schema.names != list(types):
        wrong.append("columns are in another order")
    for name, said in types.items():
        if name in schema.names and not _is(schema.field(name).type, said):
            wrong.append(f"{name} is {schema.field(name).type}, not {said}")
    return wrong


def _is(stored: pa.DataType, type_name: str) -> bool:
    if type_name.startswith("array"):
        return bool(pa.types.is_list(stored) or pa.types.is_large_list(stored))
    if type_name.startswith("struct"):
        return bool(pa.types.is_struct(stored))
    if type_name == "string":
        return bool(pa.types.is_string(stored) or pa.types.is_large_string(stored))
    return bool(stored == ARROW_TYPES[type_name])


PASSED, FAILED, BROKEN = "passed", "failed", "broken"
MOST_ROWS: Final = 5_000_000
"""Rows of a table that are held in memory at once, as pandas has them."""


@dataclass(frozen=True)
class StoredTable:
    """A table as it is stored.

    Attributes:
        name: Its name.
        schema: As stored.
        rows: The columns that expectations name, as far as they are there; without rows where
            there are too many to be held.
        key: The columns of its key, to name a row by.
        count: How many rows there are.
        checked: By place what came of expectations that were held against its rows in parts.
    """

    name: str
    schema: pa.Schema
    rows: pa.Table
    key: Sequence[str]
    count: int
    checked: Mapping[int, Judged | Counted] = field(default_factory=dict)


def judged_table(
    stored: StoredTable, expected: Sequence[Expectation], others: Others, engine: Engine
) -> list[dict[str, Any]]:
    """Return a row of `data_quality` for each expectation, in their order.

    Args:
        stored: The table.
        expected: What is expected of it.
        others: Reads columns of other tables.
        engine: Judges.
    """
    return judged_tables([(stored, expected)], others, engine)


def judged_tables(
    tables: Iterable[tuple[StoredTable, Sequence[Expectation]]], others: Others, engine: Engine
) -> list[dict[str, Any]]:
    """Return a row of `data_quality` for each expectation of each table, in their order.

    Args:
        tables: One after the other, each with what is expected of it; none is held longer.
        others: Reads columns of other tables.
        engine: Judges.
    """
    rows: list[dict[str, Any]] = []
    counts: dict[int, int] = {}
    for stored, expected in tables:
        found = dict(stored.checked)
        left = {place: each for place, each in enumerate(expected) if place not in found}
        found |= checked(stored, left, others)
        theirs = [place for place in left if place not in found]
        judged = engine.judge(stored.rows, [expected[each] for each in theirs])
        found |= dict(zip(theirs, judged, strict=True))
        for place, each in enumerate(expected):
            one = found[place]
            if isinstance(one, Counted):
                counts[len(rows)] = one.unexpected
                one = Judged(not one.unexpected, one.unexpected, one.example)
            rows.append(_row(stored, each, one))
    for place, holds in zip(counts, engine.judge_counts(list(counts.values())), strict=True):
        rows[place]["outcome"] = PASSED if holds else FAILED
    return rows


@dataclass(frozen=True)
class Counted:
    """What a check of our own counted.

    Attributes:
        unexpected: How many rows are not as expected.
        example: The first of them.
    """

    unexpected: int
    example: Any


def together(parts: Sequence[Mapping[int, Judged | Counted]]) -> dict[int, Judged | Counted]:
    """Return by its place what came of an expectation in all parts of a table."""
    return {place: _together([each[place] for each in parts]) for place in parts[0]}


def _together(parts: Sequence[Judged | Counted]) -> Judged | Counted:
    counted = [each for each in parts if isinstance(each, Counted)]
    if len(counted) < len(parts):
        # What breaks in one part is not known of the table.
        return next(each for each in parts if isinstance(each, Judged))
    examples = (each.example for each in counted if each.example is not None)
    return Counted(sum(each.unexpected for each in counted), next(examples, None))


def is_checked_here(expected: Expectation) -> bool:
    """Return whether an expectation is held against rows by a check of our own."""
    return expected.is_own or (expected.suite in OUR_SUITES and expected.type in CHECKS)


def checked(
    stored: StoredTable, expected: Mapping[int, Expectation], others: Others
) -> dict[int, Judged | Counted]:
    """Return by its place what is not for great-expectations to look at row by row.

    Args:
        stored: The table, or a part of it.
        expected: By place what is expected of it.
        others: Reads columns of other tables.
    """
    found: dict[int, Judged | Counted] = {}
    for place, each in expected.items():
        lacking = [name for name in each.columns if name not in stored.rows.column_names]
        if each.type == COLUMNS_TYPE:
            found[place] = _of_columns(stored.schema, each.kwargs["types"])
        elif lacking:
            found[place] = Judged(None, reason=f"the table has no column {', '.join(lacking)}")
        elif each.columns and stored.rows.num_rows < stored.count:
            why = f"{stored.count:,} rows are more than are checked ({MOST_ROWS:,})"
            found[place] = Judged(None, reason=why)
        elif is_checked_here(each):
            try:
                mask = mask_of(each.type, stored.rows, each.kwargs, each.where, others)
                found[place] = _counted(mask, stored, each)
            except Exception as error:  # noqa: BLE001 - a check that breaks is told, and no more
                found[place] = Judged(None, reason=f"{type(error).__name__}: {error}"[:300])
    return found


def _counted(mask: pa.Array, stored: StoredTable, expected: Expectation) -> Counted:
    """Count rows that do not hold; name the first by its key, with what the check looked at."""
    count = pc.sum(pc.invert(mask)).as_py() or 0
    if not count:
        return Counted(0, None)
    place = mask.index(pa.scalar(False, pa.bool_())).as_py()  # noqa: FBT003
    row = {
        name: stored.rows[name][place].as_py()
        for name in dict.fromkeys([*stored.key, *expected.columns])
        if name in stored.rows.column_names
    }
    return Counted(count, row)


def _of_columns(schema: pa.Schema, types: Mapping[str, str]) -> Judged:
    wrong = wrong_columns(schema, types)
    return Judged(not wrong, len(wrong), wrong[0] if wrong else None)


def _row(stored: StoredTable, expected: Expectation, judged: Judged) -> dict[str, Any]:
    outcome = BROKEN if judged.is_met is None else PASSED if judged.is_met else FAILED
    return {
        "table": stored.name,
        "expectation": expected.name,
        "columns": ", ".join(expected.columns),
        "severity": expected.severity,
        "outcome": outcome,
        "unexpected_count": judged.unexpected,
        "example": None if outcome != FAILED else _text(judged.example),
        "reason": judged.reason if outcome == BROKEN else (expected.about or None),
        "rows": stored.count,
        "suite": expected.suite,
        "type": expected.type,
    }


def _text(example: object) -> str | None:
    if example is None:
        return None
    return json.dumps(example, ensure_ascii=False, default=str)
