"""The page of an incident: a story a group, and what goes for all.

As HTML it is one file, in which nothing runs and nothing is loaded; its tables are given as text,
CSV, Markdown or JSON too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.answers.diff import with_words
from reports.answers.timeline import event_rows, in_words, verdicts_for_people, words_of
from reports.incident_axis import AxisRows, axis_of
from reports.incident_summary import (
    Restored,
    commands_of,
    sentences_of,
    steps_of,
    summary_text,
)
from reports.layout.cells import instants, times, with_values
from reports.layout.output_format import OutputFormat
from reports.layout.section import LongSection, Rows, of_groups, raw_section, table_section
from reports.page.build import copies_of, coverage_of
from reports.page.forms import rendered
from reports.page.groups import charts_of
from reports.page.model import Cell, Coverage, Fact, Figure, Grid, Story
from reports.page.rows import (
    columns_of,
    grid_of,
    group_anchor,
    harmless,
    moment,
    name_cell,
    of_so_many,
)
from reports.page.workspace_tables import HeldTables, WorkspaceTables
from reports.row_formats import Section
from schemas.evaluation_rules import timeline_verdicts
from schemas.finding_rules import CRITICAL
from schemas.shown import MAIN

if TYPE_CHECKING:
    from schemas.manifest import Manifest

MOST_GROUPS: Final = 100
MOST_DRAWN: Final = 16
_MOST_ROWS: Final = 200
_WHOLE_GROUP: Final = "the whole group"
_VERDICTS: Final = columns_of("offset_verdicts", "page_of_incident")
_CHANGES: Final = columns_of("changed_offsets", "page_of_incident")
_EVENTS: Final = columns_of("group_events", "page_of_incident")
_OWNERS, _BROKERS, _OTHERS = (
    columns_of(name, "page") for name in ("incident_owners", "incident_brokers", "incident_others")
)
_COSTS: Final = columns_of("incident_costs")
_TABLES: Final = {
    "causes": "incident_causes",
    "costs": "incident_costs",
    "verdicts": "offset_verdicts",
    "changes": "changed_offsets",
    "owners": "incident_owners",
    "events": "group_events",
    "cluster": "incident_brokers",
    "others": "incident_others",
}
"""The tables of an incident by what `--table` and JSON call them."""


@dataclass(frozen=True)
class Incident:
    """What is known of an incident.

    Attributes:
        around: When it was.
        begin: The instant before,
        end: and the instant after.
        groups: Those that it is about, those that it cost most first.
        tables: Of the question `forensics`, by name.
        summary: What happened and what it cost, a sentence each, the costliest first.
        given_back: What `restore` gives back, in numbers.
        cannot_tell: What cannot be told.
        restored: What `restore` gives back, in words.
    """

    around: datetime
    begin: datetime
    end: datetime
    groups: tuple[str, ...]
    tables: Mapping[str, Rows]
    summary: tuple[str, ...]
    given_back: Restored
    cannot_tell: tuple[str, ...] = ()
    restored: str = ""


@dataclass(frozen=True)
class IncidentPage:
    """The whole page.

    Attributes:
        title: Its title.
        facts: When, what was read.
        copies: A chip a copy.
        coverage: How much of the truth the dump holds.
        summary: What happened and what it cost, a sentence each.
        steps: What to do now, a sentence each.
        commands: To be pasted.
        axis: The whole on one time axis.
        costs: The groups, those that it cost most first.
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
    summary: tuple[str, ...]
    steps: tuple[str, ...]
    commands: tuple[str, ...]
    axis: tuple[Figure, ...]
    costs: Grid
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
    manifest: Manifest,
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
    rows = _StoryRows(
        *(
            of_groups(incident.tables[_TABLES[name]], pa.array(shown, pa.string()))
            for name in ("verdicts", "changes", "owners", "events", "costs")
        )
    )
    return IncidentPage(
        title=f"Incident of {moment(incident.around)}",
        facts=_facts(incident, said),
        copies=copies_of(manifest),
        coverage=coverage_of(read, is_open=bool(incident.cannot_tell)),
        summary=tuple(harmless(each) for each in incident.summary),
        steps=tuple(harmless(each) for each in steps_of(incident.given_back)),
        commands=tuple(harmless(each) for each in commands_of(incident.given_back)),
        axis=_axis(incident, rows.verdicts, history, manifest),
        costs=_costs_grid(incident.tables[_TABLES["costs"]], frozenset(shown)),
        cannot_tell=tuple(harmless(each) for each in incident.cannot_tell),
        stories=tuple(
            _story(rows, read, group, incident.end if n < MOST_DRAWN else None)
            for n, group in enumerate(shown)
        ),
        more_groups=len(incident.groups) - len(shown),
        cluster=grid_of(
            "cluster-table",
            "What brokers did meanwhile, as the metadata log has it",
            incident.tables[_TABLES["cluster"]].whole(),
            _BROKERS,
            top=_MOST_ROWS,
            source="incident.json",
        ),
        others=_others_grid(incident.tables[_TABLES["others"]]),
        restored=_printed(incident.restored),
        command=harmless(said["command"]),
        exit_code=said["exit_code"],
    )


def _axis(
    incident: Incident, verdicts: pa.Table, history: Mapping[str, pa.Table], manifest: Manifest
) -> tuple[Figure, ...]:
    rows = AxisRows(
        incident.begin,
        incident.end,
        incident.groups,
        incident.tables[_TABLES["causes"]].whole().to_pylist(),
        verdicts,
        history["offset_history"],
        history["coordinator_epochs"],
    )
    return axis_of(rows, manifest)


def _costs_grid(costs: Rows, stories: frozenset[str]) -> Grid:
    rows = _costs_in_words(costs.first(_MOST_ROWS))
    only = [
        None if each is None else f"{each}: no record that survived names the group"
        for each in rows["only_on"].to_pylist()
    ]
    grid = grid_of(
        "costs-table",
        "Groups, those that it cost most first",
        with_values(rows, "only_on", pa.array(only, pa.string())),
        _COSTS,
        top=_MOST_ROWS,
        source="incident.json",
        stories=stories,
    )
    return of_so_many(grid, costs.num_rows, "incident.json")


def _costs_in_words(costs: pa.Table) -> pa.Table:
    """Return costs with records as people read them, and words in place of codes."""
    columns = [costs[name].to_pylist() for name in ("records_again", "is_at_least")]
    records = [_records(*each) for each in zip(*columns, strict=True)]
    return _others_in_words(costs).append_column("records", pa.array(records, pa.string()))


def _records(again: int, is_at_least: bool) -> str | None:  # noqa: FBT001 - columns of a row
    """Return how many records are read again; None where nothing tells."""
    if is_at_least:
        return f">= {again:,}" if again else "cannot tell"
    return f"{again:,}"


def _others_grid(others: Rows) -> Grid:
    grid = grid_of(
        "others-table",
        "Other groups that something happened to in the same time",
        _others_in_words(others.first(_MOST_ROWS)),
        _OTHERS,
        top=_MOST_ROWS,
        source="incident.json",
    )
    return of_so_many(grid, others.num_rows, "incident.json")


def _facts(incident: Incident, said: Mapping[str, Any]) -> tuple[Fact, ...]:
    facts = {
        "Incident": moment(incident.around),
        "Before is": moment(incident.begin),
        "After is": moment(incident.end),
        "Rules of Kafka": str(said.get("kafka_version") or "not known"),
        "Read": ", ".join(map(str, said["input"])),
    }
    return tuple(Fact(name, name_cell(value)) for name, value in facts.items())


def _is_severe(code: str) -> bool:
    return timeline_verdicts()[code].severity == CRITICAL


def _others_in_words(others: pa.Table) -> pa.Table:
    codes = [filter(None, each.split(", ")) for each in others["verdicts"].to_pylist()]
    words = [", ".join(map(words_of, each)) for each in codes]
    return with_values(others, "verdicts", pa.array(words, pa.string()))


@dataclass(frozen=True)
class _StoryRows:
    """Rows of the groups that have a story, by the names of `Incident.tables`."""

    verdicts: pa.Table
    changes: pa.Table
    owners: pa.Table
    events: pa.Table
    costs: pa.Table


def _cost_facts(costs: pa.Table, group: str) -> dict[str, str]:
    """Return what the incident cost a group."""
    return {
        name: value
        for row in _of(_costs_in_words(costs), group).to_pylist()
        for name, value in (
            ("Records read again", row["records"]),
            ("Commits lost", f"{row['lost_commits']:,}"),
            ("Given back", f"{row['restore']:,}"),
            ("Only on", row["only_on"] and harmless(row["only_on"])),
        )
        if value
    }


def _story(rows: _StoryRows, read: WorkspaceTables, group: str, end: datetime | None) -> Story:
    """Return the story of a group; with charts up to an instant where that is given."""
    anchor = group_anchor(group)
    verdicts, changes = _of(rows.verdicts, group), _of(rows.changes, group)
    events, owners = _of(rows.events, group), _of(rows.owners, group)
    facts = {
        **_cost_facts(rows.costs, group),
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
            _judged(verdicts),
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
        figures=() if end is None else tuple(charts_of(read, group, anchor, end, _lost(verdicts))),
        grids=tuple(
            grid_of(
                f"{anchor}-{name}", caption, rows, columns, top=_MOST_ROWS, source="incident.json"
            )
            for name, caption, rows, columns in grids
            if rows.num_rows
        ),
    )


def _lost(verdicts: pa.Table) -> list[dict[str, Any]]:
    """Return the commits that elections took, which the surviving line does not have."""
    columns = ("topic", "partition", "verdict", "was", "committed_at", "at")
    return [
        row
        for row in verdicts.select(columns).to_pylist()
        if row["verdict"] == "lost_by_election"
        and None not in (row["was"], row["committed_at"], row["at"])
    ]


def _judged(verdicts: pa.Table) -> pa.Table:
    """Return verdicts in words; a time that is only bounded carries its sign.

    What is about the whole group, which only a copy that was lost may have, says so.
    """
    if not verdicts.num_rows:
        return verdicts
    told = with_values(in_words(verdicts), "at", instants(verdicts["at"], verdicts["not_before"]))
    return with_values(told, "topic", pc.fill_null(verdicts["topic"], _WHOLE_GROUP))


def _of(rows: pa.Table, group: str) -> pa.Table:
    return rows.filter(pc.equal(rows["group_id"], group)) if rows.num_rows else rows


def _in_time(events: pa.Table) -> pa.Table:
    if not events.num_rows:
        return events
    return events.sort_by([("at", "ascending"), ("record_offset", "ascending")])


def _printed(text: str) -> str:
    return "\n".join(harmless(line) for line in text.splitlines())


def summary_of(causes: Rows, manifest: Manifest, given_back: Restored) -> tuple[str, ...]:
    """Return what happened and what it cost, a sentence each.

    Args:
        causes: The table `incident_causes`.
        manifest: Of the workspace.
        given_back: What `restore` gives back.
    """
    return sentences_of(causes.whole().to_pylist(), manifest["copies"], given_back)


def head_of(incident: Incident, output_format: OutputFormat) -> str:
    """Return what people read first: what happened, what it cost, what to do now.

    Nothing where a program reads it, or where one table was asked for.
    """
    if output_format.is_for_programs or output_format.table is not None:
        return ""
    return summary_text(incident.summary, incident.given_back, output_format)


def sections_of(incident: Incident, output_format: OutputFormat) -> list[Section | LongSection]:
    """Return the sections: what happened first, then what shows it."""
    if output_format.is_for_programs:
        return raw_sections(incident)
    found = list(_for_people(incident, output_format))
    # People are shown tables that have rows, and the one that they ask for.
    return [each for each in found if each.rows.num_rows or each.name == output_format.table]


def raw_sections(incident: Incident) -> list[Section | LongSection]:
    """Return the tables for programs, with all their columns."""
    return [
        LongSection(incident.tables[of], partial(raw_section, name=name))
        for name, of in _TABLES.items()
    ]


def _for_people(incident: Incident, output_format: OutputFormat) -> Iterator[LongSection]:
    tables = {name: incident.tables[of] for name, of in _TABLES.items()}
    if output_format.table == "causes":
        # Their words are at the head of the text.
        yield LongSection(tables["causes"], _causes)
    yield LongSection(tables["costs"], _costs)
    yield verdicts_for_people(tables["verdicts"], is_wide=output_format.is_wide)
    for name, make in _SECTIONS.items():
        yield LongSection(tables[name], make)


def _causes(rows: pa.Table) -> Section:
    in_words = [words_of(each) for each in rows["verdict"].to_pylist()]
    told = with_values(_timed(rows, "elected_from"), "verdict", pa.array(in_words, pa.string()))
    return _section(told, "causes", "What it came from, what costs most first")


def _costs(rows: pa.Table) -> Section:
    title = "Groups, those that it cost most first"
    return _section(_costs_in_words(rows), "costs", title)


def _changes(rows: pa.Table) -> Section:
    return _section(with_words(rows), "changes", "Offsets before and after", view="incident")


def _owners(rows: pa.Table) -> Section:
    return _section(rows, "owners", "Who owned what")


def _events(rows: pa.Table) -> Section:
    return _section(event_rows(rows), "events", "Events in order")


def _brokers(rows: pa.Table) -> Section:
    return _section(_timed(rows, "at"), "cluster", "What brokers did meanwhile")


def _others(rows: pa.Table) -> Section:
    in_words = _timed(_others_in_words(rows), "first_at")
    return _section(in_words, "others", "Others that suffered at once")


_SECTIONS: Final = {
    "changes": _changes,
    "owners": _owners,
    "events": _events,
    "cluster": _brokers,
    "others": _others,
}
"""What makes sections for people of rows of a table."""


def _section(rows: pa.Table, name: str, title: str, view: str = MAIN) -> Section:
    return table_section(rows, _TABLES[name], name, view=view, title=title, also=())


def _timed(rows: pa.Table, time: str) -> pa.Table:
    return with_values(rows, time, times(rows[time]))


def html_of(page: IncidentPage) -> str:
    """Return the file."""
    return rendered("incident.html.j2", page)
