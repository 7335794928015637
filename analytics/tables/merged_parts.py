"""Parts of a table that are in order, merged: some rows of each are held, and no more."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
from pyarrow import ipc

from analytics.contracts import polars_rows

if TYPE_CHECKING:
    from analytics.tables.parted_table import Order

_FEWEST: Final = 500
_MOST_TOGETHER: Final = 64
"""So many parts are merged together: of each that is open its reader holds megabytes, which is what
a Parquet file says of its row groups and columns, and a process may open only so many files."""
_PART, _PLACE, _ROW = "part_of_table", "place_in_order", "row_of_parts"

RowsInPieces = Callable[[int], Iterator[pa.Table]]
"""Gives rows that are in order, so many at a time."""


def rows_in_order(parts: Sequence[RowsInPieces], order: Order, at_once: int) -> Iterator[pa.Table]:
    """Yield the rows of parts that are in order, in the order of all of them.

    Many parts are merged into fewer first, which lie in temporary files meanwhile.

    Args:
        parts: Each gives its rows.
        order: Of the table.
        at_once: So many rows are held together, about.
    """
    if len(parts) <= _MOST_TOGETHER:
        yield from _merged(parts, order, at_once)
        return
    left = list(parts)
    with tempfile.TemporaryDirectory(prefix="groupscope-") as folder:
        while len(left) > _MOST_TOGETHER:
            # No more of them than needed: their rows are written and read once more.
            several = min(len(left) - _MOST_TOGETHER + 1, _MOST_TOGETHER)
            rows = _merged(left[:several], order, at_once)
            left = [*left[several:], _written_run(f"{folder}/{len(left)}.arrow", rows)]
        yield from _merged(left, order, at_once)


def _written_run(path: str, pieces: Iterator[pa.Table]) -> RowsInPieces:
    """Write rows into a file of which a reader holds but a few, and return what reads it."""
    first = next(pieces, None)
    if first is None:
        return lambda _: iter(())
    options = ipc.IpcWriteOptions(compression="lz4")
    with pa.OSFile(path, "wb") as sink, ipc.new_stream(sink, first.schema, options=options) as file:
        for each in chain([first], pieces):
            file.write_table(each, max_chunksize=_FEWEST)
    return partial(_of_run, path)


def _of_run(path: str, _: int) -> Iterator[pa.Table]:
    """Yield rows as they were written: no reader takes fewer at a time."""
    with pa.OSFile(path) as source, ipc.open_stream(source) as file:
        for each in file:
            yield pa.Table.from_batches([each])


def _merged(parts: Sequence[RowsInPieces], order: Order, at_once: int) -> Iterator[pa.Table]:
    """Yield the rows of parts that are in order, in the order of all of them.

    Frames know only what tells the order: of texts that are sorted time and again polars keeps all
    that were ever beside them.

    Args:
        parts: Each gives its rows.
        order: Of the table.
        at_once: So many rows of all parts are held together, about.
    """
    most = max(at_once // max(len(parts), 1), _FEWEST)
    left = {number: part(most) for number, part in enumerate(parts)}
    held: dict[int, pa.Table] = {}
    while left or held:
        for number, rest in list(left.items()):
            rows, is_last = _filled(held.get(number), rest, most)
            if rows is not None:
                held[number] = rows
            if is_last:
                del left[number]
        if not held:
            return
        together = order.sort(_keys(held, order.columns))
        settled = together.head(_settled(together, list(left)))
        yield pa.concat_tables(held.values()).take(settled[_ROW].to_arrow())
        # Each part is in order: what is settled are its first rows.
        done: dict[int, int] = dict(settled.group_by(_PART).len().iter_rows())
        waiting = {number: rows.slice(done.get(number, 0)) for number, rows in held.items()}
        held = {number: rows for number, rows in waiting.items() if rows.num_rows}


def _keys(held: Mapping[int, pa.Table], columns: Sequence[str]) -> pl.DataFrame:
    """Return what tells the order of rows, of which part each is, and its number among all."""
    keys = [
        polars_rows(rows.select(list(columns))).with_columns(
            pl.repeat(number, rows.num_rows, eager=True, dtype=pl.Int64).alias(_PART)
        )
        for number, rows in held.items()
    ]
    return pl.concat(keys).with_row_index(_ROW)


def _filled(
    held: pa.Table | None, rest: Iterator[pa.Table], most: int
) -> tuple[pa.Table | None, bool]:
    """Return rows of a part with more of them where few are held, and whether it has no more."""
    rows = [] if held is None else [held]
    is_last = False
    while not is_last and sum(each.num_rows for each in rows) <= most // 2:
        more = next(rest, None)
        is_last = more is None
        rows += [] if more is None else [more]
    return pa.concat_tables(rows) if rows else None, is_last


def _settled(rows: pl.DataFrame, unfinished: Sequence[int]) -> int:
    """Return how many rows are in their place: nothing that is still to come goes before them.

    Of each part with more rows, none goes before the last one that is held.
    """
    numbered = rows.select(_PART).with_row_index(_PLACE)
    last = numbered.filter(pl.col(_PART).is_in(unfinished)).group_by(_PART).agg(pl.max(_PLACE))
    return min(last[_PLACE].to_list(), default=rows.height - 1) + 1
