"""Rows of any size in an order of one's own: sorted some at a time, laid down, and merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.section import Order, first_in_order

_IN_A_RUN: Final = 100_000
"""So many rows are sorted together."""
_AT_ONCE: Final = 64_000
"""So many rows of all runs are held together, about."""
_FEWEST: Final = 250
_PLACE, _RUN = "place_of_row", "run_of_row"


@dataclass(frozen=True)
class SortedRows:
    """A table of any size in an order (`Rows`).

    Attributes:
        read: Gives its rows in any order, some at a time; at least once.
        order: In which they are wanted; rows that are equal stay as they are to each other.
    """

    read: Callable[[], Iterable[pa.Table]]
    order: Order

    @cached_property
    def num_rows(self) -> int:
        """How many rows it has."""
        return sum(each.num_rows for each in self.read())

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield its rows in order, some at a time; at least once."""
        for each in in_order(self.read(), self.order):
            yield each if columns is None else each.select(list(columns))

    def first(self, most: int) -> pa.Table:
        """Return its first rows."""
        if not most:
            return next(iter(self.read())).slice(0, 0)
        return first_in_order(self.read(), self.order, most)

    def whole(self) -> pa.Table:
        """Return all of its rows."""
        return pa.concat_tables(self.pieces())


def in_order(pieces: Iterable[pa.Table], order: Order) -> Iterator[pa.Table]:
    """Yield rows in an order, some at a time, at least once; nulls last, and equal ones stay.

    Args:
        pieces: All rows, some at a time; at least once.
        order: In which they are wanted.
    """
    by = [*order, (_PLACE, "ascending")]
    with TemporaryDirectory(prefix="groupscope-", ignore_cleanup_errors=True) as folder:
        files: list[Path] = []
        for rows in _runs(pieces):
            ordered = _sorted(rows, by)
            if not files and rows.num_rows < _IN_A_RUN:
                # All that there is.
                yield ordered.drop_columns([_PLACE])
                return
            files.append(Path(folder) / str(len(files)))
            _lay_down(ordered, files[-1])
        for merged in _merged(files, by):
            yield merged.drop_columns([_PLACE])


def _runs(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield as many rows as are sorted together, numbered in the order they come, at least once.

    All but the last have `_IN_A_RUN` at least.
    """
    held: list[pa.Table] = []
    size, count = 0, 0
    for piece in pieces:
        places = pa.array(np.arange(count, count + piece.num_rows))
        held.append(piece.append_column(_PLACE, places))
        size, count = size + piece.num_rows, count + piece.num_rows
        if size >= _IN_A_RUN:
            yield pa.concat_tables(held)
            held, size = [held[-1].slice(0, 0)], 0
    yield pa.concat_tables(held)


def _sorted(rows: pa.Table, by: Order) -> pa.Table:
    return rows.take(pc.sort_indices(rows, list(by)))


def _lay_down(rows: pa.Table, path: Path) -> None:
    plain = rows.unify_dictionaries().combine_chunks()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, plain.schema) as writer:
        writer.write_table(plain, max_chunksize=_FEWEST)


def _laid_down(path: Path, at_once: int) -> Iterator[pa.Table]:
    """Yield the rows of a run, some at a time."""
    with pa.OSFile(str(path), "rb") as source:
        file: Any = pa.ipc.open_file(source)
        several = max(at_once // _FEWEST, 1)
        for start in range(0, file.num_record_batches, several):
            numbers = range(start, min(start + several, file.num_record_batches))
            yield pa.Table.from_batches([file.get_batch(each) for each in numbers])


def _merged(files: Sequence[Path], by: Order) -> Iterator[pa.Table]:
    """Yield the rows of runs that are in order, in the order of all of them."""
    most = max(_AT_ONCE // len(files), _FEWEST)
    left = {number: _laid_down(path, most) for number, path in enumerate(files)}
    held: dict[int, pa.Table] = {}
    while left or held:
        for number in [
            each for each in left if each not in held or held[each].num_rows < most // 2
        ]:
            more = next(left[number], None)
            if more is None:
                del left[number]
            else:
                run = pa.repeat(pa.scalar(number, pa.int32()), more.num_rows)
                rows = [held[number]] if number in held else []
                held[number] = pa.concat_tables([*rows, more.append_column(_RUN, run)])
        if not held:
            return
        together = _sorted(pa.concat_tables(held.values()), by)
        runs = together[_RUN].to_numpy()
        # Of a run with more rows, none goes before the last one that is held.
        ends = [int(np.flatnonzero(runs == number)[-1]) + 1 for number in left]
        end = min(ends, default=together.num_rows)
        yield together.slice(0, end).drop_columns([_RUN])
        waiting = together.slice(end)
        rest = {number: waiting.filter(pc.equal(waiting[_RUN], number)) for number in held}
        held = {number: rows for number, rows in rest.items() if rows.num_rows}
