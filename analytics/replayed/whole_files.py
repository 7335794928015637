"""Files of stored tables that together hold whole groups: a large replay writes such ones.

Which files share a group is looked up in them, and not taken from their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
import pyarrow.parquet as pq

from analytics.workspace import reading

if TYPE_CHECKING:
    from analytics.tables.stored_tables import StoredTables

Files = Mapping[str, Sequence[str]]
"""By name of a table the paths of some of its files."""


class _File(NamedTuple):
    table: str
    path: str
    rows: int
    groups: pl.Series


def whole_files(tables: StoredTables, names: Sequence[str], at_once: int) -> list[Files]:
    """Return files of tables, in lots that share no group; none where files are too large for that.

    Args:
        tables: Where the files are.
        names: Of tables that have `group_id`.
        at_once: How many rows a lot has at most.
    """
    lots: list[dict[str, list[str]]] = []
    held = at_once
    for some in _together(list(_files(tables, names))):
        rows = sum(each.rows for each in some)
        if rows > at_once:
            return []
        if held + rows > at_once:
            lots.append({name: [] for name in names})
            held = 0
        for each in some:
            lots[-1][each.table].append(each.path)
        held += rows
    return [*lots]


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
