"""How audits changed from one to the next: `trend`, of runs of any number of clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import polars as pl
import pyarrow as pa

from analytics.contracts import check_columns, contract_schema, table_of, table_of_frame
from analytics.engine.part_runs import PartRunner
from analytics.gaps.gap import Gap, gap
from analytics.questions.question import Answer
from analytics.questions.trend.changes import (
    FINDINGS,
    GROUPS,
    RETENTION,
    WORST_FIRST,
    FindingChanges,
    GroupChanges,
    RetentionLimits,
    finding_changes,
    group_changes,
)
from analytics.questions.trend.figures import figures_of
from analytics.questions.trend.run_by_run import (
    LAG,
    disk_rows,
    furthest_behind,
    lag_of_groups,
    rule_rows,
    unjudged_rules,
)
from analytics.questions.trend.runs import AuditedRun, Pair, in_order, without_table
from analytics.tables.parted_table import PartedTable, PartedTables

RUNS, BYTES, OF_GROUPS, RULES, DISKS = (
    "trend_runs",
    "trend_bytes",
    "trend_groups",
    "trend_rules",
    "trend_disks",
)
TABLES: Final = (RUNS, RULES, FINDINGS, GROUPS, LAG, BYTES, OF_GROUPS, DISKS, RETENTION)
"""The tables that it is answered with."""
_SMALL: Final = (RUNS, RULES, LAG, BYTES, OF_GROUPS, DISKS)
"""Those that do not grow with groups or findings."""


@dataclass(frozen=True)
class TrendSettings:
    """What is asked.

    Attributes:
        disk_bytes: Size of the disk of each broker; None where nobody said.
        most: So many groups and partitions of each cluster are shown as the worst.
    """

    disk_bytes: int | None = None
    most: int = 20


def trend(
    runs: Iterable[AuditedRun], settings: TrendSettings, runner: PartRunner | None = None
) -> Answer:
    """Return how runs changed, of each cluster for itself, each run since the one before it.

    Its figures are, by cluster, `groups` (how many are `new`, `gone`, or of which that cannot be
    told) and the fields of `RetentionLimits`.

    Args:
        runs: In any order; one that is given twice counts once.
        settings: What is asked.
        runner: Makes parts of what is large; None makes them here.

    Raises:
        WorkspaceError: A table cannot be read.
    """
    ordered = in_order(runs)
    parts = PartRunner() if runner is None else runner
    clusters: dict[str, list[Pair]] = {}
    for pair in ordered.pairs:
        clusters.setdefault(pair.cluster, []).append(pair)
    made = [_of_cluster(pairs, settings, parts) for pairs in clusters.values()]
    tables = {
        name: PartedTable.held(table_of(name, [row for each in made for row in each.rows[name]]))
        for name in _SMALL
    }
    retention = pl.concat(
        [pl.DataFrame(schema=contract_schema(RETENTION)), *(each.retention for each in made)]
    )
    tables[RETENTION] = PartedTable.held(table_of_frame(RETENTION, retention))
    for name, order in ((FINDINGS, WORST_FIRST), (GROUPS, None)):
        of_clusters = [part for each in made for part in each.parts(name)]
        tables[name] = PartedTable.of_contract(name, [table_of(name, []), *of_clusters], order)
    for name in TABLES:
        check_columns(name, tables[name].column_names)
    return Answer(
        PartedTables({name: tables[name] for name in TABLES}),
        doubts=(*ordered.gaps, *(each for some in made for each in some.gaps)),
        warnings=ordered.left_out,
        figures={each.cluster: each.figures for each in made},
    )


class _OfCluster(NamedTuple):
    """What the runs of a cluster come to.

    Attributes:
        cluster: Its name.
        rows: Of tables that are small, by name.
        retention: Rows of `trend_retention`.
        findings: `trend_findings`; None where there is nothing to compare with.
        groups: What became of groups; None likewise.
        gaps: What cannot be told.
    """

    cluster: str
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    retention: pl.DataFrame
    findings: PartedTable | None
    groups: GroupChanges | None
    gaps: Sequence[Gap]

    def parts(self, name: str) -> Sequence[pa.Table | str]:
        """Return the parts of a table that may be large."""
        of_groups = None if self.groups is None else self.groups.rows
        found = self.findings if name == FINDINGS else of_groups
        return () if found is None else found.parts

    @property
    def figures(self) -> dict[str, Any]:
        """What sums up the rows."""
        if self.groups is None:
            return {"groups": None, **dict.fromkeys(RetentionLimits._fields)}
        return {"groups": dict(self.groups.counts), **self.groups.limits._asdict()}


def _of_cluster(pairs: Sequence[Pair], settings: TrendSettings, runner: PartRunner) -> _OfCluster:
    """Return what the runs of a cluster come to, in the order of their instants."""
    rows: dict[str, list[Mapping[str, Any]]] = {name: [] for name in _SMALL}
    gaps: list[Gap] = []
    before: Mapping[str, Any] | None = None
    found: FindingChanges | None = None
    groups: GroupChanges | None = None
    compared: list[Pair] = []
    for each in pairs:
        pair = each
        # Of runs before the last, groups are compared only to see whether their names are of a key.
        if each is pairs[-1] or each.run.is_redacted:
            pair, groups = _with_groups(each, settings.most, runner)
        compared.append(pair)
        if pair.difference is not None:
            gaps.append(pair.difference)
        figures = figures_of(pair, before)
        before = figures.row
        rows[RUNS].append(figures.row)
        rows[BYTES] += figures.of_topics
        rows[OF_GROUPS] += figures.of_groups
        gaps += figures.gaps
        found, of_rules = _with_findings(pair, runner)
        rows[RULES] += of_rules
    last = compared[-1]
    worst = furthest_behind(last.run, settings.most) if groups is None else groups.worst
    rows[LAG] += lag_of_groups(compared, worst)
    rows[DISKS] += disk_rows(last, settings.disk_bytes)
    gaps += _without_lag(last)
    retention = pl.DataFrame(schema=contract_schema(RETENTION))
    if groups is not None and last.comparable is not None:
        retention = groups.retention
    changed = None if found is None else found.rows
    return _OfCluster(last.cluster, rows, retention, changed, groups, gaps)


def _with_groups(pair: Pair, most: int, runner: PartRunner) -> tuple[Pair, GroupChanges | None]:
    """Return what became of groups, None where it is not known; and what else cannot be told then.

    Two runs with pseudonyms of which none is in both have pseudonyms of two keys.
    """
    if pair.before is None or not _have(pair, "groups"):
        return pair, None
    groups = group_changes(pair, most, runner)
    is_of_one_key = groups.counts.get("in_both", 0) or not pair.run.is_redacted
    if pair.difference is not None or is_of_one_key or not pair.before.tables.count("groups"):
        return pair, groups
    why = "none of their pseudonyms is in both: they were made with two keys"
    names = {"before": pair.before.name, "run": pair.run.name}
    pair = replace(pair, difference=gap("trend_names_differ", **names, why=why))
    return pair, group_changes(pair, most, runner)


def _with_findings(
    pair: Pair, runner: PartRunner
) -> tuple[FindingChanges | None, list[dict[str, Any]]]:
    """Return what became of findings, None where it is not known, and rows of `trend_rules`."""
    if pair.before is None or not _have(pair, "findings"):
        return None, rule_rows(pair, None, None)
    unjudged = unjudged_rules(pair)
    found = finding_changes(pair, unjudged, runner)
    return found, rule_rows(pair, found, unjudged)


def _have(pair: Pair, table: str) -> bool:
    """Return whether both runs have a table."""
    return pair.before is not None and all(
        each.tables.has(table) for each in (pair.run, pair.before)
    )


def _without_lag(pair: Pair) -> list[Gap]:
    """Return why it cannot be told when retention reaches what groups have to read."""
    if pair.before is None or _have(pair, "lag"):
        return []
    lacking = next(each for each in (pair.run, pair.before) if not each.tables.has("lag"))
    return [
        without_table(lacking, "when retention reaches records that groups have to read", "lag")
    ]
