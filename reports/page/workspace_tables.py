"""What a page is made of: tables of an audited workspace, and what its files say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from schemas import table

Condition: TypeAlias = pc.Expression
"""Which rows of a table are asked for."""


class Tables(Protocol):
    """Tables by name, read where they are asked for: some have a row for each committed offset."""

    def __contains__(self, name: object, /) -> bool:
        """Return whether a table is there."""

    def read(self, name: str, columns: Sequence[str], where: Condition | None = None) -> pa.Table:
        """Return columns of a table that is there, all where none is named.

        Args:
            name: Which one.
            columns: Those that are looked at; none is all of them.
            where: Which rows; None is all of them.
        """

    def of_group(self, name: str, group: str) -> pa.Table:
        """Return the rows of a group that the page shows, of a table that is there."""


class HeldTables(dict[str, pa.Table]):
    """Tables in memory."""

    def read(self, name: str, columns: Sequence[str], where: Condition | None = None) -> pa.Table:
        """Return columns of a table, all where none is named; of the rows that are asked for.

        Raises:
            KeyError: It has no such column.
        """
        rows = self[name] if where is None else self[name].filter(where)
        return rows.select(list(columns)) if columns else rows

    def of_group(self, name: str, group: str) -> pa.Table:
        """Return the rows of a group."""
        return self[name].filter(pc.field("group_id") == group)


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

    def rows(
        self, name: str, columns: Sequence[str] = (), where: Condition | None = None
    ) -> pa.Table:
        """Return a table; one that is not there has no rows.

        Args:
            name: Which one.
            columns: Those that are looked at; none is all of them.
            where: Which rows; None is all of them.
        """
        if name in self.tables:
            return self.tables.read(name, columns, where)
        names = columns or [each.name for each in table(name).columns]
        return pa.schema([(each, pa.null()) for each in names]).empty_table()

    def of_group(self, name: str, group: str) -> pa.Table:
        """Return the rows of one of the groups that the page shows."""
        return self.tables.of_group(name, group) if name in self.tables else self.rows(name)
