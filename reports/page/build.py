"""The model of a page, made of what a workspace holds: its verdict, and what every section says.

The verdict of a page: is something wrong, since when, what to do; what costs most first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reports.page.findings import gone, rules_found
from reports.page.groups import (
    counts_of,
    groups_grid,
    groups_with_stories,
    stories_of,
)
from reports.page.head_and_foot import copies_of, coverage_of, facts_of, foot_of
from reports.page.model import Cell, Clause, Grid, Incident, Page, Reason, Rule, Subject
from reports.page.subjects import subjects_of
from reports.page.texts import LONGEST_SENTENCE, harmless, moment, name_cut, rule_anchor
from reports.page.topics import topics_of
from reports.page.workspace_tables import WorkspaceTables
from reports.plain_text import count
from reports.run_summary import missing_records
from reports.verdict import (
    INCIDENT_PARTS,
    INCIDENTS,
    AuditIncident,
    incidents_in,
    parts_shown,
    sentence_of,
    serves,
)
from schemas.finding_rules import INFO, SEVERITIES
from schemas.gaps import gap_kind

# What a dump cannot tell, in words, with what to copy next time.

_SETTINGS: Final = "Give the brokers' settings with --broker-config server.properties."
_ENDS: Final = (
    "Copy the data topics' log directories too, or give --end-offsets from kafka-get-offsets."
)
_EVERY: Final = (
    "Copy every partition of the internal topics, from every broker, with its checkpoint files."
)
_SOONER: Final = "Copy sooner: what compaction took before the copy is gone."
_FILES: Final = "Copy these files again from the broker, or from another replica."
_ADVICE: Final = {
    "assignment_not_told": _EVERY,
    "bytes_damaged": _FILES,
    "expiry_not_told": _SETTINGS,
    "group_not_whole": _EVERY,
    "history_not_told": _SOONER,
    "lag_not_told": _ENDS,
    "partitions_absent": _EVERY,
    "records_missing": _FILES,
    "removal_not_judged": _SETTINGS,
    "share_state_not_told": "Copy every partition of __share_group_state.",
}
"""What to do next time, by rule."""
_ALSO: Final = ("assignment_not_told", "history_not_told", "lag_not_told")


def checked_of(read: WorkspaceTables, rules: Iterable[Rule]) -> str:
    """Return what was checked, what of it is without a warning, and what is not fully told.

    Rules say only what they look for: where one is off, the questions say what they cannot tell.
    """
    known = list(rules)
    applied = [row for row in read.rows("applied_rules").to_pylist() if row["was_applied"]]
    of = {row["rule"]: row["subject"] for row in applied}
    bad = {of.get(each.name) for each in known if each.severity != INFO}
    cannot_tell = {
        of.get(each.name) for each in known if is_of_coverage(each.name, of.get(each.name, ""))
    }
    asked = {
        each for rows in read.scan(_GAPS, ["question"]) for each in rows["question"].to_pylist()
    }
    asked |= set(read.summary.get("could_not_be_asked", {}))
    cannot_tell |= {subject for each in asked for subject in _SUBJECTS_OF.get(each, ())}
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


def is_of_coverage(rule: str, subject: str) -> bool:
    """Return whether what a rule finds is that something cannot be told."""
    return subject == "coverage" or rule in _ALSO


_GAPS: Final = "gaps"
_MOST_GAPS: Final = 12
_SUBJECTS_OF: Final[Mapping[str, Sequence[str]]] = {
    "balance": ("assignment",),
    "expiration": ("expiry", "removals"),
    "lag": ("lag",),
    "rebalances": ("rebalances",),
    "share": ("share groups",),
    "timeline": ("history",),
    "usage": ("internal topics",),
}
"""By question the subjects of rules that go by its tables."""


def reasons(read: WorkspaceTables, rules: tuple[Rule, ...]) -> Iterator[Reason]:
    """Yield what cannot be told: what rules found, then what questions say whatever rules are on.

    Args:
        read: The manifest, `gaps`, and the summary: `could_not_be_asked`, `is_open`.
        rules: Those that found it.
    """
    told = [*_reasons_of_rules(read, rules), *_gaps(read)]
    yield from told
    if not told and read.summary.get("is_open"):
        yield Reason(
            "some rows of tables cannot be told: complete is false there, and missing says why"
        )


def _gaps(read: WorkspaceTables) -> Iterator[Reason]:
    """Yield what questions could not tell, each once, with what can be done."""
    questions: dict[tuple[str, str], list[str]] = {}
    for rows in read.scan(_GAPS, ["question", "code", "words"]):
        for row in rows.to_pylist():
            named = questions.setdefault((row["code"], row["words"]), [])
            if row["question"] not in named:
                named.append(row["question"])
    for (code, words), named in list(questions.items())[:_MOST_GAPS]:
        yield Reason(f"{', '.join(named)}: {harmless(words)}", gap_kind(code).advice)
    more = len(questions) - _MOST_GAPS
    if more > 0:
        yield Reason(f"{count(more, 'more thing')} in evaluations/{_GAPS}")


def _reasons_of_rules(read: WorkspaceTables, rules: tuple[Rule, ...]) -> Iterator[Reason]:
    for name, why in read.summary.get("could_not_be_asked", {}).items():
        yield Reason(f"{name} could not be asked: {harmless(why)}")
    named = {each.name for each in rules}
    if not named & {"records_missing", "partitions_absent", "bytes_damaged"}:
        for sentence in missing_records(read.manifest):
            yield Reason(harmless(sentence), _EVERY)
    for each in rules:
        found = each.shown[0].message if each.count == 1 else each.headline
        yield Reason(found, _ADVICE.get(each.name, ""), f"#{each.anchor}")
    for question in read.manifest.get("unanswerable", ()):
        yield Reason(harmless(str(question)))


TABLES: Final = (
    *("findings", "applied_rules", "finding_changes", "suppressions"),
    *("audit_incidents", "audit_incident_parts"),
    *("audited_groups", "audited_group_counts", "offset_verdicts"),
    *("lag", "offset_expiration", "retention_what_if", "offset_removals"),
    *("assignment_balance", "assignment_alternatives"),
    *("rebalances", "group_churn", "rebalance_storms"),
    *("share_backlog", "share_delivery_counts", "share_batches"),
    *("log_cleaning", "coordinator_load", "committers", "topic_usage"),
    *("divergences", "load_faults", "coordinator_epochs", "data_quality"),
    *("topic_readers", "configs", "data_segments"),
    _GAPS,
    *("trend_disks", "log_end_samples"),
)
"""What a page reads; of `OF_GROUPS` it reads what is of the groups that it shows."""

OF_GROUPS: Final = ("offset_history", "assignment_history", "group_events")
OF_STORIES: Final = (*OF_GROUPS, "findings", "offset_verdicts")
"""What stories of groups are made of."""

_WORDS: Final = {"critical": "critical", "warning": "warnings", "info": "worth knowing"}


def page_of(read: WorkspaceTables) -> Page:
    """Return the page.

    Args:
        read: `TABLES` and `OF_GROUPS`, as far as the workspace has them.
    """
    told = groups_with_stories(read)
    stories = frozenset(told)
    rules = rules_found(read, stories)
    subjects = _subjects(read)
    cannot_tell = tuple(
        each for each in rules if is_of_coverage(each.name, subjects.get(each.name, ""))
    )
    rest = tuple(each for each in rules if each not in cannot_tell)
    shown = frozenset(each.finding_id for one in rules for each in one.shown)
    left_open = tuple(reasons(read, cannot_tell))
    incidents = incidents_of_audit(read)
    facts = facts_of(read)
    topics, more_topics = topics_of(read, stories, shown)
    links = {each.topic.whole or each.topic.text: f"#{each.anchor}" for each in topics}
    return Page(
        title=f"Audit of {facts[0].value.text}",
        facts=facts,
        copies=copies_of(read.manifest),
        coverage=coverage_of(read, is_open=bool(left_open)),
        counts=_counts(read),
        answer=sentence_of(incidents),
        verdict=verdict_of(incidents),
        more_incidents=more_of(incidents),
        checked=checked_of(read, rules),
        rules=rest,
        gone=gone(read),
        cannot_tell=left_open,
        cannot_tell_rules=cannot_tell,
        groups=groups_grid(read, stories),
        group_counts=counts_of(read),
        foot=foot_of(read),
        subjects=tuple(_linked(each, links) for each in subjects_of(read, stories)),
        topics=topics,
        more_topics=more_topics,
        stories=stories_of(read, told, shown),
    )


def _linked(subject: Subject, links: Mapping[str, str]) -> Subject:
    """Return a subject whose tables lead from the name of a topic to its view."""
    return replace(subject, grids=tuple(_with_links(each, links) for each in subject.grids))


def _with_links(grid: Grid, links: Mapping[str, str]) -> Grid:
    places = {place for place, head in enumerate(grid.heads) if head == _TOPIC}
    rows = tuple(
        tuple(
            replace(each, href=links.get(each.whole or each.text, "")) if n in places else each
            for n, each in enumerate(row)
        )
        for row in grid.rows
    )
    return replace(grid, rows=rows) if places else grid


_TOPIC: Final = "Topic"
"""The head of columns that name a topic."""


def _subjects(read: WorkspaceTables) -> dict[str, str]:
    rows = read.rows("applied_rules")
    return dict(zip(rows["rule"].to_pylist(), rows["subject"].to_pylist(), strict=True))


def _counts(read: WorkspaceTables) -> tuple[Cell, ...]:
    counts = read.summary["findings"]
    cells = []
    for each in SEVERITIES:
        word = "warning" if each == "warning" and counts[each] == 1 else _WORDS[each]
        cells.append(Cell(f"{counts[each]:,} {word}", tone=each if counts[each] else ""))
    suppressed = read.summary.get("suppressed", 0)
    if suppressed:
        cells.append(Cell(f"{count(suppressed, 'finding')} accepted"))
    return tuple(cells)


MOST: Final = 8
"""So many incidents are in the verdict; all are among the findings."""
_EXPLAINS: Final = (": ", " (", "; ", ", last at ")
_SHORTEST_CLAUSE: Final = 24


def incidents_of_audit(read: WorkspaceTables) -> tuple[AuditIncident, ...]:
    """Return what the findings of a workspace come to, what costs most first."""
    return incidents_in(read.rows(INCIDENTS), read.rows(INCIDENT_PARTS))


def verdict_of(incidents: Sequence[AuditIncident]) -> tuple[Incident, ...]:
    """Return the lines of the verdict."""
    return tuple(_line(each) for each in incidents[:MOST])


def more_of(incidents: Sequence[AuditIncident]) -> str:
    """Return how many incidents the verdict has no room for; nothing where it has all."""
    more = len(incidents) - MOST
    return f"{count(more, 'more thing')} among the findings below" if more > 0 else ""


def _line(incident: AuditIncident) -> Incident:
    text = name_cut(incident.message, LONGEST_SENTENCE)
    first = next(
        (each for each in incident.parts if each.severity == incident.severity), incident.parts[0]
    )
    return Incident(
        text=_clause(text, incident) if incident.findings == 1 else text,
        href=f"#{rule_anchor(first.rule)}",
        severity=incident.severity,
        since="" if incident.since is None else moment(incident.since),
        command=harmless(incident.command),
        serves=serves(incident),
        parts=tuple(
            Clause(each.headline, f"#{rule_anchor(each.rule)}", each.severity)
            for each in parts_shown(incident)
        ),
    )


def _clause(message: str, incident: AuditIncident) -> str:
    """Return a message up to where it begins to explain; names are never cut."""
    names = [harmless(each) for each in incident.names]
    begins = max((message.find(each) + len(each) for each in names if each in message), default=0)
    ends = [message.find(each, max(begins, _SHORTEST_CLAUSE)) for each in _EXPLAINS]
    return message[: min((each for each in ends if each > 0), default=len(message))]
