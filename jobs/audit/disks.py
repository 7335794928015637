"""`--disk-size` of an audit: when the disks of brokers are full, at the rate since `--since`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from analytics.contracts import table_of
from analytics.library.audited_runs import audited_run, run_in
from analytics.questions.trend.run_by_run import READ, disk_rows
from analytics.questions.trend.runs import AuditedRun, Pair, difference_of
from analytics.tables.parted_table import PartedTable

if TYPE_CHECKING:
    from analytics.tables.parted_table import Order

DISKS: Final = "trend_disks"
"""The table that says so, one row a copy."""
_BEFORE: Final = "the audit before"
_THIS: Final = "this audit"


@dataclass(frozen=True)
class _Held:
    """The tables of a run of which little is needed, while its folder may become another's."""

    tables: Mapping[str, pa.Table]

    def has(self, *names: str) -> bool:
        """Return whether all of these tables are there."""
        return all(each in self.tables for each in names)

    def pieces(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of a table."""
        yield self.tables[name].select(list(columns))

    def parted(self, name: str, order: Order) -> PartedTable:
        """Return a table in order."""
        return PartedTable.held(order.sorted(self.tables[name]))

    def count(self, *names: str) -> int:
        """Return how many rows tables have together."""
        return sum(self.tables[each].num_rows for each in names)


def run_before(workspace: str) -> AuditedRun:
    """Return the run of an earlier audit, as far as its disks are asked about.

    Its folder may be the one that the new audit takes: what is needed is held.

    Raises:
        GroupscopeError: No audit came to its end there, or a table cannot be read.
    """
    run = audited_run(workspace)
    held = {
        name: pa.concat_tables(run.tables.pieces(name, columns))
        for name, columns in READ.items()
        if run.tables.has(name)
    }
    return replace(run, name=_BEFORE, tables=_Held(held))


def disks_of(
    workspace: str,
    summary: Mapping[str, Any],
    before: AuditedRun | None,
    disk_bytes: int,
) -> pa.Table:
    """Return the table `trend_disks` of an audit.

    Args:
        workspace: Its folder, in which all tables are.
        summary: What its summary says.
        before: Of `run_before`; None where no earlier audit is named.
        disk_bytes: Size of the disk of each broker.
    """
    run = replace(run_in(workspace, summary), name=_THIS)
    if run.as_of is None:
        return table_of(DISKS, [])
    cluster = run.cluster or "not known"
    is_earlier = before is not None and before.as_of is not None and before.as_of < run.as_of
    if before is None or not is_earlier or before.cluster != run.cluster:
        return table_of(DISKS, disk_rows(Pair(cluster, run, None), disk_bytes))
    pair = Pair(cluster, run, before, difference_of(before, run))
    return table_of(DISKS, disk_rows(pair, disk_bytes))
