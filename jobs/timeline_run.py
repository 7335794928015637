"""What `timeline` does: verdicts and events of the groups asked for, from tables of history."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import names_wanted
from jobs.asked_groups import AskedGroups, asked_groups
from jobs.cli.dump_time import resolved_time
from jobs.end_offsets import end_offsets_at
from jobs.instant import BeforeEnd
from jobs.instant import shown as iso
from jobs.lost_commits import lost_commits
from jobs.replayed import replayed
from jobs.stored_tables import StoredTables
from reports.layout.section import raw_section
from reports.printed_times import times
from reports.row_formats import Section, shown
from reports.timeline import verdicts as told
from reports.timeline.events import EVIDENCE, event_rows
from reports.timeline.events import HEADS as EVENT_HEADS
from reports.timeline.topic_lives import METADATA_LOG, TopicLives

if TYPE_CHECKING:
    from jobs.console import Console
    from jobs.replayed import Replayed

NEEDS = (
    *("groups", "topics", "partition_leaders", "assignments"),
    *("committed_offsets", "pending_offsets"),
    *("offset_history", "group_events", "divergences", "load_faults"),
)
_OFFSETS_TOPIC = "__consumer_offsets"
_PLACE = ("group_id", "topic", "partition")
_DELETED = "delete"
VERDICTS = "verdicts"


def timeline_of_inputs(
    console: Console,
    output_format: str,
    *,
    time_from: int | BeforeEnd | None,
    time_to: int | BeforeEnd | None,
    end_offsets: str | None,
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT or a side file is not what it has to be.
    """
    with replayed(console, needs=NEEDS, **options) as state:
        since, until = (resolved_time(each, state.manifest) for each in (time_from, time_to))
        events = event_rows(state.tables.read("group_events"), since, until)
        asked = asked_groups(state)
        rows = told.verdicts(_known(state, asked, end_offsets, since, until))
        rows += _lost_groups(state, events)
        # One that was deleted, or lost, has a timeline nevertheless.
        asked = asked.without_missing({row["group_id"] for row in rows}).without_missing(
            events["group_id"].to_pylist()
        )
        asked.tell(console)
        said = {
            **state.said,
            "cannot_tell": list(asked.cannot_tell),
        }
        listed = Section(events, EVENT_HEADS, EVIDENCE, name="events")
        code = asked.exit_code or state.exit_code
        if output_format in {"json", "csv"}:
            return shown([_raw_verdicts(rows), listed], output_format, said), code
        sections = [each for each in (_verdict_section(rows), listed) if each.rows.num_rows]
        return shown(sections, output_format, said) or "Nothing happened in that time.", code


def _known(
    state: Replayed,
    asked: AskedGroups,
    end_offsets: str | None,
    since: datetime | None,
    until: datetime | None,
) -> told.Known:
    """Read what verdicts are made of."""
    tables = state.tables
    back = (pc.field("event") == _DELETED) | (pc.field("advance") < 0)
    for bound, is_inside in ((since, pc.greater_equal), (until, pc.less_equal)):
        if bound is not None:
            back &= is_inside(pc.field("effective_timestamp"), pa.scalar(bound))
    setbacks = tables.read("offset_history", where=back).sort_by("effective_offset")
    seen = tables.read("offset_history", _PLACE).group_by(list(_PLACE)).aggregate([])
    # Share groups commit nothing, and what streams groups read is not in their tasks.
    commit = pc.field("group_type").isin(["classic", "consumer"])
    given = tables.read("assignments", _PLACE, commit & pc.field("topic").is_valid())
    ends = end_offsets_at(state, end_offsets)
    return told.Known(
        setbacks=setbacks.to_pylist(),
        committed=tables.read("committed_offsets").to_pylist(),
        pending=tables.read("pending_offsets").to_pylist(),
        given=_places(given),
        seen=frozenset(_places(seen)),
        log_starts={
            (row["topic"], row["partition"]): row["log_start_offset"]
            for row in ends.to_pylist()
            if row["log_start_offset"] is not None
        },
        lost=_lost_commits(state, since, until),
        topics=_topics(state),
        untold=_untold(state, asked),
    )


def _lost_commits(
    state: Replayed, since: datetime | None, until: datetime | None
) -> list[dict[str, Any]]:
    """Return commits of lost lines, as far as the election is in the time asked about.

    Groups that only such a line has get a verdict of their own.
    """
    there = set(state.tables.read("group_events", ["group_id"])["group_id"].to_pylist())
    return [
        row
        for row in lost_commits(state)
        if row["group_id"] in there
        and (row["at"] is None or (since or row["at"]) <= row["at"] <= (until or row["at"]))
    ]


def _topics(state: Replayed) -> TopicLives:
    """Return what is known of topics; with commits that name ids only where ids need an order."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in state.tables.read("topics").to_pylist():
        rows.setdefault(row["topic"], []).append(row)
    several = [
        topic
        for topic, lives in rows.items()
        if len(lives) > 1 and not any(each["source"] == METADATA_LOG for each in lives)
    ]
    if not several:
        return TopicLives(rows, state.is_end)
    # Of all groups: each tells of the topic.
    named = (
        StoredTables(state.tables.workspace)
        .read(
            "offset_history",
            ["topic", "topic_id", "commit_timestamp"],
            pc.field("topic").isin(several) & pc.field("topic_id").is_valid(),
        )
        .group_by(["topic", "topic_id"])
        .aggregate([("commit_timestamp", "min_max")])
    )
    spans = {
        (row["topic"], row["topic_id"]): tuple(row["commit_timestamp_min_max"].values())
        for row in named.to_pylist()
        if row["commit_timestamp_min_max"]["min"] is not None
    }
    return TopicLives(rows, state.is_end, spans)


def _untold(state: Replayed, asked: AskedGroups) -> dict[str, str]:
    """Return, by group, why commits may have been there of which nothing is left."""
    complete_from = {
        each["partition"]: each["complete_from"]
        for each in state.manifest["partitions"]
        if each["topic"] == _OFFSETS_TOPIC and each.get("complete_from")
    }
    return {
        row["group_id"]: (
            f"of what was below offset {complete_from[row['coordinator_partition']]} of "
            f"{_OFFSETS_TOPIC}-{row['coordinator_partition']} compaction may have taken a commit "
            f"and its tombstone"
        )
        for row in asked.found.to_pylist()
        if row["coordinator_partition"] in complete_from
    }


def _lost_groups(state: Replayed, events: pa.Table) -> list[dict[str, Any]]:
    """Return a verdict for each group that only a line of history has which did not survive.

    Several of its partitions may have diverged: the last election is named.
    """
    there = set(events["group_id"].to_pylist())
    wanted = state.tables.selection
    rows: dict[str, dict[str, Any]] = {}
    for each in state.tables.read("divergences").sort_by("elected_at").to_pylist():
        for group in names_wanted(each["groups_only_there"], wanted.groups, wanted.exclude_groups):
            if group in there:
                continue
            rows[group] = dict.fromkeys(told.VERDICT_COLUMNS) | {
                "group_id": group,
                "verdict": told.LOST,
                "at": each["elected_at"],
                "confidence": "high",
                "reason": f"only copy {each['copy']} has it: --prefer-copy {each['copy']}",
            }
    return list(rows.values())


def _verdict_section(rows: list[dict[str, Any]]) -> Section:
    merged = told.by_topic(rows)
    table = pa.Table.from_pylist(merged, schema=_VERDICTS)
    shown_times = times(table["at"])
    place = table.column_names.index("at")
    return Section(
        table.set_column(place, "at", shown_times),
        told.HEADS,
        name=VERDICTS,
        key=VERDICTS,
        spare=["record"],
    )


def _raw_verdicts(rows: list[dict[str, Any]]) -> Section:
    listed = [_readable(row) for row in rows]
    table = pa.table({name: [row[name] for row in listed] for name in told.VERDICT_COLUMNS})
    return raw_section(table, VERDICTS)


_VERDICTS = pa.schema(
    [
        *((name, pa.string()) for name in ("group_id", "topic", "partitions", "verdict")),
        ("at", pa.timestamp("us", "UTC")),
        ("advance", pa.int64()),
        *((name, pa.string()) for name in ("confidence", "record", "reason")),
    ]
)


def _places(rows: pa.Table) -> list[told.Place]:
    return list(zip(*(rows[name].to_pylist() for name in _PLACE), strict=True))


def _readable(row: Mapping[str, Any]) -> dict[str, Any]:
    at = row["at"]
    return {**row, "at": None if at is None else iso(at)}
