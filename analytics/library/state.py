"""State and history at an instant, as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from analytics.library.evaluate import Evaluate
from analytics.tables.stored_tables import StoredTables, folder_of
from analytics.tables.table_frames import table_frame
from schemas import table, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.workspace import Workspace


class State:
    """What the coordinators knew; each table of the replay is an attribute.

    `state.committed_offsets`, `state.groups`, `state.offset_history`: DataFrames of the caller's
    session with the columns of the contract (`schemas/tables/`, docs/tables.md), times in UTC.
    Where the dump lacks records, `complete` is false and `missing` says what.

    Attributes:
        manifest: What was read, how far it can be trusted, and the instant.
        remarks: What has to be said of the instant, a sentence each.
    """

    def __init__(
        self,
        spark: SparkSession,
        workspace: Workspace,
        remarks: tuple[str, ...],
        kafka_version: str | None = None,
    ) -> None:
        self._spark = spark
        self._kafka_version = kafka_version
        self._workspace = workspace
        self.manifest: Mapping[str, Any] = workspace.manifest()
        self.remarks = remarks

    @cached_property
    def evaluate(self) -> Evaluate:
        """The questions that commands answer: `state.evaluate.expiration()` and others."""
        return Evaluate(self._spark, self._workspace, self._kafka_version)

    @property
    def lacks(self) -> tuple[str, ...]:
        """What the dump lacks of the internal topics, a sentence a partition; empty: nothing."""
        absent = [
            f"{topic}-{number} is not in the dump"
            for topic, numbers in self.manifest["absent_partitions"].items()
            for number in numbers
        ]
        lost = [
            each["lacks"]
            for each in self.manifest["partitions"]
            if each.get("is_leading", True) and each.get("lacks")
        ]
        return (*absent, *lost)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that were made."""
        stored = StoredTables(self._workspace)
        made = (name for name in tables() if tables()[name].kind in {"state", "history"})
        return tuple(name for name in made if stored.has(name))

    def table(self, name: str) -> DataFrame:
        """Return a table by name.

        Raises:
            KeyError: The replay made no such table.
        """
        if name not in self.tables:
            raise KeyError(f"{name} is no table of this replay: there are {', '.join(self.tables)}")
        return table_frame(self._spark, self._workspace, folder_of(name), table(name))

    def __getattr__(self, name: str) -> DataFrame:
        if name.startswith("_") or name not in tables():
            raise AttributeError(name)
        return self.table(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.tables]
