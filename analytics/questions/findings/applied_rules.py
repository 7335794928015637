"""The rules of an audit as they were applied: thresholds, and how much each found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import pyarrow as pa

from analytics.contracts import table_of
from analytics.questions.findings.findings_in_parts import FindingCounts
from schemas.finding_rules import FindingRule


def applied_rules(
    rules: Iterable[FindingRule], counts: FindingCounts, tables: Collection[str]
) -> pa.Table:
    """Return the table `applied_rules`, a row a rule, by name.

    Args:
        rules: All, with a team's own severities and thresholds.
        counts: How many findings there are, by rule and severity.
        tables: Names of the tables that were there.
    """
    found = Counter[str]()
    for (rule, _), number in counts.items():
        found[rule] += number
    rows = [
        {
            "rule": each.name,
            "subject": each.subject,
            "severity": each.severity,
            "is_on": each.is_on,
            "was_applied": each.is_on and each.table in tables,
            "thresholds": _thresholds(each),
            "findings": found[each.name],
        }
        for each in sorted(rules, key=lambda each: each.name)
    ]
    return table_of("applied_rules", rows)


def _thresholds(rule: FindingRule) -> str | None:
    said = [f"{name} {each.value:g} ({each.unit})" for name, each in rule.thresholds.items()]
    return ", ".join(said) or None
