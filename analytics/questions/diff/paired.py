"""Rows of two states side by side, and the codes for what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

APPEARED: Final = "appeared"
VANISHED: Final = "vanished"
MOVED: Final = "moved"
WENT_BACK: Final = "went_back"
CHANGED: Final = "changed"
CANNOT_TELL: Final = "cannot_tell"

INCOMPLETE_GROUPS = pa.schema([("group_id", pa.string()), ("reason", pa.string())])
"""Groups of which one of the states does not tell all, and why."""

LEFT_OUT_TOPICS = pa.schema([("topic", pa.string()), ("left_out", pa.string())])
"""Topics of whose offsets one of the states has none because it was made without them, and why."""

_FROM, _TO = "from_", "to_"


def paired(before: pa.Table, after: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Put the rows of two states with the same key side by side.

    Args:
        before: The first state; one row a key.
        after: The second state, with the same columns.
        keys: Columns that tell rows apart.

    Returns:
        The keys, the other columns twice as ``from_<name>`` and ``to_<name>`` (null where a state
        has no such row), and `in_from`, `in_to`.
    """
    left = _side(before, keys, _FROM)
    right = _side(after, keys, _TO)
    rows = left.join(right, list(keys), join_type="full outer")
    for name in ("in_from", "in_to"):
        rows = replaced(rows, name, pc.fill_null(rows[name], fill_value=False))
    return rows


def with_change(rows: pa.Table, change: pa.ChunkedArray, incomplete: pa.Table) -> pa.Table:
    """Keep the rows that differ, and say what became of them.

    Args:
        rows: As `paired` returns them, with `group_id`; where they have `doubt`, it says why a
            state may have had something else, and rows that look alike may differ too.
        change: What became of each row; null where nothing did.
        incomplete: As `INCOMPLETE_GROUPS`: where one state does not tell all of a group, no
            difference is sure.

    Returns:
        The rows that differ with `change` and `reason` (null where the change is sure).
    """
    rows = rows.append_column("change", change)
    if "doubt" not in rows.column_names:
        rows = rows.append_column("doubt", pa.nulls(rows.num_rows, pa.string()))
    may_differ = pc.or_(pc.is_valid(rows["change"]), pc.is_valid(rows["doubt"]))
    rows = rows.filter(may_differ).join(incomplete, ["group_id"], join_type="left outer")
    return with_cannot_tell(rows, pc.coalesce(rows["reason"], rows["doubt"])).drop_columns(
        ["doubt"]
    )


def with_cannot_tell(rows: pa.Table, reason: pa.ChunkedArray) -> pa.Table:
    """Let rows that have a reason say `CANNOT_TELL`."""
    unsure = pc.is_valid(reason)
    rows = replaced(rows, "reason", reason)
    return replaced(rows, "change", pc.if_else(unsure, CANNOT_TELL, rows["change"]))


def one_reason(before: pa.ChunkedArray, after: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return what either state lacks, in words; null where neither lacks anything."""
    first = pc.binary_join_element_wise("from", before, ": ")
    second = pc.binary_join_element_wise("to", after, ": ")
    both = pc.if_else(
        pc.equal(before, after), before, pc.binary_join_element_wise(first, second, "; ")
    )
    return pc.coalesce(both, first, second)


def presence(rows: pa.Table) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return which rows vanished and which appeared."""
    return pc.invert(rows["in_to"]), pc.invert(rows["in_from"])


def differs(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """Return where a column has different values; null is a value of its own."""
    before, after = rows[_FROM + name], rows[_TO + name]
    either_null = pc.xor(pc.is_null(before), pc.is_null(after))
    return pc.or_(either_null, pc.fill_null(pc.not_equal(before, after), fill_value=False))


def chosen(*cases: tuple[pa.ChunkedArray, str]) -> pa.ChunkedArray:
    """Return the word of the first case that is true, null where none is."""
    names = [str(place) for place in range(len(cases))]
    conditions = pc.make_struct(
        *(pc.fill_null(each, fill_value=False) for each, _ in cases), field_names=names
    )
    found = pc.case_when(conditions, *(pa.scalar(word) for _, word in cases))
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def with_moves(
    rows: pa.Table, offset: str, otherwise: tuple[pa.ChunkedArray, str], incomplete: pa.Table
) -> pa.Table:
    """Keep the rows whose offset differs, and say which way it went.

    Args:
        rows: As `paired` returns them, with `group_id`.
        offset: The column.
        otherwise: Rows whose offset stands and that differ all the same, and the word for them.
        incomplete: As `with_change` takes it.

    Returns:
        What `with_change` returns, and `difference` (offsets; null where one is absent).
    """
    old, new = rows[_FROM + offset], rows[_TO + offset]
    vanished, appeared = presence(rows)
    change = chosen(
        (vanished, VANISHED),
        (appeared, APPEARED),
        (pc.less(new, old), WENT_BACK),
        (pc.greater(new, old), MOVED),
        otherwise,
    )
    return with_change(rows.append_column("difference", pc.subtract(new, old)), change, incomplete)


def replaced(rows: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    """Return rows with other values in one column, which is added where it is not there."""
    if name not in rows.column_names:
        return rows.append_column(name, column)
    return rows.set_column(rows.column_names.index(name), name, column)


def in_order(rows: pa.Table, *names: str) -> pa.Table:
    """Return rows sorted by columns: a join leaves them in any order."""
    return rows.sort_by([(name, "ascending") for name in names])


def _side(rows: pa.Table, keys: Sequence[str], prefix: str) -> pa.Table:
    names = [each if each in keys else prefix + each for each in rows.column_names]
    there = pa.chunked_array([pa.repeat(pa.scalar(value=True), rows.num_rows)])
    return rows.rename_columns(names).append_column(f"in_{prefix.rstrip('_')}", there)
