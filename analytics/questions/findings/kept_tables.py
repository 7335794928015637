"""Tables that an audit keeps beside its findings: what its page is made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from analytics.contracts import arrow_schema, table_of
from analytics.engine.part_runs import PartAnswer
from analytics.questions.findings.applied_rules import applied_rules
from analytics.questions.findings.audited_groups import (
    READ,
    WORST_FIRST,
    audited_groups,
    counts_together,
    group_counts,
)
from analytics.questions.findings.changes import with_changes
from analytics.questions.findings.configured_rules import configured_rules
from analytics.questions.findings.findings_of import RuleFindings
from analytics.replay.log.arrow_rows import arrow_rows, polars_rows
from analytics.replayed.whole_groups import GroupRows, group_parts, parts_for, stored_rows
from analytics.tables.parted_table import PartedTable

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.finding_rules import FindingRule

AT_ONCE: Final = 1_000_000
"""So many rows of whole groups are looked at together, about."""


def kept_tables(
    state: ReplayedWorkspace,
    judged: Collection[str],
    of_rules: RuleFindings,
    before: pa.Table | None,
) -> dict[str, PartedTable]:
    """Return the tables that are kept, with the findings.

    Args:
        state: The workspace in which all questions were answered.
        judged: The tables that rules were applied to.
        of_rules: What they found, and what was accepted.
        before: The findings of an earlier audit.
    """
    left, _ = of_rules
    rules = configured_rules(state.settings.from_file.findings)
    groups, counts = _audited_groups(state, left)
    return {
        "audited_groups": groups,
        **_held({"audited_group_counts": counts, **_of_findings(of_rules, rules, judged, before)}),
    }


def _held(tables: Mapping[str, pa.Table]) -> dict[str, PartedTable]:
    return {name: PartedTable.held(rows) for name, rows in tables.items()}


def _of_findings(
    of_rules: RuleFindings,
    rules: Sequence[FindingRule],
    judged: Collection[str],
    before: pa.Table | None,
) -> dict[str, pa.Table]:
    left, accepted = of_rules
    return {
        "findings": left,
        "applied_rules": applied_rules(rules, left, {*judged, "suppressions"}),
        "suppressions": table_of(
            "suppressions", [{"entry": n, **row} for n, row in enumerate(accepted.to_pylist(), 1)]
        ),
        "finding_changes": _changes(left, before),
    }


def _audited_groups(state: ReplayedWorkspace, findings: pa.Table) -> tuple[PartedTable, pa.Table]:
    """Return the tables `audited_groups` and `audited_group_counts`, made some groups at a time."""
    stored = state.tables
    there = {name: columns for name, columns in READ.items() if stored.has(name)}
    rows = {name: stored_rows(stored, name, columns) for name, columns in there.items()}
    of_groups = polars_rows(findings.select(["group_id", "severity"])).drop_nulls("group_id")
    rows["findings"] = GroupRows([of_groups], pl.col("group_id"))
    parts = parts_for(stored.count(*there) + of_groups.height, AT_ONCE)
    with group_parts(rows, parts, state.runner.folder) as reads:
        made = state.runner.run(_audited_part, reads, {"audited_groups": WORST_FIRST})
    return made.tables["audited_groups"], counts_together(made.sums)


def _audited_part(rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    groups = audited_groups({name: arrow_rows(each) for name, each in rows.items()})
    return PartAnswer({"audited_groups": polars_rows(groups)}, group_counts(groups))


def _changes(findings: pa.Table, before: pa.Table | None) -> pa.Table:
    if before is None:
        return table_of("finding_changes", [])
    kept = arrow_schema("finding_changes")
    return with_changes(findings, before).select(kept.names).cast(kept)
