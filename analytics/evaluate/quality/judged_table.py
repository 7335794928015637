"""Rows of `data_quality`: what came of every expectation of one table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analytics.evaluate.quality.column_types import wrong_columns
from analytics.evaluate.quality.great_expectations_engine import Engine, Judged
from analytics.evaluate.quality.row_checks import mask_of
from schemas.expectation_suites import COLUMNS_TYPE

if TYPE_CHECKING:
    from analytics.evaluate.quality.row_checks import Others
    from schemas.expectation_suites import Expectation

PASSED, FAILED, BROKEN = "passed", "failed", "broken"


@dataclass(frozen=True)
class StoredTable:
    """A table as it is stored.

    Attributes:
        name: Its name.
        schema: As stored.
        rows: The columns that expectations name, as far as they are there.
        key: The columns of its key, to name a row by.
        count: How many rows there are.
    """

    name: str
    schema: pa.Schema
    rows: pa.Table
    key: Sequence[str]
    count: int


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
    found: dict[int, Judged] = {}
    masks: dict[int, pa.Array] = {}
    theirs = []
    for place, each in enumerate(expected):
        lacking = [name for name in each.columns if name not in stored.rows.column_names]
        if each.type == COLUMNS_TYPE:
            found[place] = _of_columns(stored.schema, each.kwargs["types"])
        elif lacking:
            found[place] = Judged(None, reason=f"the table has no column {', '.join(lacking)}")
        elif each.is_own:
            try:
                masks[place] = mask_of(each.type, stored.rows, each.kwargs, each.where, others)
            except Exception as error:  # noqa: BLE001 - a check that breaks is told, and no more
                found[place] = Judged(None, reason=f"{type(error).__name__}: {error}"[:300])
        else:
            theirs.append(place)
    for place, judged in zip(masks, engine.judge_masks(list(masks.values())), strict=True):
        found[place] = _with_example(judged, stored, masks[place], expected[place])
    judged_ones = engine.judge(stored.rows, [expected[each] for each in theirs])
    found |= dict(zip(theirs, judged_ones, strict=True))
    return [_row(stored, each, found[place]) for place, each in enumerate(expected)]


def _of_columns(schema: pa.Schema, types: Mapping[str, str]) -> Judged:
    wrong = wrong_columns(schema, types)
    return Judged(not wrong, len(wrong), wrong[0] if wrong else None)


def _with_example(
    judged: Judged, stored: StoredTable, mask: pa.Array, expected: Expectation
) -> Judged:
    """Name the first row that does not hold by its key, with what the check looked at."""
    if judged.holds is not False:
        return judged
    place = mask.index(pa.scalar(False, pa.bool_())).as_py()  # noqa: FBT003
    names = [*stored.key, *expected.columns]
    row = {
        name: stored.rows[name][place].as_py()
        for name in dict.fromkeys(names)
        if name in stored.rows.column_names
    }
    return replace(judged, example=row)


def _row(stored: StoredTable, expected: Expectation, judged: Judged) -> dict[str, Any]:
    outcome = BROKEN if judged.holds is None else PASSED if judged.holds else FAILED
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
