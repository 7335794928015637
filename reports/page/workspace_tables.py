"""What a page is made of: tables of an audited workspace, and what its files say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas import table


@dataclass(frozen=True)
class WorkspaceTables:
    """The tables by their names, the manifest and the summary of an audit.

    Attributes:
        tables: Those that are there.
        manifest: Of the workspace.
        summary: What `summary.json` says.
    """

    tables: Mapping[str, pa.Table]
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]

    def has(self, name: str) -> bool:
        """Return whether a table is there."""
        return name in self.tables

    def rows(self, name: str) -> pa.Table:
        """Return a table; one that is not there has no rows."""
        if name in self.tables:
            return self.tables[name]
        return pa.schema([(each.name, pa.null()) for each in table(name).columns]).empty_table()

    def of_group(self, name: str, group: str) -> pa.Table:
        """Return the rows of one group."""
        rows = self.rows(name)
        return rows.filter(pc.equal(rows["group_id"], group)) if rows.num_rows else rows
