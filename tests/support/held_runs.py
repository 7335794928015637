"""Runs of audits whose tables are rows that a test names, as `trend` takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from analytics.contracts import ARROW_TYPES
from analytics.questions.trend.runs import AuditedRun
from analytics.tables.parted_table import Order, PartedTable
from schemas import table

Rows = Iterable[Mapping[str, Any]]
FIRST_DAY: Final = datetime(2026, 11, 1, tzinfo=UTC)
LOGS: Final = frozenset({"__consumer_offsets-0", "__consumer_offsets-1"})
WHOLE: Final = frozenset({0, 1})


def as_table(name: str, rows: Rows) -> pa.Table:
    """Return rows of a table; what a row does not name is null."""
    types = pa.schema([(each.name, ARROW_TYPES[each.type]) for each in table(name).columns])
    return pa.Table.from_pylist(list(rows), types)


@dataclass(frozen=True)
class HeldTables:
    """Tables by name."""

    rows: Mapping[str, pa.Table]
    at_once: int = 3

    def has(self, *names: str) -> bool:
        """Return whether all are there."""
        return all(each in self.rows for each in names)

    def pieces(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield a few rows at a time."""
        rows = self.rows[name].select(list(columns))
        yield rows.slice(0, 0)
        for start in range(0, rows.num_rows, self.at_once):
            yield rows.slice(start, self.at_once)

    def parted(self, name: str, order: Order) -> PartedTable:
        """Return a table in order."""
        return PartedTable.held(order.sorted(self.rows[name]))

    def count(self, *names: str) -> int:
        """Return how many rows there are."""
        return sum(self.rows[each].num_rows for each in names)


_EMPTY: Final = (
    *("groups", "audited_groups", "lag", "partition_usage", "topic_usage", "offset_expiration"),
    *("offset_removals", "rebalances", "findings", "applied_rules", "audit_incidents"),
    "configs",
)


@dataclass(frozen=True)
class Audit:
    """What a test says of an audit: `tables` that are None are not there."""

    day: float = 0
    cluster: str | None = "prod"
    name: str = ""
    tables: Mapping[str, Rows | None] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> AuditedRun:
        """Return it as a run."""
        rows: dict[str, Rows | None] = {**dict.fromkeys(_EMPTY, ()), **self.tables}
        held = {name: as_table(name, some) for name, some in rows.items() if some is not None}
        known: dict[str, Any] = {
            "logs": LOGS,
            "whole_partitions": WHOLE,
            "shows_history": True,
            **self.given,
        }
        return AuditedRun(
            name=self.name or f"/audits/{self.cluster}-{self.day:g}",
            cluster=self.cluster,
            as_of=FIRST_DAY + timedelta(days=self.day),
            tables=HeldTables(held),
            **known,
        )
