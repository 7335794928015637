"""What a page is made of: tables of an audited workspace, and what its files say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from schemas import table


class Tables(Protocol):
    """Tables by name, read where they are asked for: some have a row for each committed offset."""

    def __contains__(self, name: object, /) -> bool:
        """Return whether a table is there."""

    def read(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Return columns of a table that is there, all where none is named."""


class HeldTables(dict[str, pa.Table]):
    """Tables in memory."""

    def read(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Return columns of a table, all where none is named.

        Raises:
            KeyError: It has no such column.
        """
        return self[name].select(list(columns)) if columns else self[name]


@dataclass(frozen=True)
class WorkspaceTables:
    """The tables by their names, the manifest and the summary of an audit.

    Attributes:
        tables: Those that are there.
        manifest: Of the workspace.
        summary: What `summary.json` says.
    """

    tables: Tables
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]

    def has(self, name: str) -> bool:
        """Return whether a table is there."""
        return name in self.tables

    def rows(self, name: str, columns: Sequence[str] = ()) -> pa.Table:
        """Return a table; one that is not there has no rows.

        Args:
            name: Which one.
            columns: Those that are looked at; none is all of them.
        """
        if name in self.tables:
            return self.tables.read(name, columns)
        names = columns or [each.name for each in table(name).columns]
        return pa.schema([(each, pa.null()) for each in names]).empty_table()

    def of_group(self, name: str, group: str) -> pa.Table:
        """Return the rows of one group."""
        rows = self.rows(name)
        return rows.filter(pc.equal(rows["group_id"], group)) if rows.num_rows else rows
