"""Whole groups of stored tables, some at a time: memory is bounded by what is read together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.replayed.whole_files import whole_files

if TYPE_CHECKING:
    from analytics.replayed.whole_files import Files
    from analytics.tables.stored_tables import StoredTables

GroupPart = Callable[[], dict[str, pl.DataFrame]]
"""Gives by name the rows of some groups, all of each."""

_ROWS_AT_ONCE = 2_000_000
"""Rows of all tables together; one group may have more."""


def group_buckets(
    tables: StoredTables, needed: Mapping[str, Sequence[str]], at_once: int = _ROWS_AT_ONCE
) -> Iterator[dict[str, pl.DataFrame]]:
    """Yield tables of some whole groups after the other; once where there are few rows.

    Args:
        tables: As far as groups are wanted.
        needed: By name of a table with groups, the columns that are read.
        at_once: How many rows are read together, about.
    """
    for where in _ranges(tables, needed, at_once):
        yield _read(tables, needed, where)


def group_reads(
    tables: StoredTables, needed: Mapping[str, Sequence[str]], at_once: int = _ROWS_AT_ONCE
) -> list[GroupPart]:
    """Return what reads the same tables, in parts that come in any order."""
    if tables.count(*needed) > at_once and (lots := whole_files(tables, list(needed), at_once)):
        return [partial(_read, tables, needed, None, files) for files in lots]
    return [partial(_read, tables, needed, each) for each in _ranges(tables, needed, at_once)]


def _read(
    tables: StoredTables,
    needed: Mapping[str, Sequence[str]],
    where: pc.Expression | None,
    files: Files | None = None,
) -> dict[str, pl.DataFrame]:
    return {
        name: frame_of(tables.read(name, columns, where, files[name] if files else None))
        for name, columns in needed.items()
    }


def frame_of(rows: pa.Table) -> pl.DataFrame:
    """Return an Arrow table as a frame."""
    return pl.DataFrame(pl.from_arrow(rows))


def _ranges(
    tables: StoredTables, names: Sequence[str] | Mapping[str, object], at_once: int
) -> list[pc.Expression | None]:
    """Return conditions on `group_id`, each of groups with about as many rows as are read at once.

    Most tables are sorted by it: what a condition leaves out is not even read.
    """
    if tables.count(*names) <= at_once:
        return [None]
    rows = pl.concat(
        frame_of(tables.read(name, ["group_id"])).group_by("group_id").len() for name in names
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
