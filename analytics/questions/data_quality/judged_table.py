"""Rows of `data_quality`: checks of a table's columns, and what came of every expectation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import ARROW_TYPES, are_in_strict_order, polars_rows
from analytics.questions.data_quality.great_expectations_engine import Engine, Judged
from schemas.expectation_suites import COLUMNS_TYPE, IN_SET, NOT_NULL, OUR_SUITES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Others = Callable[[str, Sequence[str]], Iterable[pa.Table]]
    """Reads columns of another table of the same workspace, some rows at a time."""
    from schemas.expectation_suites import Expectation

# Checks of our own: columns of a table as a mask of what holds, row by row, exact for any int64.
#
# great-expectations takes bounds as floats, which cannot tell offsets beyond 2^53 apart; here
# numbers are compared as they are stored. Null is: nothing to say of this row.

_NO: Final = pa.scalar(None, pa.bool_())
_MANY_ROWS: Final = 500_000


def mask_of(
    check: str,
    rows: pa.Table,
    kwargs: Mapping[str, Any],
    where: Mapping[str, Sequence[Any]],
    others: Others,
) -> pa.Array:
    """Return by row whether it holds; null where it is not about the row.

    Args:
        check: A key of `CHECKS`.
        rows: The columns it names, each in one piece.
        kwargs: Its arguments.
        where: Which rows it is about: allowed values by column.
        others: Reads other tables.

    Raises:
        KeyError: There is no such check.
    """
    found = CHECKS[check](rows, kwargs, others)
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    if not where:
        return found
    wanted = reduce(pc.and_, [_is_one_of(rows[name], said) for name, said in where.items()])
    return pc.if_else(wanted.combine_chunks(), found, _NO)


def _is_one_of(column: pa.ChunkedArray, allowed: Sequence[Any]) -> pa.ChunkedArray:
    # Among the allowed ones null is null.
    return pc.is_in(column, value_set=pa.array(allowed).cast(column.type))


def _not_null(rows: pa.Table, kwargs: Mapping[str, Any], _: Others) -> Any:  # noqa: ANN401
    return pc.is_valid(rows[kwargs["column"]])


def _in_set(rows: pa.Table, kwargs: Mapping[str, Any], _: Others) -> Any:  # noqa: ANN401
    column = rows[kwargs["column"]]
    return pc.if_else(pc.is_valid(column), _is_one_of(column, kwargs["value_set"]), _NO)


def _at_least(rows: pa.Table, kwargs: Mapping[str, Any], _: Others) -> Any:  # noqa: ANN401
    return pc.greater_equal(rows[kwargs["column"]], _bound(rows, kwargs))


def _at_most(rows: pa.Table, kwargs: Mapping[str, Any], _: Others) -> Any:  # noqa: ANN401
    return pc.less_equal(rows[kwargs["column"]], _bound(rows, kwargs))


def _bound(rows: pa.Table, kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
    column = rows[kwargs["column"]]
    if "other" in kwargs:
        return rows[kwargs["other"]]
    kind = pa.int64() if pa.types.is_integer(column.type) else column.type
    return pa.scalar(kwargs["value"], kind)


def _sum(rows: pa.Table, kwargs: Mapping[str, Any], _: Others) -> Any:  # noqa: ANN401
    """Hold a column to be the sum of others; where one is null there is nothing to say."""
    total = pa.scalar(0, pa.int64())
    for name in kwargs.get("plus", ()):
        total = pc.add_checked(total, rows[name])
    for name in kwargs.get("minus", ()):
        total = pc.subtract_checked(total, rows[name])
    return pc.equal(rows[kwargs["column"]], total)


def _in_table(rows: pa.Table, kwargs: Mapping[str, Any], others: Others) -> Any:  # noqa: ANN401
    """Hold values to be in another table; rows with a null among them are not asked."""
    names = list(kwargs["columns"])
    there = others(kwargs["table"], list(kwargs.get("other_columns", names)))
    is_asked = reduce(pc.and_, [pc.is_valid(rows[name]) for name in names])
    numbered = rows.select(names).append_column("_row", pa.array(np.arange(rows.num_rows)))
    missing = polars_rows(numbered.filter(is_asked))
    for piece in _many_rows(there):
        if missing.is_empty():
            break
        named = piece.rename_columns(names)
        missing = missing.join(polars_rows(named.cast(_like(rows, named))), on=names, how="anti")
    found = np.ones(rows.num_rows, np.bool_)
    found[missing["_row"].to_numpy()] = False
    return pc.if_else(is_asked, pa.array(found), _NO)


def _many_rows(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of pieces many together: each time all that is missing is looked for."""
    held: list[pa.Table] = []
    for piece in pieces:
        held.append(piece)
        if sum(each.num_rows for each in held) >= _MANY_ROWS:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _like(rows: pa.Table, others: pa.Table) -> pa.Schema:
    """Return the others' schema with the types that columns of these names have here."""
    here = rows.schema
    return pa.schema(
        [here.field(each.name) if each.name in here.names else each for each in others.schema]
    )


def _differ(rows: pa.Table, kwargs: Mapping[str, Any], _: Others) -> Any:  # noqa: ANN401
    """Hold rows to differ in some columns; null is a value like others, and no list is asked."""
    names = list(kwargs["columns"])
    asked = polars_rows(rows.select(names))
    # Rows are mostly stored in the order of their key: to look at that holds no table of all.
    if are_in_strict_order(asked, names):
        return pa.array(np.ones(rows.num_rows, np.bool_))
    has_floats = any(asked[name].dtype.is_float() for name in names)
    # Rows that are equal have the same hash: where none have it twice, no rows are compared.
    if not has_floats and asked.hash_rows().n_unique() == len(asked):
        return pa.array(np.ones(rows.num_rows, np.bool_))
    return (~asked.is_duplicated()).to_arrow()


def _never_back(rows: pa.Table, kwargs: Mapping[str, Any], _: Others) -> Any:  # noqa: ANN401
    """Hold a number never to be lower than the last one told before it, of the same `per`.

    It may where `epoch` is another one than the last that was told, and behind a row that
    `restarts` names.
    """
    code, order = _in_order(rows, kwargs)
    column = rows[kwargs["column"]].combine_chunks()
    number, is_told = _numbers(column)
    if "epoch" in kwargs:
        code = _also(code, _last_told(rows[kwargs["epoch"]].combine_chunks(), code, order))
    for name, said in kwargs.get("restarts", {}).items():
        is_restart = pc.is_in(rows[name], value_set=pa.array(said)).to_numpy(zero_copy_only=False)
        begun = np.zeros(rows.num_rows, np.int64)
        begun[order] = np.concatenate([[0], np.cumsum(is_restart[order])])[:-1]
        code = _also(code, begun)
    told = order[is_told[order]]
    told = told[np.argsort(code[told], kind="stable")]
    is_next = code[told][1:] == code[told][:-1]
    holds = np.ones(told.size, np.bool_)
    holds[1:] = ~is_next | (number[told][1:] >= number[told][:-1])
    found = np.zeros(rows.num_rows, np.bool_)
    found[told] = holds
    return pa.array(found, mask=~is_told)


def _apart(rows: pa.Table, kwargs: Mapping[str, Any], _: Others) -> Any:  # noqa: ANN401
    """Hold ranges of offsets, `first` to `last`, of the same `per` not to overlap."""
    code, order = _in_order(rows, {**kwargs, "by": [kwargs["first"]]})
    first, _told = _numbers(rows[kwargs["first"]].combine_chunks())
    last, _told = _numbers(rows[kwargs["last"]].combine_chunks())
    order = order[np.argsort(code[order], kind="stable")]
    holds = np.ones(rows.num_rows, np.bool_)
    is_next = code[order][1:] == code[order][:-1]
    holds[order[1:]] = ~is_next | (first[order][1:] > last[order][:-1])
    return pa.array(holds)


def _in_order(
    rows: pa.Table, kwargs: Mapping[str, Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of each row's `per`, and the order of rows by `by`."""
    code = _codes(rows, kwargs.get("per", ()))
    by = [_numbers(rows[name].combine_chunks())[0] for name in reversed(kwargs["by"])]
    return code, np.lexsort(by).astype(np.int64)


def _codes(rows: pa.Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return one number for all rows that are equal in some columns."""
    code = np.zeros(rows.num_rows, np.int64)
    for name in names:
        code = _paired(code, _encoded(rows[name].combine_chunks()))
    return code


def _also(code: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number for each pair of numbers."""
    return _paired(code, _encoded(pa.array(other)))


def _paired(code: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number for each pair of numbers that `_encoded` gave."""
    # Both are below the number of rows, so their product is far below 2^63.
    return _encoded(pa.array(code * (other.max(initial=0) + 1) + other))


def _encoded(values: pa.Array) -> NDArray[np.int64]:
    """Return the number of each value, null among them, in order of appearance: no sort."""
    numbers: NDArray[np.int64] = values.dictionary_encode("encode").indices.to_numpy()
    return numbers.astype(np.int64)


def _numbers(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return numbers as they are stored, 0 for null, and which are told; times in microseconds."""
    is_told = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    whole = pc.fill_null(column.cast(pa.int64()), 0)
    return whole.to_numpy(zero_copy_only=False), is_told


def _last_told(
    column: pa.Array, code: NDArray[np.int64], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return by row the last number told up to it, of the same code."""
    number, is_told = _numbers(column)
    order = order[np.argsort(code[order], kind="stable")]
    place = np.where(is_told[order], np.arange(order.size), -1)
    latest = np.maximum.accumulate(place) if place.size else place
    begins = np.r_[True, code[order][1:] != code[order][:-1]][: order.size]
    first = np.maximum.accumulate(np.where(begins, np.arange(order.size), 0))
    known = latest >= first
    found = np.full(order.size, -1, np.int64)
    found[order] = np.where(known, number[order][np.maximum(latest, 0)], -1)
    return found


CHECKS: Final[Mapping[str, Callable[[pa.Table, Mapping[str, Any], Others], Any]]] = {
    NOT_NULL: _not_null,
    IN_SET: _in_set,
    "expect_rows_at_least": _at_least,
    "expect_rows_at_most": _at_most,
    "expect_rows_to_be_the_sum": _sum,
    "expect_rows_to_be_in_table": _in_table,
    "expect_rows_to_differ_in": _differ,
    "expect_rows_never_to_go_back": _never_back,
    "expect_rows_not_to_overlap": _apart,
}
"""By the type of the expectation, what holds of each row.

The library's own two are what contracts and our suites say most; a team's are left to the library.
"""

ROW_BY_ROW: Final = frozenset(
    {
        *(NOT_NULL, IN_SET, "expect_rows_at_least", "expect_rows_at_most"),
        "expect_rows_to_be_the_sum",
    }
)
"""Types that look at one row at a time."""


# Rows of `data_quality`: what came of every expectation of one table.

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
    if any(map(is_checked_here, expected.values())):
        # Once for all of them: each would copy what is in several pieces.
        stored = replace(stored, rows=stored.rows.combine_chunks())
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
