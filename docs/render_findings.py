"""Writes the table of rules into `audit.md` anew, from the files of the rules."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from schemas.finding_rules import FindingRule, finding_rules

PAGE = Path(__file__).parent / "audit.md"
MARK = "<!-- rules: written by docs/render_findings.py -->\n"


def rules_in_words(rules: Iterable[FindingRule]) -> str:
    """Return a table for each subject."""
    parts = []
    ordered = sorted(rules, key=lambda each: (each.subject, each.name))
    for subject, mine in groupby(ordered, key=lambda each: each.subject):
        rows = [
            f"| `{each.name}` | {each.severity} | {each.question} | {_thresholds(each)} |"
            for each in mine
        ]
        head = ["| rule | severity | asks | thresholds |", "|---|---|---|---|"]
        parts.append("\n".join([f"### {subject.capitalize()}", "", *head, *rows]))
    return "\n\n".join(parts) + "\n"


def _thresholds(rule: FindingRule) -> str:
    return ", ".join(
        f"`{name}` {each.value:g} ({each.unit})" for name, each in rule.thresholds.items()
    )


def rendered(text: str) -> str:
    """Return the page with its tables written anew."""
    before, _, _ = text.partition(MARK)
    return f"{before}{MARK}\n{rules_in_words(finding_rules())}"


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text("utf-8")), "utf-8")
