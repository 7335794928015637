"""The tables that rules read: those of a workspace, and what its manifest says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analytics.questions.findings.configured_rules import configured_rules
from analytics.tables.parted_table import PartedTable
from schemas import table, tables

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from analytics.tables.stored_tables import StoredTables

_LOGS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("copy", pa.string()),
        ("is_leading", pa.bool_()),
        ("lacks", pa.string()),
        ("deleted_below", pa.int64()),
        ("bytes_damaged", pa.int64()),
    ]
)
_ABSENT = pa.schema([("topic", pa.string()), ("partitions", pa.int64())])


@dataclass(frozen=True)
class StoredRows:
    """A table of a workspace, of any size: rules are about few of its rows.

    Attributes:
        tables: Where it is.
        name: Its name.
    """

    tables: StoredTables
    name: str

    @property
    def column_names(self) -> list[str]:
        """The columns of its contract."""
        return [each.name for each in table(self.name).columns]

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield its rows, some at a time; at least once.

        Raises:
            WorkspaceError: The table cannot be read.
        """
        return self.tables.pieces(self.name, columns)


JudgedTables = Mapping[str, pa.Table | PartedTable | StoredRows]
"""Tables that rules are applied to, by name."""


def judged_tables(state: ReplayedWorkspace) -> dict[str, pa.Table | StoredRows]:
    """Return the tables that rules read, those of a workspace and what its manifest says.

    Args:
        state: A workspace in which all questions were answered.
    """
    rules = configured_rules(state.settings.from_file.findings)
    wanted = {rule.table for rule in rules if rule.is_on}
    stored = state.tables
    found = {
        name: StoredRows(stored, name)
        for name in sorted(wanted & tables().keys())
        if stored.has(name)
    }
    return {
        **found,
        "log_partitions": pa.Table.from_pylist(list(_logs(state.manifest)), schema=_LOGS),
        "absent_partitions": pa.Table.from_pylist(list(_absent(state.manifest)), schema=_ABSENT),
    }


def _logs(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for each in manifest["partitions"]:
        yield {
            **{name: each.get(name) for name in ("topic", "partition", "copy", "lacks")},
            "is_leading": each.get("is_leading", True),
            "deleted_below": each.get("deleted_below"),
            "bytes_damaged": each.get("bytes_damaged"),
        }


def _absent(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for topic, numbers in manifest.get("absent_partitions", {}).items():
        if numbers:
            yield {"topic": topic, "partitions": len(numbers)}
