"""Groups of a page: the table of them, and one story a group with a finding.

A story says what was found, what happened to its offsets, and its events.

Its charts show who owned what, and where its committed offsets were.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.answers.timeline import in_words
from reports.charts.groups import committed_offsets, ownership, sparkline
from reports.page.model import Cell, Clause, Fact, Figure, Grid, Story
from reports.page.rows import (
    ABSENT,
    HEAD,
    LONGEST_SENTENCE,
    at,
    columns_of,
    dicts,
    doubt_said,
    figure,
    grid_of,
    group_anchor,
    harmless,
    labels,
    name_cell,
    name_cut,
    of_so_many,
    place,
    text_of,
)
from reports.page.workspace_tables import WorkspaceTables
from reports.plain_text import count
from schemas import CONSUMER_OFFSETS
from schemas.expiration_rules import shared_names
from schemas.finding_rules import SEVERITIES

# The table: one row a group, the worst first, with how its commits went on.

MOST_GROUPS: Final = 200
TONES: Final = {
    **dict.fromkeys(("lost_records", "other_topic", "beyond_end", "refused"), "critical"),
    **dict.fromkeys(("no_state", "window_full", "blocked"), "critical"),
    **dict.fromkeys(("commits_without_progress", "silent", "unread", "stalled"), "warning"),
    **dict.fromkeys(("held_back", "never_committed"), "warning"),
    **dict.fromkeys(("stuck_initializing", "stuck_deleting", "cannot_tell"), "warning"),
    **dict.fromkeys(("caught_up", "moving"), "good"),
}
_COLUMNS: Final = columns_of("audited_groups", tones={"verdict": TONES})
_SPARK_AT: Final = 3
_NAMED: Final = {
    "severity": "Worst finding",
    "group_type": "Type",
    "state": "State",
    "verdict": "Verdict",
    "status": "Status",
}


def worst_groups(read: WorkspaceTables) -> pa.Table:
    """Return the rows of `audited_groups` that the page shows."""
    return read.first("audited_groups", MOST_GROUPS)


def groups_grid(read: WorkspaceTables, stories: frozenset[str]) -> Grid:
    """Return the table of groups.

    Args:
        read: `audited_groups`, and `offset_history` of the groups that are shown.
        stories: Groups that have a story.
    """
    rows = worst_groups(read)
    grid = grid_of(
        "groups-table",
        "Groups, the worst first",
        rows,
        _COLUMNS,
        top=MOST_GROUPS,
        source="evaluations/audited_groups",
        stories=stories,
    )
    grid = of_so_many(grid, read.count("audited_groups"), "evaluations/audited_groups")
    if not grid.rows:
        return grid
    sparks = _sparks(read, rows)
    return _rolled_up(rows["group_id"].to_pylist(), _with_sparks(grid, sparks))


def _with_sparks(grid: Grid, sparks: Sequence[Cell]) -> Grid:
    return replace(
        grid,
        heads=(*grid.heads[:_SPARK_AT], "Commits", *grid.heads[_SPARK_AT:]),
        rows=tuple(
            (*row[:_SPARK_AT], spark, *row[_SPARK_AT:])
            for row, spark in zip(grid.rows, sparks, strict=True)
        ),
        numbers=frozenset(n if n < _SPARK_AT else n + 1 for n in grid.numbers),
        sentences=frozenset(),
    )


def _rolled_up(groups: Sequence[str], grid: Grid) -> Grid:
    """Return the table with one line, the last, for groups that a tool named alike.

    It counts them and what was found about them; nobody comes back for one of them.

    Args:
        groups: The names of its rows.
        grid: The table.
    """
    names = [_shared_name(each) for each in groups]
    counts = Counter(each for each in names if each is not None)
    alike = [name for name, number in counts.items() if number > 1]
    kept = [row for row, name in zip(grid.rows, names, strict=True) if name not in alike]
    summed = {n for n, head in enumerate(grid.heads) if head in _SUMMED}
    for name in alike:
        mine = [row for row, each in zip(grid.rows, names, strict=True) if each == name]
        kept.append(
            (
                Cell(f"{name} ({count(len(mine), 'group')})"),
                *(
                    Cell(f"{sum(int(row[n].text.replace(',', '')) for row in mine):,}")
                    if n in summed
                    else _doubt_of(mine, n)
                    if grid.heads[n] == HEAD
                    else Cell(ABSENT)
                    for n in range(1, len(grid.heads))
                ),
            )
        )
    return replace(grid, rows=tuple(kept))


def _doubt_of(rows: Sequence[Sequence[Cell]], place: int) -> Cell:
    """Return the first mark that rows have there: what is not shown whole of one is not of all."""
    return next((row[place] for row in rows if row[place].text != ABSENT), Cell(ABSENT))


_SUMMED: Final = ("Critical", "Warnings", "Worth knowing")
"""Heads of columns whose cells are never empty, and can be added up."""


def _shared_name(group: str) -> str | None:
    return next((name for pattern, name in shared_names() if re.fullmatch(pattern, group)), None)


def _sparks(read: WorkspaceTables, groups: pa.Table) -> list[Cell]:
    wanted = groups.select(["group_id", "busiest_topic", "busiest_partition"]).to_pylist()
    series = _commits(read, wanted)
    return [_spark(row, series) for row in wanted]


def _spark(row: Mapping[str, Any], series: Mapping[Any, list[tuple[int, int]]]) -> Cell:
    points = series.get((row["group_id"], row["busiest_topic"], row["busiest_partition"]), [])
    if len(points) < 2:
        return Cell(ABSENT)
    place = harmless(f"{row['busiest_topic']}-{row['busiest_partition']}")
    says = f"committed offset of {place}: {points[0][1]:,} to {points[-1][1]:,}"
    return Cell(says, svg=sparkline(points))


def _commits(
    read: WorkspaceTables, wanted: list[Mapping[str, Any]]
) -> dict[Any, list[tuple[int, int]]]:
    """Return times and committed offsets of the busiest partition of each group."""
    history = read.rows("offset_history")
    if not history.num_rows:
        return {}
    groups = pa.array([row["group_id"] for row in wanted], pa.string())
    known = history.filter(
        pc.and_(pc.is_in(history["group_id"], groups), pc.is_valid(history["committed_offset"]))
    )
    keys = {(row["group_id"], row["busiest_topic"], row["busiest_partition"]) for row in wanted}
    found: dict[Any, list[tuple[int, int]]] = {}
    columns = ("group_id", "topic", "partition", "effective_timestamp", "committed_offset")
    lists = [known[name].to_pylist() for name in columns[:3]]
    times = pc.cast(known[columns[3]], pa.int64()).to_pylist()
    for *key, time, offset in zip(*lists, times, known[columns[4]].to_pylist(), strict=True):
        if tuple(key) in keys and time is not None:
            found.setdefault(tuple(key), []).append((time, offset))
    return {key: sorted(points) for key, points in found.items()}


def counts_of(read: WorkspaceTables) -> tuple[Fact, ...]:
    """Return how many groups there are of each type, state and verdict."""
    facts = []
    rows = read.rows("audited_group_counts").to_pylist()
    worst_first = [*SEVERITIES, "none"]
    rows.sort(key=lambda row: worst_first.index(row["value"]) if row["value"] in worst_first else 0)
    for name, title in _NAMED.items():
        parts = [
            f"{row['groups']:,} {harmless(row['value'].replace('_', ' '))}"
            for row in rows
            if row["property"] == name
        ]
        if parts:
            facts.append(Fact(title, Cell(", ".join(parts))))
    return tuple(facts)


# The stories.

MOST_STORIES: Final = 100
MOST_DRAWN: Final = 16
"""So many of them have charts."""
_MOST_FINDINGS, _MOST_VERDICTS, _MOST_EVENTS = 12, 12, 40
_FACTS: Final = columns_of("audited_groups", "page_of_story")
_VERDICTS: Final = columns_of("offset_verdicts")
_EVENTS: Final = columns_of("group_events")
Row = Mapping[str, Any]

_MOST_BANDS, _MOST_MEMBERS, _MOST_LINES, _MOST_POINTS = 400, 14, 5, 120


def groups_with_stories(read: WorkspaceTables) -> tuple[str, ...]:
    """Return the groups that get a story: those with the worst findings."""
    rows = read.first("audited_groups", MOST_GROUPS).to_pylist()
    found = [row["group_id"] for row in rows if any(row[each] for each in SEVERITIES)]
    return tuple(found[:MOST_STORIES])


def stories_of(
    read: WorkspaceTables, groups: Iterable[str], shown: frozenset[str]
) -> tuple[Story, ...]:
    """Return the stories.

    Args:
        read: `audited_groups`, `findings`; `offset_verdicts` and `group_events` of these groups.
        groups: Of `groups_with_stories`.
        shown: Findings that the page shows, to lead to.
    """
    wanted = list(groups)
    if not wanted:
        return ()
    known = {row["group_id"]: row for row in read.first("audited_groups", MOST_GROUPS).to_pylist()}
    drawn = [each for each in wanted if known[each]["critical"] or known[each]["warning"]]
    end = _end(read)
    return tuple(
        _story(read, known[group], shown, _drawn(read, group, end, drawn[:MOST_DRAWN]))
        for group in wanted
    )


def _drawn(
    read: WorkspaceTables, group: str, end: datetime | None, drawn: Sequence[str]
) -> tuple[Figure, ...]:
    return tuple(charts_of(read, group, group_anchor(group), end)) if group in drawn else ()


def _end(read: WorkspaceTables) -> datetime | None:
    said = read.summary["as_of"].get("time")
    return None if said is None else datetime.fromisoformat(said)


def _story(
    read: WorkspaceTables, row: Row, shown: frozenset[str], figures: tuple[Figure, ...]
) -> Story:
    group = row["group_id"]
    anchor = group_anchor(group)
    findings = read.of_group("findings", group).slice(0, _MOST_FINDINGS).to_pylist()
    return Story(
        anchor=anchor,
        group=name_cell(group),
        severity=next(each for each in SEVERITIES if row[each]),
        facts=tuple(
            Fact(each.head, Cell(text_of(row, each)))
            for each in _FACTS
            if row[each.name] is not None
        ),
        findings=tuple(
            Clause(
                name_cut(each["message"], LONGEST_SENTENCE),
                f"#finding-{each['finding_id']}" if each["finding_id"] in shown else "",
                each["severity"],
            )
            for each in findings
        ),
        figures=figures,
        grids=tuple(each for each in _grids(read, group, anchor) if each.rows),
    )


def _grids(read: WorkspaceTables, group: str, anchor: str) -> Iterable[Grid]:
    yield grid_of(
        f"{anchor}-verdicts",
        "What happened to its offsets, the worst first",
        in_words(read.of_group("offset_verdicts", group)),
        _VERDICTS,
        top=_MOST_VERDICTS,
        source="evaluations/offset_verdicts",
    )
    yield grid_of(
        f"{anchor}-events",
        "Events, in order",
        _in_time(read.of_group("group_events", group)),
        _EVENTS,
        top=_MOST_EVENTS,
        source="history/group_events",
    )


def _in_time(events: pa.Table) -> pa.Table:
    if not events.num_rows:
        return events
    return events.sort_by([("at", "ascending"), ("record_offset", "ascending")])


def charts_of(
    read: WorkspaceTables,
    group: str,
    anchor: str,
    end: datetime | None,
    lost: Sequence[Row] = (),
) -> Iterator[Figure]:
    """Yield the charts of a group.

    Args:
        read: `assignment_history`, `offset_history`, `coordinator_epochs`.
        group: The group.
        anchor: Of its story.
        end: The instant asked about: what is still so ends there.
        lost: Offsets that elections took: `topic`, `partition`, `was`, `committed_at`, `at`.
    """
    yield from _ownership(read.of_group("assignment_history", group), f"{anchor}-owned", end)
    yield from _offsets(read, group, f"{anchor}-offsets", end, lost)


def _ownership(history: pa.Table, anchor: str, end: datetime | None) -> Iterator[Figure]:
    if not history.num_rows:
        return
    kept = history.filter(
        pc.and_(pc.not_equal(history["kind"], "target"), pc.is_valid(history["from_timestamp"]))
    )
    columns = ("member_id", "client_id", "topic", "partition", "from_timestamp", "to_timestamp")
    known = dicts(kept.sort_by([("from_timestamp", "ascending")]), *columns)
    members = list(dict.fromkeys(row["member_id"] for row in known))[:_MOST_MEMBERS]
    named = labels(members)
    rows = [
        {
            "member": named[row["member_id"]],
            "partition": harmless(place(row)),
            "from": at(row["from_timestamp"]),
            "to": at(row["to_timestamp"] or end or row["from_timestamp"]),
        }
        for row in known
        if row["member_id"] in named
    ][:_MOST_BANDS]
    says = ""
    if known:
        first, last = known[0], known[-1]
        says = (
            f"From {at(first['from_timestamp'])}, {harmless(first['member_id'])} had "
            f"{harmless(place(first))}; the latest to get a partition was "
            f"{harmless(last['member_id'])}, at {at(last['from_timestamp'])}.{doubt_said(kept)}"
        )
    yield from figure(anchor, "Who owned which partitions (UTC)", says, rows, ownership)


def _offsets(
    read: WorkspaceTables,
    group: str,
    anchor: str,
    end: datetime | None,
    losses: Sequence[Row],
) -> Iterator[Figure]:
    history = read.of_group("offset_history", group)
    if not history.num_rows:
        return
    columns = ("topic", "partition", "event", "committed_offset", "previous_offset", "advance")
    time = "effective_timestamp"
    known = dicts(
        history.filter(pc.is_valid(history[time])).sort_by([(time, "ascending")]), *columns, time
    )
    commits = [row for row in known if row["committed_offset"] is not None]
    places = [each for each, _ in Counter(map(place, commits)).most_common(_MOST_LINES)]
    named = labels(sorted(places))
    lines = [
        {"place": named[place(row)], "at": at(row[time]), "offset": row["committed_offset"]}
        for name in sorted(places)
        for row in _some_of([row for row in commits if place(row) == name])
    ]
    first_and_last = lines[:1] + lines[-1:]
    lines += _still_in_force(known, named, end)
    lost = [
        {"offset": row["was"], "from": at(row["committed_at"]), "to": at(row["at"])}
        for row in losses
        if place(row) in named
    ]
    marks = [
        {"at": at(row[time]), "offset": offset, "what": what}
        for row in known
        if place(row) in named
        for what, offset in [_marked(row)]
        if what is not None and offset is not None
    ]
    elections = _elections(read, history, {row["at"] for row in lines})
    says = ""
    if lines:
        first, last = first_and_last[0], first_and_last[-1]
        says = (
            f"{first['place']} began at {first['offset']:,} at {first['at']}; "
            f"{last['place']} ended at {last['offset']:,} at {last['at']}."
        )
        says += " Dashed upright lines are elections of the coordinator." if elections else ""
        says += " Dashed level lines are what was lost with a line of its log." if lost else ""
        says += doubt_said(history)
    yield from figure(
        anchor,
        "Committed offsets over time (UTC)",
        says,
        lines,
        lambda rows, name: committed_offsets(rows, marks, elections, lost, name),
    )


def _still_in_force(
    changes: Sequence[Row], named: Mapping[str, str], end: datetime | None
) -> list[dict[str, Any]]:
    """Return the offsets that were in force at the instant asked about, there."""
    last = {place(row): row for row in changes}
    return [
        {"place": named[name], "at": at(end), "offset": row["committed_offset"]}
        for name, row in sorted(last.items())
        if end is not None
        and name in named
        and row["committed_offset"] is not None
        and row["effective_timestamp"] < end
    ]


def _marked(row: Row) -> tuple[str | None, int | None]:
    if row["committed_offset"] is None:
        return "removed", row["previous_offset"]
    if row["advance"] is not None and row["advance"] < 0:
        return "went back", row["committed_offset"]
    return None, None


def _elections(read: WorkspaceTables, history: pa.Table, times: set[str]) -> list[dict[str, str]]:
    """Return the elections of the group's coordinator while it committed."""
    epochs = read.rows("coordinator_epochs")
    if not epochs.num_rows or not times:
        return []
    partitions = set(history["coordinator_partition"].to_pylist())
    found = {
        at(row["elected_at"])
        for row in dicts(epochs, "topic", "partition", "elected_at")
        if row["elected_at"] is not None
        and row["topic"] == CONSUMER_OFFSETS
        and row["partition"] in partitions
    }
    return [{"at": each} for each in sorted(found) if min(times) <= each <= max(times)]


def _some_of(rows: list[Row]) -> list[Row]:
    """Return at most `_MOST_POINTS` of the rows, with every step back."""
    if len(rows) <= _MOST_POINTS:
        return rows
    step = (len(rows) - 1) / (_MOST_POINTS - 1)
    places = {round(n * step) for n in range(_MOST_POINTS)}
    places |= {n for n, row in enumerate(rows) if row["advance"] is not None and row["advance"] < 0}
    return [rows[n] for n in sorted(places)]
