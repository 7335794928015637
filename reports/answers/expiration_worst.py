"""The worst rows of the tables about expiry, which may be too large to be held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.answers.expiration_rows import (
    NAMED_BY,
    RANK,
    Worst,
    ranked_groups,
    ranked_what_if,
    with_offset_rank,
    worst_order,
)
from reports.layout.section import Rows

_NTH: Final = "nth"


def worst_offsets(expiration: Rows, most: int) -> pa.Table:
    """Return the first rows of the table `offset_expiration` in the order that people get."""
    held = _numbered(_ranked_offsets(expiration.first(0)), 0)
    count = 0
    for piece in expiration.pieces():
        rows = _numbered(_ranked_offsets(piece), count)
        count += rows.height
        held = pl.concat([held, rows]).bottom_k(most, by=[RANK, _NTH])
    return _arrow(held.sort(RANK, _NTH).drop(RANK, _NTH), expiration)


def worst_what_if(what_if: Rows, most: int) -> Worst:
    """Return so many rows of the table `retention_what_if`."""
    held = _numbered(ranked_what_if(_frame(what_if.first(0))), 0)
    count, are_named = 0, False
    for piece in what_if.pieces():
        rows = _numbered(ranked_what_if(_frame(piece)), count)
        count += rows.height
        are_named |= _any_named(rows)
        held = _worst(pl.concat([held, rows]), most)
    rows = held.sort(_NTH).drop(RANK, NAMED_BY, _NTH)
    return Worst(_arrow(rows, what_if), count - rows.height, are_named)


def worst_groups(fates: Rows, most: int) -> Worst:
    """Return the fates of so many groups, `Worst.more` being groups, too."""
    held = fates.first(0)
    groups = _numbered(ranked_groups(with_offset_rank(_frame(held))), 0)
    count, are_named = 0, False
    for piece in FatesOfGroups(fates).pieces():
        more = _numbered(ranked_groups(with_offset_rank(_frame(piece))), count)
        count += more.height
        are_named |= _any_named(more)
        groups = _worst(pl.concat([groups, more]), most)
        names = groups["group_id"].to_arrow().cast(pa.string())
        found = pa.concat_tables([held, piece])
        held = found.filter(pc.is_in(found["group_id"], names)).combine_chunks()
    return Worst(held, count - groups.height, are_named)


@dataclass(frozen=True)
class FatesOfGroups:
    """Fates of groups in order, counted by groups: a piece has all of each.

    Attributes:
        fates: As `group_section` takes them.
    """

    fates: Rows

    @cached_property
    def num_rows(self) -> int:
        """How many groups there are."""
        return sum(pc.count_distinct(rows["group_id"]).as_py() for rows in self.pieces())

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the fates of some whole groups after those of others; at least once."""
        begun = self.fates.first(0) if columns is None else self.fates.first(0).select(columns)
        for rows in self.fates.pieces(columns):
            found = pa.concat_tables([begun, rows])
            if not found.num_rows:
                continue
            is_last = pc.equal(found["group_id"], found["group_id"][-1])
            begun = found.filter(is_last)
            yield found.filter(pc.invert(is_last))
        yield begun

    def first(self, most: int) -> pa.Table:
        """Return the fates of the first groups."""
        found, left = [self.fates.first(0)], most
        for rows in self.pieces():
            if left <= 0:
                break
            names = pc.unique(rows["group_id"]).slice(0, left)
            found.append(rows.filter(pc.is_in(rows["group_id"], names)))
            left -= len(names)
        return pa.concat_tables(found)

    def whole(self) -> pa.Table:
        """Return all fates."""
        return self.fates.whole()


def _ranked_offsets(rows: pa.Table) -> pl.DataFrame:
    return with_offset_rank(_frame(rows))


def _numbered(rows: pl.DataFrame, first: int) -> pl.DataFrame:
    return rows.with_columns((pl.int_range(pl.len()) + first).alias(_NTH))


def _worst(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    return rows.bottom_k(most, by=[*worst_order(), pl.col(_NTH)])


def _any_named(rows: pl.DataFrame) -> bool:
    return rows[NAMED_BY].null_count() < rows.height


def _frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows))


def _arrow(rows: pl.DataFrame, table: Rows) -> pa.Table:
    types = table.first(0).schema
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(types)
