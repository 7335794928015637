"""Whole groups of tables of any size, some at a time: memory is bounded by what is held together.

Rows are laid out in a temporary folder by a hash of the group, so a file is read once, whatever the
number of parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow.compute as pc

from analytics.replayed.whole_groups import GroupPart, frame_of
from analytics.tables.bucket_files import BucketFiles, rows_of_bucket
from analytics.tables.record_keys import spread

if TYPE_CHECKING:
    from analytics.tables.stored_tables import StoredTables

EVERY: Final = pc.scalar(value=True)
_WRITTEN_BYTES: Final = 64 << 20
_MOST_PARTS: Final = 400
"""So many files are open at the same time."""


class GroupRows(NamedTuple):
    """Rows that are of groups.

    Attributes:
        pieces: The rows, some after the others; at least one frame, possibly without rows.
        group: The id of the group of a row.
        left_out: Columns that say of which group a row is, and nothing more.
    """

    pieces: Iterable[pl.DataFrame]
    group: pl.Expr
    left_out: Sequence[str] = ()

    def whole(self) -> pl.DataFrame:
        """Return all rows together."""
        return pl.concat(self.pieces).drop(self.left_out)


def stored_rows(
    tables: StoredTables, name: str, columns: Sequence[str], where: pc.Expression = EVERY
) -> GroupRows:
    """Return rows of a stored table that has `group_id` among the columns."""
    nothing = tables.read(name, columns, ~EVERY)
    pieces = chain([nothing], tables.pieces(name, columns, where))
    return GroupRows(map(frame_of, pieces), pl.col("group_id"))


def parts_for(rows: int, at_once: int) -> int:
    """Return into how many parts rows are laid out, so that no more are held than are wanted."""
    return min(max(-(-rows // at_once), 1), _MOST_PARTS)


@contextmanager
def group_parts(tables: Mapping[str, GroupRows], parts: int) -> Iterator[Sequence[GroupPart]]:
    """Give rows of groups in parts, in memory where there is one part.

    Args:
        tables: By name. They are read when this is entered, or of one part when that is asked for.
        parts: How many.

    Yields:
        The parts, as long as their folder is there.
    """
    if parts == 1:
        yield [lambda: {name: rows.whole() for name, rows in tables.items()}]
        return
    with TemporaryDirectory(prefix="groupscope-", ignore_cleanup_errors=True) as folder:
        empty = {name: _laid_out(folder, name, rows, parts) for name, rows in tables.items()}
        yield [partial(_part, folder, number, empty) for number in range(parts)]


def _laid_out(folder: str, name: str, rows: GroupRows, parts: int) -> pl.DataFrame:
    """Lay out a table, and return it without rows."""
    number = spread(rows.group) % parts
    with BucketFiles(folder, name) as files, ThreadPoolExecutor(1) as writer:
        written: Future[None] | None = None
        # The next rows are read while these are written; no more wait to be.
        for piece in _larger(rows.pieces):
            laid = piece.drop(rows.left_out)
            if written is not None:
                written.result()
            written = writer.submit(files.add, laid, pl.lit(piece.select(number).to_series()))
        if written is not None:
            written.result()
    return laid.clear()


def _larger(pieces: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield rows many together, at least once: each write has its cost in every part."""
    held: list[pl.DataFrame] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += int(piece.estimated_size())
        if size >= _WRITTEN_BYTES:
            yield pl.concat(held)
            held, size = [piece.clear()], 0
    yield pl.concat(held)


def _part(folder: str, number: int, empty: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    return {
        name: pl.concat([nothing, *rows_of_bucket(folder, number, name)])
        for name, nothing in empty.items()
    }
