"""The page of an incident: a story a group, and what goes for all.

As HTML it is one file, in which nothing runs and nothing is loaded; its tables are given as text,
CSV, Markdown or JSON too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.answers.diff import with_words
from reports.answers.timeline import event_rows, in_words, raw_verdicts, verdict_section, words_of
from reports.layout.cells import times, with_values
from reports.layout.section import raw_section, table_section
from reports.page.forms import rendered
from reports.page.groups import charts_of
from reports.page.head_and_foot import copies_of, coverage_of
from reports.page.model import Cell, Clause, Coverage, Fact, Grid, Story
from reports.page.rows import Shown, columns_of, grid_of, name_cell
from reports.page.texts import LONGEST_SENTENCE, group_anchor, harmless, moment, name_cut
from reports.page.workspace_tables import HeldTables, WorkspaceTables
from reports.quantities import count
from reports.row_formats import Section
from schemas.evaluation_rules import timeline_verdicts
from schemas.finding_rules import CRITICAL
from schemas.shown import head_of, head_on_page

MOST_GROUPS: Final = 100
MOST_DRAWN: Final = 16
_MOST_CLAUSES: Final = 8
_MOST_ROWS: Final = 200
_VERDICTS: Final = columns_of("offset_verdicts", "page_of_incident")
_CHANGES: Final = columns_of("changed_offsets", "page_of_incident")
_OWNERS: Final = columns_of("assignment_history", "page_of_incident")
_EVENTS: Final = columns_of("group_events", "page_of_incident")
_CLUSTER: Final = (
    Shown("at", head_on_page("at"), "time"),
    Shown("event", head_on_page("event")),
    Shown("broker", head_on_page("broker"), "partition"),
)
_OTHERS: Final = columns_of("offset_verdicts", "page_of_others")


@dataclass(frozen=True)
class Incident:
    """What is known of an incident.

    Attributes:
        around: When it was.
        begin: The instant before,
        end: and the instant after.
        groups: Those that are told, the worst first.
        verdicts: What happened to their offsets, as `offset_verdicts` has it.
        changes: Committed offsets before and after.
        owners: Who had which partitions before and after.
        events: Rows of `group_events` in between.
        cluster: What brokers did in between.
        others: Groups that suffered at once.
        cannot_tell: What cannot be told.
        restored: What `restore` gives back, in words.
    """

    around: datetime
    begin: datetime
    end: datetime
    groups: tuple[str, ...]
    verdicts: pa.Table
    changes: pa.Table
    owners: pa.Table
    events: pa.Table
    cluster: pa.Table
    others: pa.Table
    cannot_tell: tuple[str, ...] = ()
    restored: str = ""

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables by their names."""
        return {
            "verdicts": self.verdicts,
            "changes": self.changes,
            "owners": self.owners,
            "events": self.events,
            "cluster": self.cluster,
            "others": self.others,
        }


@dataclass(frozen=True)
class IncidentPage:
    """The whole page.

    Attributes:
        title: Its title.
        facts: When, what was read.
        copies: A chip a copy.
        coverage: How much of the truth the dump holds.
        clauses: The verdict, the worst first.
        cannot_tell: What cannot be told.
        stories: A story a group.
        more_groups: How many are not shown.
        cluster: What brokers did.
        others: Groups that suffered at once.
        restored: What `restore` gives back.
        command: How to make it again.
        exit_code: Of the command.
    """

    title: str
    facts: tuple[Fact, ...]
    copies: tuple[Cell, ...]
    coverage: Coverage
    clauses: tuple[Clause, ...]
    cannot_tell: tuple[str, ...]
    stories: tuple[Story, ...]
    more_groups: int
    cluster: Grid
    others: Grid
    restored: str
    command: str
    exit_code: int


def incident_page(
    incident: Incident,
    history: Mapping[str, pa.Table],
    manifest: Mapping[str, Any],
    said: Mapping[str, Any],
) -> IncidentPage:
    """Return the page.

    Args:
        incident: What is known.
        history: `offset_history`, `assignment_history`, `coordinator_epochs`, for charts.
        manifest: Of the workspace.
        said: Of the answer: `as_of`, `input`, `kafka_version`, `exit_code`.
    """
    read = WorkspaceTables(HeldTables(history), manifest, {"could_not_be_asked": {}, **said})
    shown = incident.groups[:MOST_GROUPS]
    return IncidentPage(
        title=f"Incident of {moment(incident.around)}",
        facts=_facts(incident, said),
        copies=copies_of(manifest),
        coverage=coverage_of(read, is_open=bool(incident.cannot_tell)),
        clauses=_clauses(incident),
        cannot_tell=tuple(harmless(each) for each in incident.cannot_tell),
        stories=tuple(
            _story(incident, read, group, has_charts=n < MOST_DRAWN)
            for n, group in enumerate(shown)
        ),
        more_groups=len(incident.groups) - len(shown),
        cluster=grid_of(
            "cluster-table",
            "What brokers did meanwhile, as the metadata log has it",
            incident.cluster,
            _CLUSTER,
            top=_MOST_ROWS,
            source="incident.json",
        ),
        others=grid_of(
            "others-table",
            "Other groups that something happened to in the same time",
            _others_in_words(incident.others),
            _OTHERS,
            top=_MOST_ROWS,
            source="incident.json",
        ),
        restored=_printed(incident.restored),
        command=_command(incident, said),
        exit_code=said["exit_code"],
    )


def _facts(incident: Incident, said: Mapping[str, Any]) -> tuple[Fact, ...]:
    facts = {
        "Incident": moment(incident.around),
        "Before is": moment(incident.begin),
        "After is": moment(incident.end),
        "Rules of Kafka": str(said.get("kafka_version") or "not known"),
        "Read": ", ".join(map(str, said["input"])),
    }
    return tuple(Fact(name, name_cell(value)) for name, value in facts.items())


def _clauses(incident: Incident) -> tuple[Clause, ...]:
    """Return what happened to each group in a clause, the worst first."""
    found = []
    for group in incident.groups:
        together: dict[str, list[Mapping[str, Any]]] = {}
        for row in _of(incident.verdicts, group).to_pylist():
            together.setdefault(row["verdict"], []).append(row)
        for code, rows in together.items():
            tone = "critical" if _is_severe(code) else "warning"
            text = name_cut(_clause(group, words_of(code), rows), LONGEST_SENTENCE)
            found.append(Clause(text, f"#{group_anchor(group)}", tone))
    found.sort(key=lambda each: each.severity != "critical")
    more = len(found) - _MOST_CLAUSES
    if more > 0:
        rest = Clause(f"{count(more, 'more line')} below", "#stories", "warning")
        found = [*found[:_MOST_CLAUSES], rest]
    return tuple(found)


def _clause(group: str, what: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what happened to a group's offsets in a few words."""
    places = {(row["topic"], row["partition"]) for row in rows if row["topic"] is not None}
    where = f" on {count(len(places), 'partition')}" if places else ""
    again = sum(row["cost"] for row in rows if row["cost"] is not None and row["cost"] > 0)
    cost = f", {count(again, 'record')} read again" if again else ""
    return f"{group}: {what}{where}{cost}"


def _is_severe(code: str) -> bool:
    return timeline_verdicts()[code].severity == CRITICAL


def _others_in_words(others: pa.Table) -> pa.Table:
    words = [", ".join(map(words_of, each.split(", "))) for each in others["verdicts"].to_pylist()]
    return with_values(others, "verdicts", pa.array(words, pa.string()))


def _story(incident: Incident, read: WorkspaceTables, group: str, *, has_charts: bool) -> Story:
    anchor = group_anchor(group)
    verdicts, changes = _of(incident.verdicts, group), _of(incident.changes, group)
    events, owners = _of(incident.events, group), _of(incident.owners, group)
    facts = {
        "Happenings": f"{verdicts.num_rows:,}",
        "Offsets that differ": f"{changes.num_rows:,}",
        "Events": f"{events.num_rows:,}",
    }
    codes = verdicts["verdict"].to_pylist()
    severe = any(_is_severe(each) for each in codes)
    grids = (
        (
            "verdicts",
            "What happened to its offsets, the worst first",
            in_words(verdicts),
            _VERDICTS,
        ),
        ("changes", "Committed offsets before and after", with_words(changes), _CHANGES),
        ("owners", "Who owned which partitions", owners, _OWNERS),
        ("events", "Events, in order", _in_time(events), _EVENTS),
    )
    return Story(
        anchor=anchor,
        group=name_cell(group),
        severity="critical" if severe else "warning" if codes else "info",
        facts=tuple(Fact(name, Cell(value)) for name, value in facts.items()),
        findings=(),
        figures=tuple(charts_of(read, group, anchor, incident.end)) if has_charts else (),
        grids=tuple(
            grid_of(
                f"{anchor}-{name}", caption, rows, columns, top=_MOST_ROWS, source="incident.json"
            )
            for name, caption, rows, columns in grids
            if rows.num_rows
        ),
    )


def _of(rows: pa.Table, group: str) -> pa.Table:
    return rows.filter(pc.equal(rows["group_id"], group)) if rows.num_rows else rows


def _in_time(events: pa.Table) -> pa.Table:
    if not events.num_rows:
        return events
    return events.sort_by([("at", "ascending"), ("record_offset", "ascending")])


def _printed(text: str) -> str:
    return "\n".join(harmless(line) for line in text.splitlines())


def _command(incident: Incident, said: Mapping[str, Any]) -> str:
    minutes = max(incident.end - incident.around, incident.around - incident.begin)
    named: Sequence[str] = [f"--group {_quoted(each)}" for each in incident.groups[:3]]
    words = [
        "groupscope forensics", *(_quoted(str(each)) for each in said["input"]), *named,
        f"--around {moment(incident.around)}",
        f"--window-minutes {minutes.total_seconds() / 60:g}", "--out DIR",
    ]  # fmt: skip
    return " ".join(words)


def _quoted(text: str) -> str:
    return quote(harmless(text))


def sections_of(incident: Incident, output_format: str) -> list[Section]:
    """Return the sections: what happened first, then what shows it."""
    if output_format in {"json", "csv"}:
        return list(_raw(incident))
    is_wide = getattr(output_format, "is_wide", False)
    told = verdict_section(incident.verdicts.to_pylist(), is_wide=is_wide)
    asked = getattr(output_format, "table", None)
    found = [told, *_beside(incident)]
    # People are shown tables that have rows, and the one that they ask for.
    return [each for each in found if each.rows.num_rows or each.name == asked]


def _raw(incident: Incident) -> Iterator[Section]:
    yield raw_verdicts(incident.verdicts)
    for name in ("changes", "owners", "events", "cluster", "others"):
        yield raw_section(incident.tables()[name], name)


def _beside(incident: Incident) -> Iterator[Section]:
    yield _section(
        with_words(incident.changes), "changed_offsets", "changes", "Offsets before and after"
    )
    yield _section(incident.owners, "assignment_history", "owners", "Who owned what")
    events = event_rows(incident.events)
    yield table_section(events, "group_events", "events", title="Events in order", also=())
    cluster = _timed(incident.cluster, "at")
    heads = {each: head_of(each) for each in cluster.column_names}
    yield Section(cluster, heads, name="cluster", title="What brokers did meanwhile")
    others = _timed(_others_in_words(incident.others), "first_at")
    yield _section(others, "offset_verdicts", "others", "Others that suffered at once")


def _section(rows: pa.Table, of: str, name: str, title: str) -> Section:
    """Return what an incident shows of a table."""
    return table_section(rows, of, name, view="incident", title=title, also=())


def _timed(rows: pa.Table, time: str) -> pa.Table:
    return with_values(rows, time, times(rows[time]))


def html_of(page: IncidentPage) -> str:
    """Return the file."""
    return rendered("incident.html.j2", page)
