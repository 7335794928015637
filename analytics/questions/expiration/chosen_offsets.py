"""Which offsets are answered of: the records of all groups are read, as evidence on these."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import Selection, names_wanted
from analytics.tables.stored_tables import EVERYTHING

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


@dataclass(frozen=True)
class Chosen:
    """The groups and topics that are asked about.

    Attributes:
        selection: Names and patterns.
        there: The groups there are that are called what looks like a pattern.
    """

    selection: Selection = EVERYTHING
    there: Collection[str] = ()

    @classmethod
    def of(cls, state: ReplayedWorkspace) -> Self:
        """Return what a workspace is asked about."""
        asked = state.tables.selection
        named = pa.array([*asked.groups, *asked.exclude_groups], pa.string())
        if not len(named):
            return cls(asked)
        is_named = pc.field("group_id").isin(named)
        there = state.of_everything.tables.read("groups", ["group_id"], is_named)
        return cls(asked, frozenset(there["group_id"].to_pylist()))

    def groups(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of groups that are asked about, by `group_id`."""
        asked = self.selection
        if not (asked.groups or asked.exclude_groups):
            return rows
        names = rows["group_id"].cast(pl.String)
        every = names.unique().to_list()
        wanted = names_wanted(every, asked.groups, asked.exclude_groups, self.there)
        return rows.filter(names.is_in(wanted))

    def offsets(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of offsets that are asked about, by `group_id` and `topic`."""
        rows = self.groups(rows)
        if not self.selection.topics:
            return rows
        names = rows["topic"].cast(pl.String)
        return rows.filter(
            names.is_in(names_wanted(names.unique().to_list(), self.selection.topics))
        )
