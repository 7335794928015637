"""Which partitions of `__share_group_state` a dump does not show whole at an instant, and why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from analytics.dump.inspection.losses import lacks
from analytics.replay.log.losses_at import Ends, first_later, leading, losses_at
from jobs.assumptions import COMPLETE_ARCHIVE, assumed_in
from jobs.runs.share_records import STATE_TOPIC
from jobs.stored_tables import StoredTables

if TYPE_CHECKING:
    from jobs.replayed import Replayed

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def state_partitions(state: Replayed) -> int | None:
    """Return how many partitions the topic has; None where nothing in the dump says so."""
    everything = StoredTables(state.tables.workspace)
    named = everything.read("topics", ["partitions"], pc.field("topic") == STATE_TOPIC)
    return max((each for each in named["partitions"].to_pylist() if each), default=None)


def gaps_of_state(state: Replayed) -> Mapping[int, str]:
    """Return by partition, as far as the dump says that there are, what it lacks of it."""
    there = {each["partition"] for each in leading(state.manifest) if each["topic"] == STATE_TOPIC}
    found = {
        number: lacks(STATE_TOPIC, number, each)
        for (topic, number), each in losses_at(state.manifest, _ends(state), state.lines).items()
        if topic == STATE_TOPIC
    }
    if COMPLETE_ARCHIVE in assumed_in(state.manifest):
        return found
    count = state_partitions(state)
    absent = set(range(count or 0)) - there
    absent |= set(state.manifest["absent_partitions"].get(STATE_TOPIC, ()))
    absent_ones = {
        number: f"this dump has no copy of {STATE_TOPIC}-{number}" for number in sorted(absent)
    }
    return {**found, **absent_ones}


def _ends(state: Replayed) -> Ends:
    """Where the records end that count at the instant."""
    offsets = {}
    for name, end in state.as_of["offsets"].items():
        topic, _, number = name.rpartition("-")
        offsets[topic, int(number)] = end
    time = state.as_of["time"]
    since = None if time is None else datetime.fromisoformat(time) - _EPOCH
    time_ms = None if since is None else since // timedelta(milliseconds=1)
    later = first_later(state.source, state.manifest, time_ms, (STATE_TOPIC,))
    return Ends(offsets, later, state.is_end)
