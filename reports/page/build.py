"""The model of a page, made of what a workspace holds: its verdict, and what every section says.

The verdict of a page: is something wrong, since when, what to do; what costs most first.

The head and the foot of a page: what was read, how the numbers were made, how to make it again.

The head says which cluster, when, and how much of it was read.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from reports.page.findings import gone, rules_found
from reports.page.groups import (
    counts_of,
    groups_grid,
    groups_with_stories,
    stories_of,
)
from reports.page.model import (
    Cell,
    Clause,
    Coverage,
    Fact,
    Foot,
    Grid,
    Incident,
    Page,
    Reason,
    Rule,
    Subject,
)
from reports.page.rows import (
    LONGEST_SENTENCE,
    columns_of,
    grid_of,
    harmless,
    moment,
    name_cell,
    name_cut,
    rule_anchor,
)
from reports.page.subjects import subjects_of
from reports.page.topics import topics_of
from reports.page.workspace_tables import WorkspaceTables
from reports.plain_text import count, size_of
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
from schemas.manifest import cluster_ids

if TYPE_CHECKING:
    from schemas.manifest import CopyEntry, Manifest


# The foot: how the numbers were made, rules that applied, how to make it again.

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
    "Capacity": "evaluations/topic_usage, committers",
    "Consistency": "history/divergences, load_faults; evaluations/data_quality",
    "Topics": "evaluations/topic_readers, lag; state/configs; data_logs/data_segments; "
    "history/offset_history",
    "Stories of groups": "history/offset_history, assignment_history, group_events",
}


def foot_of(read: WorkspaceTables) -> Foot:
    """Return the foot.

    Args:
        read: The manifest, the summary, `applied_rules`, `suppressions`.
    """
    summary = read.summary
    return Foot(
        command=harmless(summary.get("command") or _earlier_command(read)),
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


def _earlier_command(read: WorkspaceTables) -> str:
    """Return what an audit is made by whose release did not keep its command."""
    inputs = " ".join(shlex.quote(each) for each in read.manifest.get("created_from", ()))
    return f"groupscope audit {inputs} --out DIR --fail-on {read.summary['fail_on']}"


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


_MOST_COPIES: Final = 40

Row = Mapping[str, Any]


_NOT_KNOWN: Final = "not known"


def facts_of(read: WorkspaceTables) -> tuple[Fact, ...]:
    """Return what was read, and as of when."""
    manifest, summary = read.manifest, read.summary
    said = {
        "Cluster": ", ".join(cluster_ids(manifest["copies"])) or _NOT_KNOWN,
        "As of": _instant(summary["as_of"]),
        "Rules of Kafka": str(summary.get("kafka_version") or _NOT_KNOWN),
        "Internal topics read": _amount(manifest),
        "groupscope": str(manifest.get("groupscope_version", "")),
    }
    return tuple(Fact(name, name_cell(value)) for name, value in said.items())


def _amount(manifest: Manifest) -> str:
    """Return how much was read: bytes of logs, and archived rows, which have no files."""
    partitions = manifest["partitions"]
    size = sum(each["size"] or 0 for each in partitions if each["copy"] is not None)
    rows = [each["records"] or 0 for each in partitions if each["copy"] is None]
    archived = [count(sum(rows), "archived row")] if rows else []
    return " and ".join([*([size_of(size)] if size or not rows else []), *archived])


def _instant(as_of: Row) -> str:
    named = [f"{name} at {end}" for name, end in as_of.get("offsets", {}).items()]
    time = as_of.get("time") or "a time that no record tells"
    end = " (the end of the dump)" if as_of.get("is_end") else ""
    return ", ".join([f"{time}{end}", *named])


def copies_of(manifest: Manifest) -> tuple[Cell, ...]:
    """Return a chip a copy: its name, its node, and whether its broker was stopped cleanly."""
    found = [_chip(each) for each in manifest["copies"]]
    more = len(found) - _MOST_COPIES
    return (*found[:_MOST_COPIES], *([Cell(f"{more} more copies")] if more > 0 else []))


def _chip(copy: CopyEntry) -> Cell:
    node = copy.get("node_id")
    known = "" if node is None else f", node {node}"
    words = {True: "clean shutdown", False: "no clean shutdown", None: "shutdown not known"}
    stopped = words.get(copy.get("clean_shutdown"), words[None])
    tone = "good" if copy.get("clean_shutdown") else "neutral"
    name = name_cell(str(copy["name"]))
    return Cell(f"{name.text}{known}: {stopped}", name.whole, tone=tone)


def coverage_of(read: WorkspaceTables, *, is_open: bool) -> Coverage:
    """Return the badge: `complete`, `gaps`, or `cannot tell much`.

    Args:
        read: The manifest and the summary.
        is_open: Something cannot be told all the same.
    """
    failed = read.summary.get("could_not_be_asked", {})
    unreadable = read.manifest.get("unreadable", ())
    missing = missing_records(read.manifest)
    if failed or unreadable:
        parts = [
            *([f"{count(len(failed), 'question')} could not be asked"] if failed else []),
            *([f"{count(len(unreadable), 'file')} could not be read"] if unreadable else []),
        ]
        return Coverage("cannot tell much", "critical", "; ".join(parts))
    if missing:
        more = len(missing) - 1
        rest = f", and {count(more, 'thing')} more" if more else ""
        return Coverage("gaps", "warning", f"{harmless(missing[0])}{rest}")
    rest = "; what cannot be told all the same is below" if is_open else ""
    return Coverage("complete", "good", f"no record is known to be missing{rest}")


# What a dump cannot tell, in words, with what to copy next time.

_SETTINGS: Final = "Give each broker's server.properties (--broker-config FILE, once a broker)."
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
        title=_title(read.manifest),
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


def _title(manifest: Manifest) -> str:
    ids = cluster_ids(manifest["copies"])
    return f"Audit of {', '.join(ids) or 'a cluster whose id is not known'}"


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
