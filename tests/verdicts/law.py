"""The law of missing evidence: a row that claims to be complete is as the whole dump has it.

Rows of every table of every question are held against those of the same key in an audit of the
whole dump, by the contracts of `schemas/tables`: each is equal, or it is marked, or the command
ended with 3. Which columns may differ all the same is in `data/law.json`, with the reason.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from analytics.epoch_times import milliseconds_of
from analytics.replay.dump.times import last_time
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from schemas import tables
from schemas.model import Table
from tests.verdicts.held import CANNOT_TELL, RIGHT, WRONG, Held

KINDS = frozenset({"state", "history", "evaluation"})
_DECLARED = Path(__file__).parent / "law.json"
_UNTOLD = frozenset({"cannot_tell", "unknown", "not_known"})
"""Words with which a row says that it does not know."""


@dataclass(frozen=True)
class Answers:
    """An audit: its tables, its exit code, and what it says of that."""

    folder: Path
    code: int
    said: str

    def table(self, name: str) -> pl.DataFrame | None:
        """Return a table, or None where the audit has none of that name."""
        stored = StoredTables(Workspace(str(self.folder)))
        return pl.DataFrame(stored.read(name)) if stored.has(name) else None

    def instant(self) -> datetime | None:
        """Return when what was audited ends."""
        return last_time(Workspace(str(self.folder)).manifest())


@cache
def declared() -> Mapping[str, Any]:
    """Return what may differ: tables and columns, each with the reason."""
    found: Mapping[str, Any] = json.loads(_DECLARED.read_text("utf-8"))
    return found


def hold_law(
    whole: Answers, part: Answers, *, leave_out: frozenset[str] = frozenset()
) -> dict[str, Held]:
    """Hold each table of an audit without some evidence against that of the whole dump.

    Args:
        whole: The audit of the whole dump.
        part: The audit of what is left of it.
        leave_out: Columns, columns of a table (`table.column`), types of columns, or tables, that
            what was done changes.
    """
    free = {*declared()["tables"], *leave_out}
    return {
        name: _hold_table(contract, whole, part, leave_out)
        for name, contract in tables().items()
        if contract.kind in KINDS and name not in free
    }


def _hold_table(contract: Table, whole: Answers, part: Answers, leave_out: frozenset[str]) -> Held:
    held = Held()
    before, after = whole.table(contract.name), part.table(contract.name)
    if before is None or after is None:
        return held
    columns = compared_columns(contract, after, leave_out)
    before, measured = _as_of_the_part(before, whole.instant(), part.instant())
    for row, others in _pairs(contract, before, after, leave_out):
        if _is_weaker(contract, row, before, leave_out):
            held.add(RIGHT, str(row.get("group_id")), "")
            continue
        group = str(row.get("group_id"))
        place = ", ".join(str(row[name]) for name in contract.key)
        word = CANNOT_TELL if is_marked(contract.name, row) or _is_covered(part, row) else WRONG
        if not others:
            held.add(word, group, f"{contract.name} of {place}: is no row of the whole dump")
            continue
        differing = min(
            (
                _differing(columns, other, row, measured, _counted_since(contract.name, other, row))
                for other in others
            ),
            key=len,
        )
        if not differing:
            held.add(RIGHT, group, "")
            continue
        shown = "; ".join(f"{name} {a!s:.60} -> {b!s:.60}" for name, (a, b) in differing.items())
        held.add(word, group, f"{contract.name} of {place}: {shown}")
    return held


def hold_equal(whole: Answers, part: Answers) -> dict[str, Held]:
    """Hold an audit that lacks nothing: it has the same tables, rows and exit code."""
    code = Held()
    code.add(RIGHT if whole.code == part.code else WRONG, "", f"exit {whole.code} -> {part.code}")
    return {
        "exit code": code,
        **{
            name: _hold_rows(contract, whole.table(name), part.table(name))
            for name, contract in tables().items()
            if contract.kind in KINDS
        },
    }


def _hold_rows(contract: Table, before: pl.DataFrame | None, after: pl.DataFrame | None) -> Held:
    """Hold rows that have to be the same; cells, too, that are empty on one side only."""
    held = Held()
    old, new = (() if each is None else each.iter_rows(named=True) for each in (before, after))
    there = {_key(contract.key, row): row for row in old}
    for row in new:
        other = there.pop(_key(contract.key, row), {})
        differing = {
            name: (other.get(name), value)
            for name, value in row.items()
            if not _equal(other.get(name), value) or (value is None) != (other.get(name) is None)
        }
        place = ", ".join(_key(contract.key, row))
        word = WRONG if differing or not other else RIGHT
        held.add(word, "", f"{contract.name} of {place}: {differing}")
    for key in there:
        held.add(WRONG, "", f"{contract.name} of {', '.join(key)}: is gone")
    return held


def _as_of_the_part(
    before: pl.DataFrame, whole: datetime | None, part: datetime | None
) -> tuple[pl.DataFrame, Mapping[str, int]]:
    """Return a table of the whole dump as of where the part ends, which may be earlier.

    What was at the instant is at that one; how much less, or more, what is measured up to it may be
    is the second, by column.
    """
    if whole is None or part is None or part >= whole:
        return before, {}
    earlier = milliseconds_of(whole) - milliseconds_of(part)
    measured = {name: -sign * earlier for name, sign in declared()["instant"]["columns"].items()}
    times = [name for name, kind in before.schema.items() if isinstance(kind, pl.Datetime)]
    moved = [
        pl.when(pl.col(name) == whole).then(pl.lit(part, before.schema[name])).otherwise(name)
        for name in times
    ]
    return before.with_columns(
        moved_to.alias(name) for name, moved_to in zip(times, moved, strict=True)
    ), measured


def _differing(
    columns: Iterable[str],
    other: Mapping[str, Any],
    row: Mapping[str, Any],
    measured: Mapping[str, int],
    since: frozenset[str],
) -> dict[str, tuple[Any, Any]]:
    return {
        name: (other.get(name), row[name])
        for name in columns
        if name in row
        and name not in since
        and not _equal(other.get(name), row[name])
        and not _is_measured_less(other.get(name), row[name], measured.get(name))
    }


def _counted_since(table: str, other: Mapping[str, Any], row: Mapping[str, Any]) -> frozenset[str]:
    """Return what is counted from a time on that the row states, where that is a later one now."""
    counted = declared()["since"].get(table)
    if counted is None:
        return frozenset()
    before, after = other.get(counted["at"]), row.get(counted["at"])
    is_later = before is not None and after is not None and after > before
    return frozenset({counted["at"], *counted["columns"]}) if is_later else frozenset()


def _is_measured_less(before: Any, after: Any, less: int | None) -> bool:
    return less is not None and before is not None and bool(before + less == after)


def compared_columns(
    contract: Table, rows: pl.DataFrame, leave_out: frozenset[str] = frozenset()
) -> list[str]:
    """Return the columns that have to be equal: all but keys and what is declared."""
    free = {*declared()["columns"], *declared()["columns_of"].get(contract.name, {}), *leave_out}
    return [
        column.name
        for column in contract.columns
        if column.name not in {*free, *contract.key}
        and f"{contract.name}.{column.name}" not in leave_out
        and column.type not in leave_out
        and column.name in rows.columns
    ]


def _is_weaker(
    contract: Table, row: Mapping[str, Any], before: pl.DataFrame, leave_out: frozenset[str]
) -> bool:
    """Return whether a row is a bound, and nothing that the whole dump has is beyond it."""
    bound = declared()["bounds"].get(contract.name)
    if bound is None or row[bound["since"]] is None:
        return False
    same = pl.all_horizontal(pl.col(name).eq_missing(row[name]) for name in bound["of"])
    others = before.filter(same)
    if others.is_empty():
        return False
    same_bounds = others[bound["since"]].drop_nulls().to_list()
    if "timestamp" in leave_out:
        return bool(same_bounds)
    if any(each <= row[bound["since"]] for each in same_bounds):
        return True
    times = [*same_bounds, *others[bound["at"]].drop_nulls()]
    return not any(each > row[bound["since"]] for each in times)


def _pairs(
    contract: Table, before: pl.DataFrame, after: pl.DataFrame, leave_out: frozenset[str]
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each row with those of the whole dump that it may be.

    Of a key with a column that is left out (times, where clocks step) these are several.
    """
    types = {column.name: column.type for column in contract.columns}
    key = [
        name
        for name in contract.key
        if not {name, types[name], f"{contract.name}.{name}"} & leave_out
    ]
    known: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in before.iter_rows(named=True):
        known.setdefault(_key(key, row), []).append(row)
    for row in after.iter_rows(named=True):
        yield row, known.get(_key(key, row), [])


def _key(names: Iterable[str], row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(str(row[name]) for name in names)


def _equal(before: Any, after: Any) -> bool:
    """A cell that is empty now tells nothing; sums of fractions differ by their order."""
    if isinstance(before, float) and isinstance(after, float):
        return math.isclose(before, after, rel_tol=1e-9)
    return bool(after is None or before == after)


def is_marked(table: str, row: Mapping[str, Any]) -> bool:
    """Return whether a row says that something is missing, that it cannot tell, or is a bound."""
    if row.get("complete") is False or row.get("missing"):
        return True
    marks = declared()["marks"].get(table, {})
    if any(_is_so(row.get(name), marked=value) for name, value in marks.items()):
        return True
    texts = [value for value in row.values() if isinstance(value, str)]
    return any(
        value in _UNTOLD or any(words in value for words in declared()["words"]) for value in texts
    )


def _is_so(cell: Any, *, marked: bool) -> bool:
    """A count of what is marked says so, too."""
    return cell is not None and bool(cell) == marked


def _is_covered(part: Answers, row: Mapping[str, Any]) -> bool:
    """Return whether the command said of a table that has no marks what it cannot tell."""
    if part.code != 3 or "complete" in row:
        return False
    names = [row.get("group_id"), _partition(row)]
    return any(name and re.search(rf"{re.escape(name)}(?!\d)", part.said) for name in names)


def _partition(row: Mapping[str, Any]) -> str | None:
    number = row.get("coordinator_partition")
    return None if number is None else f"__consumer_offsets-{number}"
