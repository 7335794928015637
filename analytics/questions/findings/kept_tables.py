"""Tables that an audit keeps beside its findings: what its page is made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from analytics.contracts import table_of
from analytics.engine.part_runs import PartAnswer
from analytics.questions.findings.applied_rules import applied_rules
from analytics.questions.findings.audited_groups import (
    READ,
    WORST_FIRST,
    audited_groups,
    counts_together,
    group_counts,
)
from analytics.questions.findings.changes import kept_changes
from analytics.questions.findings.configured_rules import configured_rules
from analytics.questions.findings.findings_in_parts import RuleFindings
from analytics.replay.log.arrow_rows import arrow_rows, polars_rows
from analytics.replayed.whole_groups import GroupRows, group_parts, parts_for, stored_rows
from analytics.tables.parted_table import PartedTable

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

AT_ONCE: Final = 1_000_000
"""So many rows of whole groups are looked at together, about."""


def kept_tables(
    state: ReplayedWorkspace,
    judged: Collection[str],
    of_rules: RuleFindings,
    changes: PartedTable | None,
) -> dict[str, PartedTable]:
    """Return the tables that are kept, with the findings.

    Args:
        state: The workspace in which all questions were answered.
        judged: The tables that rules were applied to.
        of_rules: What they found, and what was accepted.
        changes: The findings of this audit and an earlier one, as `changes_in_parts` returns them.
    """
    rules = configured_rules(state.settings.from_file.findings)
    groups, counts = _audited_groups(state, of_rules.findings)
    entries = [{"entry": n, **row} for n, row in enumerate(of_rules.accepted.to_pylist(), 1)]
    few = {
        "audited_group_counts": counts,
        "applied_rules": applied_rules(rules, of_rules.counts, {*judged, "suppressions"}),
        "suppressions": table_of("suppressions", entries),
    }
    return {
        "audited_groups": groups,
        "findings": of_rules.findings,
        "finding_changes": PartedTable.held(table_of("finding_changes", []))
        if changes is None
        else kept_changes(changes),
        **{name: PartedTable.held(rows) for name, rows in few.items()},
    }


def _audited_groups(
    state: ReplayedWorkspace, findings: PartedTable
) -> tuple[PartedTable, pa.Table]:
    """Return the tables `audited_groups` and `audited_group_counts`, made some groups at a time."""
    stored = state.tables
    there = {name: columns for name, columns in READ.items() if stored.has(name)}
    rows = {name: stored_rows(stored, name, columns) for name, columns in there.items()}
    pieces = findings.pieces(["group_id", "severity"])
    of_groups = (polars_rows(each).drop_nulls("group_id") for each in pieces)
    rows["findings"] = GroupRows(of_groups, pl.col("group_id"))
    parts = parts_for(stored.count(*there) + findings.num_rows, AT_ONCE)
    with group_parts(rows, parts, state.runner.folder) as reads:
        made = state.runner.run(_audited_part, reads, {"audited_groups": WORST_FIRST})
    return made.tables["audited_groups"], counts_together(made.sums)


def _audited_part(rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    groups = audited_groups({name: arrow_rows(each) for name, each in rows.items()})
    return PartAnswer({"audited_groups": polars_rows(groups)}, group_counts(groups))
