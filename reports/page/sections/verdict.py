"""The verdict: one sentence of clauses, the worst first, each leading to its findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reports.page.model import Clause, Rule
from reports.page.sections.cannot_tell import is_of_coverage
from reports.page.workspace_tables import WorkspaceTables
from reports.quantities import count
from schemas.finding_rules import INFO

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
    """Return what was checked, what of it is without a warning, and what is not fully told."""
    known = list(rules)
    applied = [row for row in read.rows("applied_rules").to_pylist() if row["was_applied"]]
    of = {row["rule"]: row["subject"] for row in applied}
    bad = {of.get(each.name) for each in known if each.severity != INFO}
    cannot_tell = {
        of.get(each.name) for each in known if is_of_coverage(each.name, of.get(each.name, ""))
    }
    subjects = dict.fromkeys(row["subject"] for row in applied)
    fine = [each for each in subjects if each not in bad | cannot_tell]
    open_ = [each for each in subjects if each in cannot_tell - bad]
    parts = [
        *(["Nothing was found that needs anyone."] if not bad else []),
        f"{count(len(applied), 'rule')} were applied.",
        *([f"Without a warning: {', '.join(fine)}."] if fine else []),
        *([f"Without a warning, but not fully told: {', '.join(open_)}."] if open_ else []),
    ]
    return " ".join(parts)
