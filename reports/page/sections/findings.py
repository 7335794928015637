"""Findings by rule, the worst first; what is accepted, and what is gone since another audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reports.page.anchors import group_anchor, rule_anchor
from reports.page.model import Cell, Finding, Record, Rule
from reports.page.sections.records import Segments
from reports.page.texts import LONGEST_SENTENCE, harmless, moment, name_cut
from reports.page.workspace_tables import WorkspaceTables
from schemas.finding_rules import SEVERITIES, finding_rules

MOST_OF_A_RULE: Final = 40
MOST: Final = 400
MOST_GONE: Final = 100
GONE: Final = "gone"
_EXPLAINS: Final = (": ", " (", "; ", ", last at ")
_SHORTEST_CLAUSE: Final = 24

Row = Mapping[str, Any]


def rules_found(read: WorkspaceTables, stories: frozenset[str]) -> tuple[Rule, ...]:
    """Return the rules that found something, the worst first, with the first of their findings.

    Args:
        read: `findings`, `applied_rules`, `finding_changes`.
        stories: Groups that have a story.
    """
    known = {each.name: each for each in finding_rules()}
    counts = _column(read, "applied_rules", "rule", "findings")
    changes = _column(read, "finding_changes", "finding_id", "change")
    segments = Segments(read.manifest)
    by_rule: dict[str, list[Row]] = {}
    for row in read.rows("findings").to_pylist():
        by_rule.setdefault(row["rule"], []).append(row)
    room = MOST
    found = []
    for name in sorted(by_rule, key=lambda each: (_rank(by_rule[each]), each)):
        rows = by_rule[name][: min(MOST_OF_A_RULE, max(room, 1))]
        room -= len(rows)
        rule = known.get(name)
        count = counts.get(name, len(by_rule[name]))
        headline = rule.headline if rule else name.replace("_", " ")
        found.append(
            Rule(
                anchor=rule_anchor(name),
                name=name,
                severity=rows[0]["severity"],
                question=rule.question if rule else name.replace("_", " "),
                headline=headline.format(count=f"{count:,}"),
                count=count,
                shown=tuple(_finding(row, changes, segments, stories) for row in rows),
                why=rule.why if rule else "",
            )
        )
    return tuple(found)


def _rank(rows: Sequence[Row]) -> int:
    return SEVERITIES.index(rows[0]["severity"])


def _column(read: WorkspaceTables, name: str, key: str, value: str) -> dict[str, Any]:
    rows = read.rows(name)
    return dict(zip(rows[key].to_pylist(), rows[value].to_pylist(), strict=True))


def _finding(
    row: Row, changes: Mapping[str, str], segments: Segments, stories: frozenset[str]
) -> Finding:
    whole = harmless(row["message"])
    short = name_cut(row["message"], LONGEST_SENTENCE)
    group = row["group_id"]
    return Finding(
        anchor=f"finding-{row['finding_id']}",
        finding_id=row["finding_id"],
        message=short,
        short=_clause(short, row),
        whole="" if short == whole else whole,
        since="" if row["since"] is None else moment(row["since"]),
        change=changes.get(row["finding_id"], ""),
        suggestion=harmless(row["suggestion"] or ""),
        href=f"#{group_anchor(group)}" if group in stories else "",
        records=_records(row["evidence"], segments),
    )


def _clause(message: str, row: Row) -> str:
    """Return a message up to where it begins to explain; names are never cut."""
    names = [harmless(row[name]) for name in ("group_id", "topic") if row[name]]
    begins = max((message.find(each) + len(each) for each in names if each in message), default=0)
    ends = [message.find(each, max(begins, _SHORTEST_CLAUSE)) for each in _EXPLAINS]
    return message[: min((each for each in ends if each > 0), default=len(message))]


def _records(evidence: Sequence[Row], segments: Segments) -> tuple[Record, ...]:
    return tuple(each for one in evidence for each in segments.records_of(one))


def gone(read: WorkspaceTables) -> tuple[Cell, ...]:
    """Return what an earlier audit found and this one does not."""
    rows = [row for row in read.rows("finding_changes").to_pylist() if row["change"] == GONE]
    cells = [
        Cell(name_cut(row["message"], LONGEST_SENTENCE), tone=row["severity"])
        for row in rows[:MOST_GONE]
    ]
    more = len(rows) - len(cells)
    return (*cells, *([Cell(f"{more:,} more in evaluations/finding_changes")] if more else []))
