"""What differs between the time before an incident and the time after, and who else suffered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.diff.question import DIFF
from analytics.questions.restore.question import RESTORE
from analytics.replayed.records_at import records_at
from reports.quantities import ranges

if TYPE_CHECKING:
    from analytics.questions.forensics.window import Window
    from jobs.workspaces.replayed import Replayed

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


def changes_of(offsets: pa.Table) -> pa.Table:
    """Return what the page says of changed committed offsets (`changed_offsets`)."""
    return offsets.select(_OF_DIFF)


def owners_of(before: Replayed, after: Replayed) -> pa.Table:
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
    state: Replayed, groups: frozenset[str], verdicts: Iterable[Mapping[str, Any]]
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


def cluster_of(state: Replayed, window: Window) -> pa.Table:
    """Return what brokers did in the time: `CLUSTER`; nothing without a metadata log."""
    rows = [
        {"at": at, "event": event, "broker": value[field]}
        for name, (event, field) in _OF_BROKERS.items()
        for at, value in _records(state, name)
        if value is not None and window.holds(at)
    ]
    return pa.Table.from_pylist(rows, schema=CLUSTER).sort_by(
        [("at", "ascending"), ("broker", "ascending")]
    )


def _records(state: Replayed, name: str) -> Iterable[tuple[Any, Any]]:
    rows = records_at(state, name, ["value"])
    return zip(rows["timestamp"].to_pylist(), rows["value"].to_pylist(), strict=True)
