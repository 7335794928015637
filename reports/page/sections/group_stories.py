"""One story a group with a finding: what was found, what happened to its offsets, its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.page.anchors import group_anchor
from reports.page.grids import Shown, grid_of, name_cell
from reports.page.model import Cell, Clause, Fact, Figure, Grid, Story
from reports.page.sections.groups import MOST as MOST_GROUPS
from reports.page.sections.story_charts import charts_of
from reports.page.texts import LONGEST_SENTENCE, cell_text, name_cut
from reports.page.workspace_tables import WorkspaceTables
from schemas.finding_rules import SEVERITIES

MOST: Final = 100
MOST_DRAWN: Final = 16
"""So many of them have charts."""
_MOST_FINDINGS: Final = 12
_MOST_VERDICTS: Final = 12
_MOST_EVENTS: Final = 40
_FACTS: Final = (
    Shown("group_type", "Type"),
    Shown("state", "State"),
    Shown("members", "Members", "number"),
    Shown("topics", "Topics", "number"),
    Shown("partitions", "Partitions", "number"),
    Shown("verdict", "Verdict", "word"),
    Shown("lag", "Lag", "number"),
    Shown("time_lag_ms", "Time lag", "duration"),
    Shown("next_expires_at", "Next expiry"),
    Shown("last_commit_at", "Last commit"),
)
_VERDICTS: Final = (
    Shown("topic", "Topic", "name"),
    Shown("partition", "Partition", "partition"),
    Shown("verdict", "What happened", "word"),
    Shown("at", "At", "time"),
    Shown("was", "Was", "number"),
    Shown("became", "Became", "number"),
    Shown("cost", "Records read again", "number"),
    Shown("record", "Record"),
    Shown("reason", "Why"),
)
_EVENTS: Final = (
    Shown("at", "At", "time"),
    Shown("event", "Event", "word"),
    Shown("subject", "Of", "name"),
    Shown("detail", "Detail"),
)

Row = Mapping[str, Any]


def groups_with_stories(read: WorkspaceTables) -> tuple[str, ...]:
    """Return the groups that get a story: those with the worst findings."""
    rows = read.rows("audited_groups").slice(0, MOST_GROUPS).to_pylist()
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
    rows = read.rows("audited_groups")
    mine = rows.filter(pc.is_in(rows["group_id"], pa.array(wanted, pa.string()))).to_pylist()
    known = {row["group_id"]: row for row in mine}
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
        read.of_group("offset_verdicts", group),
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
