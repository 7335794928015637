"""Tables that an audit keeps beside its findings: what its page is made of."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa

from analytics.contracts import arrow_schema, table_of
from analytics.questions.findings.applied_rules import applied_rules
from analytics.questions.findings.audited_groups import READ, audited_groups, group_counts
from analytics.questions.findings.changes import with_changes
from analytics.questions.findings.configured_rules import configured_rules
from analytics.questions.findings.findings_of import RuleFindings

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


def kept_tables(
    state: ReplayedWorkspace,
    judged: Collection[str],
    of_rules: RuleFindings,
    before: pa.Table | None,
) -> dict[str, pa.Table]:
    """Return the tables that are kept, with the findings.

    Args:
        state: The workspace in which all questions were answered.
        judged: The tables that rules were applied to.
        of_rules: What they found, and what was accepted.
        before: The findings of an earlier audit.
    """
    left, accepted = of_rules
    rules = configured_rules(state.settings.from_file.findings)
    known = {
        name: state.tables.read(name, columns)
        for name, columns in READ.items()
        if state.tables.has(name)
    }
    groups = audited_groups({**known, "findings": left})
    return {
        "findings": left,
        "audited_groups": groups,
        "audited_group_counts": group_counts(groups),
        "applied_rules": applied_rules(rules, left, {*judged, "suppressions"}),
        "suppressions": table_of(
            "suppressions", [{"entry": n, **row} for n, row in enumerate(accepted.to_pylist(), 1)]
        ),
        "finding_changes": _changes(left, before),
    }


def _changes(findings: pa.Table, before: pa.Table | None) -> pa.Table:
    if before is None:
        return table_of("finding_changes", [])
    kept = arrow_schema("finding_changes")
    return with_changes(findings, before).select(kept.names).cast(kept)
