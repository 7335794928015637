"""The rules of an audit as they were applied: thresholds, and how much each found."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import table_of
from schemas.finding_rules import FindingRule


def applied_rules(
    rules: Iterable[FindingRule], findings: pa.Table, tables: Collection[str]
) -> pa.Table:
    """Return the table `applied_rules`, a row a rule, by name.

    Args:
        rules: All, with a team's own severities and thresholds.
        findings: `findings`.
        tables: Names of the tables that were there.
    """
    counts = {each["values"]: each["counts"] for each in _counted(findings["rule"])}
    rows = [
        {
            "rule": each.name,
            "subject": each.subject,
            "severity": each.severity,
            "is_on": each.is_on,
            "was_applied": each.is_on and each.table in tables,
            "thresholds": _thresholds(each),
            "findings": counts.get(each.name, 0),
        }
        for each in sorted(rules, key=lambda each: each.name)
    ]
    return table_of("applied_rules", rows)


def _counted(rules: pa.ChunkedArray) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pc.value_counts(rules).to_pylist()
    return found


def _thresholds(rule: FindingRule) -> str | None:
    said = [f"{name} {each.value:g} ({each.unit})" for name, each in rule.thresholds.items()]
    return ", ".join(said) or None
