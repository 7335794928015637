"""Whole groups of tables of any size, some at a time: memory is bounded by what is held together.

A large replay writes files that together hold whole groups: which of them share a group is looked
up in them, and not taken from their names. Other rows are laid out in a temporary folder by a hash
of the group, so a file is read once, whatever the number of parts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.locations import open_location
from analytics.tables.buckets import BucketFiles, rows_of_bucket
from analytics.tables.record_keys import spread
from analytics.tables.stored_tables import EVERY
from analytics.workspace import reading

if TYPE_CHECKING:
    from analytics.tables.stored_tables import StoredTables

GroupPart = Callable[[], dict[str, pl.DataFrame]]
"""Gives by name the rows of some groups, all of each."""
_ROWS_AT_ONCE = 2_000_000
"""Rows of all tables together; one group may have more."""

_FEW_MORE: Final = 1.25
"""Files with so many times the rows are still read together: each range would read them anew."""

_WRITTEN_BYTES: Final = 16 << 20
_MOST_PARTS: Final = 400
"""So many files are open at the same time."""

_Files = Mapping[str, Sequence[str]]
"""By name of a table the paths of some of its files."""


def group_reads(
    tables: StoredTables, needed: Mapping[str, Sequence[str]], at_once: int = _ROWS_AT_ONCE
) -> list[GroupPart]:
    """Return what reads tables of whole groups, some groups a part; the parts come in any order.

    Args:
        tables: As far as groups are wanted.
        needed: By name of a table with groups, the columns that are read.
        at_once: How many rows are read together, about.
    """
    if tables.count(*needed) <= at_once:
        return [partial(_read, tables, needed)]
    return [
        partial(_read, tables, needed, where, lot.files)
        for lot in whole_files(tables, list(needed), at_once)
        for where in (_ranges(tables, lot, at_once) if lot.rows > _FEW_MORE * at_once else [None])
    ]


@contextmanager
def stored_parts(
    tables: StoredTables,
    needed: Mapping[str, Sequence[str]],
    at_once: int,
    beside: str | None = None,
) -> Iterator[Sequence[GroupPart]]:
    """Give tables in parts of whole groups: by their files where these hold whole groups.

    Other files are read once, and laid out.

    Args:
        tables: As far as groups are wanted.
        needed: By name of a table with groups, the columns that are read, `group_id` among them.
        at_once: How many rows a part has, about.
        beside: As `group_parts` takes it.

    Yields:
        The parts, as long as their folder is there.
    """
    count = tables.count(*needed)
    lots = whole_files(tables, list(needed), at_once) if count > at_once else []
    if lots and max(lot.rows for lot in lots) <= _FEW_MORE * at_once:
        yield [partial(_read, tables, needed, None, lot.files) for lot in lots]
        return
    rows = {name: stored_rows(tables, name, columns) for name, columns in needed.items()}
    with group_parts(rows, parts_for(count, at_once), beside) as parts:
        yield parts


def _read(
    tables: StoredTables,
    needed: Mapping[str, Sequence[str]],
    where: pc.Expression | None = None,
    files: _Files | None = None,
) -> dict[str, pl.DataFrame]:
    return {
        name: frame_of(tables.read(name, columns, where, files[name] if files else None))
        for name, columns in needed.items()
    }


def frame_of(rows: pa.Table) -> pl.DataFrame:
    """Return an Arrow table as a frame."""
    return pl.DataFrame(pl.from_arrow(rows))


def _ranges(tables: StoredTables, lot: _Lot, at_once: int) -> list[pc.Expression]:
    """Return conditions on `group_id`, each of groups with about as many rows as are read at once.

    Files are sorted by it: of one in several row groups what a condition leaves out is not read.
    """
    rows = pl.concat(
        frame_of(tables.read(name, ["group_id"], files=files)).group_by("group_id").len()
        for name, files in lot.files.items()
    )
    so_far = pl.col("len").cum_sum() - pl.col("len")
    bounds = (
        rows.group_by("group_id")
        .agg(pl.col("len").sum())
        .sort("group_id")
        .with_columns((so_far // at_once).alias("bucket"))
        .group_by("bucket", maintain_order=True)
        .agg(pl.col("group_id").first().alias("first"), pl.col("group_id").last().alias("last"))
    )
    group = pc.field("group_id")
    return [
        (group >= first) & (group <= last)
        for first, last in bounds.select("first", "last").iter_rows()
    ]


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
    return GroupRows(map(frame_of, tables.pieces(name, columns, where)), pl.col("group_id"))


@contextmanager
def parts_of_both(
    states: tuple[StoredTables, StoredTables],
    needed: Mapping[str, Sequence[str]],
    conditions: Mapping[str, pc.Expression],
    at_once: int,
    beside: str | None = None,
) -> Iterator[Sequence[GroupPart]]:
    """Give rows of two states of the same groups, in parts, in memory where there are few.

    Args:
        states: The first and the second.
        needed: By name of a table with groups, the columns that are read of both.
        conditions: By name, which of its rows are read where not all are.
        at_once: How many rows a part has, about.
        beside: As `group_parts` takes it.

    Yields:
        What gives the rows of some groups, all of each in both states, as ``from_<name>`` and
        ``to_<name>``; as long as their folder is there.
    """
    of_state = dict(zip(("from", "to"), states, strict=True))
    count = parts_for(sum(tables.count(*needed) for tables in states), at_once)
    rows = {
        f"{word}_{name}": stored_rows(tables, name, columns, conditions.get(name, EVERY))
        for word, tables in of_state.items()
        for name, columns in needed.items()
    }
    with group_parts(rows, count, beside) as parts:
        yield parts


def parts_for(rows: int, at_once: int) -> int:
    """Return into how many parts rows are laid out, so that no more are held than are wanted."""
    return min(max(-(-rows // at_once), 1), _MOST_PARTS)


@contextmanager
def group_parts(
    tables: Mapping[str, GroupRows], parts: int, beside: str | None = None
) -> Iterator[Sequence[GroupPart]]:
    """Give rows of groups in parts, in memory where there is one part.

    Args:
        tables: By name. They are read when this is entered, or of one part when that is asked for.
        parts: How many.
        beside: The folder in which rows are laid out where other machines read them, too; None
            lays them out on this one.

    Yields:
        The parts, as long as their folder is there; several can be sent to other processes.
    """
    if parts == 1:
        yield [lambda: {name: rows.whole() for name, rows in tables.items()}]
        return
    with _folder(beside) as folder:
        empty = {name: _laid_out(folder, name, rows, parts) for name, rows in tables.items()}
        yield [partial(_part, folder, number, empty) for number in range(parts)]


@contextmanager
def _folder(beside: str | None) -> Iterator[str]:
    """Hand over a folder of its own that is removed at the end."""
    if beside is None:
        with TemporaryDirectory(prefix="groupscope-", ignore_cleanup_errors=True) as folder:
            yield folder
        return
    folder = f"{beside}/groups-{uuid.uuid4().hex}"
    filesystem, path = open_location(folder)
    filesystem.create_dir(path, recursive=True)
    try:
        yield folder
    finally:
        filesystem.delete_dir(path)


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


class _File(NamedTuple):
    table: str
    path: str
    rows: int
    groups: pl.Series


class _Lot(NamedTuple):
    files: _Files
    rows: int


def whole_files(tables: StoredTables, names: Sequence[str], at_once: int) -> list[_Lot]:
    """Return all files of tables, in lots that share no group.

    Args:
        tables: Where the files are.
        names: Of tables that have `group_id`.
        at_once: How many rows a lot has, but for files that share groups and have more.
    """
    lots: list[tuple[dict[str, list[str]], int]] = []
    for some in _together(list(_files(tables, names))):
        rows = sum(each.rows for each in some)
        if not lots or lots[-1][1] + rows > at_once:
            lots.append(({name: [] for name in names}, 0))
        files, held = lots[-1]
        for each in some:
            files[each.table].append(each.path)
        lots[-1] = files, held + rows
    return [_Lot(*each) for each in lots]


def _files(tables: StoredTables, names: Sequence[str]) -> Iterator[_File]:
    for name in names:
        for path in tables.files(name):
            with reading(path), tables.workspace.filesystem.open_input_file(path) as source:
                file = pq.ParquetFile(source, read_dictionary=["group_id"])
                groups = file.read(["group_id"])["group_id"]
                found = [pl.Series(each.dictionary, dtype=pl.String) for each in groups.chunks]
                hashes = pl.concat([pl.Series(dtype=pl.String), *found]).hash()
                yield _File(name, path, file.metadata.num_rows, hashes)


def _together(files: Sequence[_File]) -> list[list[_File]]:
    """Put files together that share a group, by its hash: others with the same do no harm."""
    lot = list(range(len(files)))
    for one, other in _met(files):
        old, new = sorted((lot[one], lot[other]), reverse=True)
        lot = [new if each == old else each for each in lot]
    return [
        [file for file, its in zip(files, lot, strict=True) if its == number]
        for number in sorted(set(lot))
    ]


def _met(files: Sequence[_File]) -> list[tuple[int, int]]:
    """Return pairs of files with a group in both, enough of them to go from each to each other."""
    seen = [
        pl.DataFrame({"group": each.groups}).with_columns(pl.lit(number).alias("file"))
        for number, each in enumerate(files)
    ]
    rows = pl.concat(seen).sort("group")
    is_same = pl.col("group") == pl.col("group").shift(1)
    pairs = rows.select(pl.col("file").shift(1).alias("one"), "file", is_same.alias("is_same"))
    return pairs.filter("is_same").select("one", "file").unique().rows()
