"""An incident: when it was, whom it hit, what differs before and after, and who else suffered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import is_name, names_wanted
from analytics.dump.inspection.limitations import ranges
from analytics.errors import CannotTellError
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.diff.question import DIFF
from analytics.questions.restore.question import RESTORE
from analytics.questions.timeline.words import CANNOT_TELL, Verdict
from analytics.replay.dump.choices import BeforeEnd, iso_time
from analytics.replay.dump.times import first_time, last_time, resolved_time
from analytics.replayed.records import Records
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from schemas.evaluation_rules import harmless_verdicts

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

# Which verdicts and events fall into the time around an incident, and whose they are.

SUFFERED: Final = frozenset({"offset_lost", "offsets_deleted", "deleted"})
"""Events by which a group suffers."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Window:
    """The time around an incident; both ends belong to it."""

    begin: datetime
    end: datetime

    def touches(self, row: Row) -> bool:
        """Return whether a verdict may be of this time; one without a time may be of any."""
        at: datetime | None = row["at"]
        not_before: datetime | None = row["not_before"]
        if at is None:
            return not_before is None or not_before <= self.end
        return at >= self.begin and (not_before or at) <= self.end

    def contains(self, at: datetime | None) -> bool:
        """Return whether an instant is in it."""
        return at is not None and self.begin <= at <= self.end


def happened(verdicts: Iterable[Verdict], window: Window) -> list[Verdict]:
    """Return the verdicts on something that happened, or may have happened, in the time."""
    harmless = harmless_verdicts()
    return [each for each in verdicts if each["verdict"] not in harmless and window.touches(each)]


def suffering(verdicts: Iterable[Verdict], events: Iterable[Row], window: Window) -> list[str]:
    """Return the groups that something surely happened to in the time, those with most first.

    Args:
        verdicts: Of all groups.
        events: Rows of `group_events`: `group_id`, `at`, `event`.
        window: The time.
    """
    counts: dict[str, int] = {}
    for each in happened(verdicts, window):
        if each["verdict"] != CANNOT_TELL and each["at"] is not None:
            counts[each["group_id"]] = counts.get(each["group_id"], 0) + 1
    for row in events:
        if row["event"] in SUFFERED and window.contains(row["at"]):
            counts.setdefault(row["group_id"], 0)
    return sorted(counts, key=lambda group: (-counts[group], group))


COORDINATED: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
ROWS_OF_STATES: Final = tuple(dict.fromkeys((*DIFF.needs, *RESTORE.needs, "assignments")))
"""The tables that both states need."""
OWNERS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("group_id", "topic", "member_id", "client_id")),
        *((name, pa.string()) for name in ("before", "after")),
    ]
)
"""A row a member and topic: the partitions it had before, and after."""
OTHERS: Final = pa.schema(
    [
        ("group_id", pa.string()),
        ("coordinator_partition", pa.int32()),
        ("is_same_coordinator", pa.bool_()),
        ("verdicts", pa.string()),
        ("partitions", pa.int64()),
        ("first_at", pa.timestamp("us", "UTC")),
    ]
)
"""A row a group that suffered in the same time."""
CLUSTER: Final = pa.schema(
    [("at", pa.timestamp("us", "UTC")), ("event", pa.string()), ("broker", pa.int32())]
)
"""A row each time that a broker started, or was given up for dead."""
_OF_BROKERS: Final = {
    "register_broker_record": ("broker started", "broker_id"),
    "fence_broker_record": ("broker fenced: it no longer answered", "id"),
    "unfence_broker_record": ("broker unfenced: it takes part", "id"),
    "unregister_broker_record": ("broker removed", "broker_id"),
}
_OF_DIFF: Final = (
    *("group_id", "topic", "partition", "change"),
    *("from_committed_offset", "to_committed_offset", "difference"),
    *("cause", "copy", "elected_at", "reason"),
)


@dataclass(frozen=True)
class Around:
    """When an incident was.

    Attributes:
        at: The instant.
        window: The time around it that the dump holds.
        warnings: What to know of that time, one sentence each.
    """

    at: datetime
    window: Window
    warnings: tuple[str, ...]


def time_around(
    state: ReplayedWorkspace, instant: int | BeforeEnd, window_minutes: float
) -> Around:
    """Return when an incident was, and the time around it that the dump holds.

    Args:
        state: At the end of the dump.
        instant: Epoch milliseconds, or before the end of the dump.
        window_minutes: So long before and after it.

    Raises:
        CannotTellError: The dump holds nothing of it.
    """
    around = resolved_time(instant, state.manifest)
    first, last = first_time(state.manifest), last_time(state.manifest)
    if around is None or first is None or last is None:
        raise CannotTellError("no record of this dump has a time: nothing is around --around")
    if not first <= around <= last:
        raise CannotTellError(
            f"--around {iso_time(around)} is not in this dump, whose records are from "
            f"{iso_time(first)} to {iso_time(last)}"
        )
    span = timedelta(minutes=window_minutes)
    window = Window(max(around - span, first), min(around + span, last))
    warnings = []
    if around - span < first:
        warnings.append(f"the dump begins at {iso_time(first)}: what was before it is not known")
    if (sentence := _before_all_groups(window.begin, state)) is not None:
        warnings.append(sentence)
    return Around(around, window, tuple(warnings))


def _before_all_groups(begin: datetime, state: ReplayedWorkspace) -> str | None:
    """Return what to know where the time before the incident is before anything of a group."""
    first = first_time(state.manifest, COORDINATED)
    if first is None or begin >= first:
        return None
    return (
        f"before is {iso_time(begin)}, and no record of a group is older than {iso_time(first)}: "
        "nothing of before is there to compare or to restore. With a shorter --window-minutes "
        "before is later"
    )


def groups_hit(
    state: ReplayedWorkspace,
    happened_at_all: Mapping[str, pa.Table],
    window: Window,
    groups: Sequence[str],
    exclude_groups: Sequence[str],
) -> list[str]:
    """Return the groups that the page is about.

    Args:
        state: At the end of the dump.
        happened_at_all: What `timeline` answers with, of all groups.
        window: The time around the incident.
        groups: Names and patterns; nothing is whoever suffered.
        exclude_groups: Likewise, left out.

    Raises:
        CannotTellError: None is there, or nothing happened to any.
    """
    verdicts, events = happened_at_all["offset_verdicts"], happened_at_all["group_events"]
    if groups:
        there = {
            *state.tables.read("groups", ["group_id"])["group_id"].to_pylist(),
            *pc.unique(verdicts["group_id"]).to_pylist(),
            *pc.unique(events["group_id"]).to_pylist(),
        } - {None}
        names = [each for each in groups if is_name(each)]
        chosen = names_wanted(sorted(there | set(names)), groups, exclude_groups)
    else:
        rows = events_in(events, window).select(["group_id", "at", "event"]).to_pylist()
        suffered = suffering(verdicts.to_pylist(), rows, window)
        chosen = names_wanted(suffered, (), exclude_groups)
    if not chosen:
        raise CannotTellError(
            f"no group that matches {', '.join(groups)} is in this dump"
            if groups
            else f"nothing is known to have happened to a group from {iso_time(window.begin)} to "
            f"{iso_time(window.end)}; name one with --group"
        )
    return list(chosen)


def events_in(events: pa.Table, window: Window) -> pa.Table:
    """Return the events of the time; what has no time is not among them."""
    at = events["at"]
    return events.filter(pc.and_(pc.greater_equal(at, window.begin), pc.less_equal(at, window.end)))


def of_groups(rows: pa.Table, groups: Sequence[str]) -> pa.Table:
    """Return the rows of these groups."""
    return rows.filter(pc.is_in(rows["group_id"], pa.array(groups, pa.string())))


def changes_of(offsets: pa.Table) -> pa.Table:
    """Return what the page says of changed committed offsets (`changed_offsets`)."""
    return offsets.select(_OF_DIFF)


def owners_of(before: ReplayedWorkspace, after: ReplayedWorkspace) -> pa.Table:
    """Return who had which partitions before and after: `OWNERS`."""
    held: dict[tuple[Any, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    clients: dict[tuple[str, str], str] = {}
    for word, state in (("before", before), ("after", after)):
        members = state.tables.read("members", ["group_id", "member_id", "client_id"]).to_pylist()
        clients |= {(row["group_id"], row["member_id"]): row["client_id"] for row in members}
        for row in state.tables.read("assignments").to_pylist():
            if row["kind"] != "target" and row["partition"] is not None:
                topic = row["topic"] or row["subtopology_id"] or row["topic_id"]
                held[row["group_id"], topic, row["member_id"]][word].append(row["partition"])
    rows = [
        {
            "group_id": group,
            "topic": topic,
            "member_id": member,
            "client_id": clients.get((group, member)),
            **{word: ranges(sorted(set(had[word]))) or None for word in ("before", "after")},
        }
        for (group, topic, member), had in sorted(held.items(), key=lambda each: str(each[0]))
    ]
    return pa.Table.from_pylist(rows, schema=OWNERS)


def others_of(
    state: ReplayedWorkspace, groups: frozenset[str], verdicts: Iterable[Mapping[str, Any]]
) -> pa.Table:
    """Return the other groups that something happened to at once: `OTHERS`.

    Those of the same coordinator's partitions come first.

    Args:
        state: Tells the partition of a group.
        groups: Those that are told themselves.
        verdicts: Of all groups, in the time.
    """
    untold = GroupCompleteness(state)
    homes = {untold.home(group) for group in groups}
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in verdicts:
        if each["group_id"] not in groups:
            found[each["group_id"]].append(each)
    rows = []
    for group, mine in found.items():
        home = untold.home(group)
        times = [each["at"] for each in mine if each["at"] is not None]
        rows.append(
            {
                "group_id": group,
                "coordinator_partition": home,
                "is_same_coordinator": home in homes if home is not None else None,
                "verdicts": ", ".join(dict.fromkeys(each["verdict"] for each in mine)),
                "partitions": len({(each["topic"], each["partition"]) for each in mine}),
                "first_at": min(times, default=None),
            }
        )
    order = [
        ("is_same_coordinator", "descending"),
        ("partitions", "descending"),
        ("group_id", "ascending"),
    ]
    return pa.Table.from_pylist(rows, schema=OTHERS).sort_by(order)


def cluster_of(state: ReplayedWorkspace, window: Window) -> pa.Table:
    """Return what brokers did in the time: `CLUSTER`; nothing without a metadata log."""
    rows = [
        {"at": at, "event": event, "broker": value[field]}
        for name, (event, field) in _OF_BROKERS.items()
        for at, value in _records(state, name)
        if value is not None and window.contains(at)
    ]
    return pa.Table.from_pylist(rows, schema=CLUSTER).sort_by(
        [("at", "ascending"), ("broker", "ascending")]
    )


def _records(state: ReplayedWorkspace, name: str) -> Iterable[tuple[Any, Any]]:
    rows = Records(state).table(name, ["value"])
    return zip(rows["timestamp"].to_pylist(), rows["value"].to_pylist(), strict=True)
