"""One story a group with a finding: what was found, what happened to its offsets, its events.

Its charts show who owned what, and where its committed offsets were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.answers.verdict_words import in_words
from reports.charts.group_story import committed_offsets, ownership
from reports.page.chart_rows import at, dicts, figure, labels, place
from reports.page.doubts import doubt_said
from reports.page.grids import columns_of, grid_of, name_cell
from reports.page.model import Cell, Clause, Fact, Figure, Grid, Story
from reports.page.sections.groups import MOST as MOST_GROUPS
from reports.page.texts import LONGEST_SENTENCE, cell_text, group_anchor, harmless, name_cut
from reports.page.workspace_tables import WorkspaceTables
from schemas import CONSUMER_OFFSETS
from schemas.finding_rules import SEVERITIES

MOST: Final = 100
MOST_DRAWN: Final = 16
"""So many of them have charts."""
_MOST_FINDINGS: Final = 12
_MOST_VERDICTS: Final = 12
_MOST_EVENTS: Final = 40
_FACTS: Final = columns_of("audited_groups", "page_of_story")
_VERDICTS: Final = columns_of("offset_verdicts")
_EVENTS: Final = columns_of("group_events")
Row = Mapping[str, Any]

_MOST_BANDS: Final = 400
_MOST_MEMBERS: Final = 14
_MOST_LINES: Final = 5
_MOST_POINTS: Final = 120


def groups_with_stories(read: WorkspaceTables) -> tuple[str, ...]:
    """Return the groups that get a story: those with the worst findings."""
    rows = read.first("audited_groups", MOST_GROUPS).to_pylist()
    found = [row["group_id"] for row in rows if any(row[each] for each in SEVERITIES)]
    return tuple(found[:MOST])


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
            Fact(each.head, Cell(cell_text(row[each.name], each.kind)))
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
    read: WorkspaceTables, group: str, anchor: str, end: datetime | None
) -> Iterator[Figure]:
    """Yield the charts of a group.

    Args:
        read: `assignment_history`, `offset_history`, `coordinator_epochs`.
        group: The group.
        anchor: Of its story.
        end: The instant asked about: what is still so ends there.
    """
    yield from _ownership(read.of_group("assignment_history", group), f"{anchor}-owned", end)
    yield from _offsets(read, group, f"{anchor}-offsets")


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


def _offsets(read: WorkspaceTables, group: str, anchor: str) -> Iterator[Figure]:
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
        first, last = lines[0], lines[-1]
        says = (
            f"{first['place']} began at {first['offset']:,} at {first['at']}; "
            f"{last['place']} ended at {last['offset']:,} at {last['at']}."
        )
        says += " Dashed upright lines are elections of the coordinator." if elections else ""
        says += doubt_said(history)
    yield from figure(
        anchor,
        "Committed offsets over time (UTC)",
        says,
        lines,
        lambda rows, name: committed_offsets(rows, marks, elections, name),
    )


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
