"""Which broker coordinated a group, where the metadata log tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from analytics.replayed.records_at import records_at
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


def coordinators(replayed: ReplayedWorkspace) -> dict[int, str]:
    """Return `host:port (id)` by partition of the offsets topic, as Kafka's tools print it.

    Where a partition has no leader at the instant, the only replica that could lead it is named.
    """
    tables = StoredTables(replayed.tables.workspace)
    leaders = tables.read(
        "partition_leaders",
        ["partition", "leader", "isr", "elr"],
        pc.field("topic") == CONSUMER_OFFSETS,
    ).to_pylist()
    places = _places(replayed)
    named: dict[int, str] = {}
    for each in leaders:
        broker = leader_of(each)
        if broker in places:
            named[each["partition"]] = f"{places[broker]} ({broker})"
    return named


def leader_of(row: dict[str, Any]) -> int | None:
    """Return the leader, else the only replica that could be; a row of `partition_leaders`."""
    leader: int | None = row["leader"]
    if leader is not None and leader >= 0:
        return leader
    candidates = set(row["isr"] or ()) | set(row["elr"] or ())
    return candidates.pop() if len(candidates) == 1 else None


def _places(replayed: ReplayedWorkspace) -> dict[int, str]:
    """Return the first address each broker registered under."""
    places = {}
    for each in records_at(replayed, "register_broker_record", ["value"])["value"].to_pylist():
        if each and each["end_points"]:
            first = each["end_points"][0]
            places[each["broker_id"]] = f"{first['host']}:{first['port']}"
    return places
