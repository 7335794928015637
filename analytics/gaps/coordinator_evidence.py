"""What a workspace has of the elections of coordinators, read with Arrow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from analytics.decode.losses.elections import registered_by
from analytics.decode.losses.unjudged_elections import Evidence, copies_of, elections_of
from analytics.dump.copies.leadership import Registered
from analytics.tables.decoded_workspace import records_folder
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import DECODED, reading
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

Row = dict[str, Any]


def coordinator_evidence(state: ReplayedWorkspace, until: datetime | None) -> dict[int, Evidence]:
    """Return what tells of the elections of each partition of the offsets topic.

    Args:
        state: A replayed workspace.
        until: The last instant that counts; None for all.
    """
    registered = {number: registered_by(rows) for number, rows in _registered(state).items()}
    epochs = _epochs(state, until)
    every = StoredTables(state.tables.workspace)
    lost = every.read("divergences", where=pc.field("topic") == CONSUMER_OFFSETS).to_pylist()
    found: dict[int, Evidence] = {}
    of_topic = [each for each in state.manifest["partitions"] if each["topic"] == CONSUMER_OFFSETS]
    for number in {each["partition"] for each in of_topic}:
        told = registered.get(number, Registered())
        found[number] = Evidence(
            elections=elections_of(told.led, until),
            is_replicated=told.is_replicated,
            copies=copies_of(state.manifest, CONSUMER_OFFSETS, number),
            epochs=epochs.get(number),
            lost=[
                (each["lost_leader_epoch"], each["surviving_leader_epoch"])
                for each in lost
                if each["partition"] == number
            ],
        )
    return found


def _epochs(
    state: ReplayedWorkspace, until: datetime | None
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
        first = row["from_timestamp"]
        if until is None or first is None or first <= until:
            found[row["partition"]][row["leader_epoch"]] = row["elected_at"] or first
    return found


def _registered(state: ReplayedWorkspace) -> dict[int, list[Row]]:
    """Return what the metadata log says of each partition of the offsets topic."""
    every = StoredTables(state.tables.workspace)
    of_topic = pc.field("topic") == CONSUMER_OFFSETS
    ids = every.read("topics", ["topic_id"], of_topic)["topic_id"].to_pylist()
    found: dict[int, list[Row]] = defaultdict(list)
    for name in ("partition_record", "partition_change_record"):
        for row in _records(state, name, ids):
            found[row["value"]["partition_id"]].append(row)
    return found


def _records(state: ReplayedWorkspace, name: str, ids: Sequence[str | None]) -> list[Row]:
    source = state.source
    path = records_folder(source, f"{DECODED}/{name}")
    if path is None:
        return []
    known = pa.array([each for each in ids if each is not None], pa.string())
    with reading(path):
        records = ds.dataset(path, filesystem=source.filesystem, format="parquet").to_table(
            columns=["offset", "timestamp", "segment", "value"],
            filter=pc.field("value", "topic_id").isin(known),
        )
    rows: list[Row] = _in_time(state, records).to_pylist()
    return rows


def _in_time(state: ReplayedWorkspace, records: pa.Table) -> pa.Table:
    time = state.as_of["time"]
    if time is None:
        return records
    stamp = pa.scalar(datetime.fromisoformat(time), records.schema.field("timestamp").type)
    kept = pc.less_equal(records["timestamp"], stamp)
    return records.filter(pc.fill_null(kept, True))  # noqa: FBT003
