"""Runs of audits in tables of a catalog, as `--save-tables` writes them, for `trend`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_schema
from analytics.library.audited_runs import DATA_LOGS, SNAPSHOTS, alone
from analytics.library.saved_runs import settings_digest
from analytics.library.saved_tables import CLUSTER, RUN_ID, RUNS
from analytics.questions.trend.runs import AuditedRun
from analytics.tables.parted_table import PartedTable
from schemas import table

if TYPE_CHECKING:
    from analytics.library.saved_tables import Target
    from analytics.tables.parted_table import Order

_AUDIT: Final = "audit"
_AT_ONCE: Final = 50_000


@dataclass(frozen=True)
class SavedTables:
    """The tables of a saved run.

    Attributes:
        target: The schema that they are in.
        run: Its row of `saved_runs`.
        rows: How many rows each table of it has that has all columns of its contract.
        read: What was read already.
    """

    target: Target
    run: Mapping[str, Any]
    rows: Mapping[str, int]
    read: dict[tuple[str, tuple[str, ...]], pa.Table] = field(default_factory=dict)

    def has(self, *names: str) -> bool:
        """Return whether all of these tables were saved."""
        return all(each in self.rows for each in names)

    def pieces(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of a table, some rows at a time."""
        rows = self._rows(name, tuple(columns))
        yield rows.slice(0, 0)
        for start in range(0, rows.num_rows, _AT_ONCE):
            yield rows.slice(start, _AT_ONCE)

    def parted(self, name: str, order: Order) -> PartedTable:
        """Return a table in order."""
        columns = tuple(each.name for each in table(name).columns)
        return PartedTable.held(order.sorted(self._rows(name, columns)))

    def count(self, *names: str) -> int:
        """Return how many rows tables have together."""
        return sum(self.rows[each] for each in names)

    def _rows(self, name: str, columns: tuple[str, ...]) -> pa.Table:
        key = name, columns
        if key not in self.read:
            saved = self.target.spark.table(self.target.place(name)).where(
                f"{CLUSTER} = '{self.run[CLUSTER]}' and {RUN_ID} = '{self.run[RUN_ID]}'"
            )
            types = arrow_schema(name)
            wanted = pa.schema([types.field(each) for each in columns])
            self.read[key] = saved.select(*columns).toArrow().cast(wanted)
        return self.read[key]


def saved_audits(target: Target) -> list[AuditedRun]:
    """Return the audits that were saved to a schema; runs of other questions are left out.

    Raises:
        OutputRefusedError: There is no such schema.
    """
    target.check()
    if not target.spark.catalog.tableExists(target.place(RUNS)):
        return []
    runs = target.spark.table(target.place(RUNS)).where(f"question = '{_AUDIT}'").toArrow()
    return [_run(target, row) for row in runs.to_pylist()]


def _run(target: Target, row: Mapping[str, Any]) -> AuditedRun:
    saved = {each["table"]: each["rows"] for each in row["saved_tables"]}
    whole = {name: rows for name, rows in saved.items() if _is_of_contract(target, name)}
    tables = SavedTables(target, row, whole)
    partitions = row["whole_partitions"]
    as_of: datetime | None = row["as_of"]
    settings = json.loads(row["settings"])
    logs = _logs(tables)
    return AuditedRun(
        name=f"{target.schema}: {row[RUN_ID]}",
        cluster=row[CLUSTER],
        as_of=None if as_of is None else as_of.astimezone(UTC),
        tables=tables,
        logs=logs,
        lacks=frozenset(f"{each['topic']}-{each['partition']}" for each in row["lacks"]),
        filters=tuple(alone(each, row[RUN_ID]) for each in row["filters"]),
        whole_partitions=None if partitions is None else frozenset(partitions),
        # The manifest alone says what compaction took.
        shows_history=False,
        is_redacted=set(settings) == {"sha256"},
        settings=settings_digest(settings),
        snapshot_copies=_snapshot_copies(tables, logs),
        keeps_cleaned=None if logs is not None and SNAPSHOTS in logs else False,
    )


def _is_of_contract(target: Target, name: str) -> bool:
    """Return whether a table there has all columns that its contract has now."""
    there = set(target.spark.table(target.place(name)).columns)
    return {each.name for each in table(name).columns} <= there


def _logs(tables: SavedTables) -> frozenset[str] | None:
    """Return what a dump has that answers rest on, as `audited_run` takes it from a manifest.

    None where the table was not saved that tells.
    """
    if not tables.has("partition_usage", "topics"):
        return None
    logs: set[str] = set()
    for piece in tables.pieces("partition_usage", ["topic", "partition", "is_leading"]):
        mine = piece.filter(piece["is_leading"]).select(["topic", "partition"])
        logs.update(f"{each['topic']}-{each['partition']}" for each in mine.to_pylist())
    if tables.has("data_segments") and tables.count("data_segments"):
        logs.add(DATA_LOGS)
    sources = (
        pc.unique(each["source"]).to_pylist() for each in tables.pieces("topics", ["source"])
    )
    if any("snapshot" in each for each in sources):
        logs.add(SNAPSHOTS)
    return frozenset(logs)


def _snapshot_copies(tables: SavedTables, logs: frozenset[str] | None) -> frozenset[str]:
    """Return the copy of a run that a cluster answered to; of several nothing says which it is."""
    if logs is None or SNAPSHOTS not in logs:
        return frozenset()
    copies = {
        copy
        for piece in tables.pieces("partition_usage", ["copy"])
        for copy in pc.unique(piece["copy"]).to_pylist()
        if copy is not None
    }
    return frozenset(copies) if len(copies) == 1 else frozenset()
