"""The foot of a page: how the numbers were made, rules that applied, how to make it again."""

from __future__ import annotations

import shlex
from typing import Final

from reports.page.grids import columns_of, grid_of
from reports.page.model import Cell, Fact, Foot, Grid
from reports.page.texts import harmless
from reports.page.workspace_tables import WorkspaceTables

_TONES: Final = {"critical": "critical", "warning": "warning", "info": "info"}
_RULES: Final = columns_of("applied_rules", tones={"severity": _TONES})
_SUPPRESSIONS: Final = columns_of("suppressions")
_SOURCES: Final = {
    "Findings": "evaluations/findings, by the rules below",
    "Groups": "evaluations/audited_groups, made of state/groups, lag, share_backlog and others",
    "Expiry": "evaluations/offset_expiration, retention_what_if",
    "Removals": "evaluations/offset_removals",
    "Lag": "evaluations/lag",
    "Assignment": "evaluations/assignment_balance, assignment_alternatives",
    "Rebalances": "evaluations/rebalances, group_churn, rebalance_storms",
    "Share groups": "evaluations/share_backlog, share_delivery_counts; state/share_batches",
    "Internal topics": "evaluations/log_cleaning, coordinator_load, committers",
    "Consistency": "history/divergences, load_faults; evaluations/data_quality",
    "Stories of groups": "history/offset_history, assignment_history, group_events",
}


def foot_of(read: WorkspaceTables) -> Foot:
    """Return the foot.

    Args:
        read: The manifest, the summary, `applied_rules`, `suppressions`.
    """
    given = " ".join(shlex.quote(each) for each in read.manifest.get("created_from", ()))
    summary = read.summary
    return Foot(
        command=harmless(f"groupscope audit {given} --out DIR --fail-on {summary['fail_on']}"),
        exit_code=summary["exit_code"],
        exit_reason=harmless(summary["exit_reason"]),
        sources=tuple(Fact(name, Cell(text)) for name, text in _SOURCES.items()),
        rules=grid_of(
            "rules-table",
            "Rules and thresholds that applied",
            read.rows("applied_rules"),
            _RULES,
            top=500,
            source="evaluations/applied_rules",
        ),
        suppressions=_suppressions(read),
    )


def _suppressions(read: WorkspaceTables) -> Grid | None:
    rows = read.rows("suppressions")
    if not rows.num_rows:
        return None
    return grid_of(
        "suppressions-table",
        "Findings that were accepted",
        rows,
        _SUPPRESSIONS,
        top=200,
        source="evaluations/suppressions",
    )
