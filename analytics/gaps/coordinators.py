"""Which broker coordinated a group, and its elections, where the metadata log tells, with Arrow.

A cut by a time is a cut of the log (`analytics.replay.log.log_times`): where the times of the
metadata log go back around it, partitions whose elections one cut has and the other has not are
uncertain.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.elections import registered_by
from analytics.decode.unjudged_elections import Evidence, copies_of, elections_of
from analytics.dump.copies.leadership import Registered
from analytics.replay.log.log_times import Frame, Frames, frames_of_rows
from analytics.replayed.records import Records
from analytics.tables.stored_tables import StoredTables
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_Row = dict[str, Any]
_SNAPSHOT: Final = ".checkpoint"


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
    for each in Records(replayed).table("register_broker_record", ["value"])["value"].to_pylist():
        if each and each["end_points"]:
            first = each["end_points"][0]
            places[each["broker_id"]] = f"{first['host']}:{first['port']}"
    return places


def coordinator_evidence(
    state: ReplayedWorkspace, until: datetime | None = None, frames: Frames | None = None
) -> dict[int, Evidence]:
    """Return what tells of the elections of each partition of the offsets topic.

    Args:
        state: A replayed workspace.
        until: The last instant that counts; None is that of the workspace.
        frames: Where logs whose times go back are cut at that instant; None as the workspace says.
    """
    cuts = frames_of_rows(state.frames) if frames is None else frames
    of_metadata = cuts.get((CLUSTER_METADATA, 0))
    registered = _registered(state, until, of_metadata)
    epochs = _epochs(state, until, cuts)
    every = StoredTables(state.tables.workspace)
    lost = every.read("divergences", where=pc.field("topic") == CONSUMER_OFFSETS).to_pylist()
    found: dict[int, Evidence] = {}
    of_topic = [each for each in state.manifest["partitions"] if each["topic"] == CONSUMER_OFFSETS]
    for number in {each["partition"] for each in of_topic}:
        rows = registered.get(number, [])
        told = _by(rows)
        found[number] = Evidence(
            elections=elections_of(told.led),
            is_replicated=told.is_replicated,
            copies=copies_of(state.manifest, CONSUMER_OFFSETS, number),
            epochs=epochs.get(number),
            lost=[
                (each["lost_leader_epoch"], each["surviving_leader_epoch"])
                for each in lost
                if each["partition"] == number
            ],
            uncertain=_uncertain(rows, of_metadata),
        )
    return found


def _by(rows: list[_Row]) -> Registered:
    return registered_by(rows) if rows else Registered()


def _uncertain(rows: list[_Row], frame: Frame | None) -> str | None:
    """Return why elections may have been later than the instant; None where both cuts agree."""
    if frame is None or frame.is_certain:
        return None
    certain = [each for each in rows if _is_before(each, frame.certain_end)]
    if elections_of(_by(certain).led) == elections_of(_by(rows).led):
        return None
    return frame.why(CLUSTER_METADATA, 0)


def _is_before(record: _Row, end: int) -> bool:
    """Return whether a record is before an offset of the metadata log, or of a snapshot."""
    return record["offset"] < end or _is_of_snapshot(record)


def _is_of_snapshot(record: _Row) -> bool:
    return str(record["segment"]).endswith(_SNAPSHOT)


def _epochs(
    state: ReplayedWorkspace, until: datetime | None, frames: Frames
) -> dict[int, dict[int, datetime | None]]:
    """Return the leader epochs of each surviving log, and when their leaders came.

    Epochs in which nobody wrote are known of the end of the dump only.
    """
    found: dict[int, dict[int, datetime | None]] = defaultdict(dict)
    for each in state.manifest["partitions"]:
        if each["topic"] == CONSUMER_OFFSETS and each.get("is_leading", True):
            named = [epoch["epoch"] for epoch in each.get("leader_epochs") or ()]
            if named:
                is_end = state.is_end and until is None
                found[each["partition"]].update(dict.fromkeys(named) if is_end else {})
    every = StoredTables(state.tables.workspace)
    of_topic = pc.field("topic") == CONSUMER_OFFSETS
    for row in every.read("coordinator_epochs", where=of_topic).to_pylist():
        first, frame = row["from_timestamp"], frames.get((CONSUMER_OFFSETS, row["partition"]))
        if frame is not None and row["from_offset"] is not None:
            is_in_time = row["from_offset"] < frame.possible_end
        else:
            is_in_time = until is None or first is None or first <= until
        if is_in_time:
            found[row["partition"]][row["leader_epoch"]] = row["elected_at"] or first
    return found


def _registered(
    state: ReplayedWorkspace, until: datetime | None, frame: Frame | None
) -> dict[int, list[_Row]]:
    """Return what the metadata log says of each partition of the offsets topic."""
    every = StoredTables(state.tables.workspace)
    of_topic = pc.field("topic") == CONSUMER_OFFSETS
    ids = every.read("topics", ["topic_id"], of_topic)["topic_id"].drop_null()
    wanted = pc.field("value", "topic_id").isin(pa.array(ids.to_pylist(), pa.string()))
    found: dict[int, list[_Row]] = defaultdict(list)
    for name in ("partition_record", "partition_change_record"):
        for row in Records(state).table(name, ["segment", "value"], wanted).to_pylist():
            if _is_in_time(row, until, frame):
                found[row["value"]["partition_id"]].append(row)
    return found


def _is_in_time(record: _Row, until: datetime | None, frame: Frame | None) -> bool:
    """Return whether a record is before the later of the two cuts; snapshots tell of no time."""
    if frame is not None:
        return _is_before(record, frame.possible_end)
    at = record["timestamp"]
    return until is None or at is None or at <= until or _is_of_snapshot(record)
