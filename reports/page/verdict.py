"""The verdict: one sentence of clauses, the worst first, each leading to its findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reports.page.model import Clause, Rule
from reports.page.workspace_tables import WorkspaceTables
from reports.quantities import count
from schemas.finding_rules import CRITICAL, INFO

MOST: Final = 8


def verdict_of(rules: Iterable[Rule]) -> tuple[Clause, ...]:
    """Return a clause for each rule that found something worse than worth knowing."""
    bad = [each for each in rules if each.severity != INFO]
    clauses = [Clause(_words(each), f"#{each.anchor}", each.severity) for each in bad[:MOST]]
    if len(bad) > MOST:
        more = f"{count(len(bad) - MOST, 'more kind')} of findings"
        clauses.append(Clause(more, f"#{bad[MOST].anchor}", bad[MOST].severity))
    return tuple(clauses)


def _words(rule: Rule) -> str:
    return rule.shown[0].short if rule.count == 1 else rule.headline


def checked_of(read: WorkspaceTables, rules: Iterable[Rule]) -> str:
    """Return what was checked, and what of it is in order."""
    applied = [row for row in read.rows("applied_rules").to_pylist() if row["was_applied"]]
    bad = {each.name for each in rules if each.severity != INFO}
    subjects = dict.fromkeys(row["subject"] for row in applied)
    troubled = {row["subject"] for row in applied if row["rule"] in bad}
    fine = [each for each in subjects if each not in troubled]
    critical = any(each.severity == CRITICAL for each in rules)
    said = f"{count(len(applied), 'rule')} were applied."
    if not fine:
        return said
    listed = ", ".join(fine)
    if not bad and not critical:
        return f"Nothing was found that needs anyone. {said} In order: {listed}."
    return f"{said} In order: {listed}."
