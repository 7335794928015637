"""What a dump holds of one internal topic at the instant asked about, and what it lacks of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow.compute as pc

from analytics.dump.inspection.found_losses import Loss, lacks
from analytics.engine.key_places import homes_in
from analytics.epoch_times import milliseconds_of
from analytics.replay.dump.assumptions import are_elections_clean, assumed_in
from analytics.replay.log.ends_at import Ends, ends_at
from analytics.replay.log.internal_partitions import home_of, internal_partition
from analytics.replay.log.losses_at import leading, losses_at
from analytics.replayed.given_settings import PARTITIONS_SETTINGS
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

DEFAULT_PARTITIONS = 50
"""`offsets.topic.num.partitions` as Kafka has it by default."""

_MOST_PARTITIONS = 1000
_LIES_IN = "coordinator_partition"


def ends_of(state: ReplayedWorkspace, topic: str) -> Ends:
    """Return where the records of a topic end that count at the instant."""
    offsets = {}
    for name, end in state.as_of["offsets"].items():
        of_topic, _, number = name.rpartition("-")
        offsets[of_topic, int(number)] = end
    time = state.as_of["time"]
    time_ms = None if time is None else milliseconds_of(datetime.fromisoformat(time))
    return ends_at(state.source, state.manifest, time_ms, (topic,), offsets)


def losses_of(state: ReplayedWorkspace, topic: str, ends: Ends) -> Mapping[int, Sequence[Loss]]:
    """Return by partition of a topic the losses that matter at the instant.

    Args:
        state: A replayed workspace.
        topic: An internal topic.
        ends: As `ends_of` returns them.
    """
    are_clean = are_elections_clean(assumed_in(state.manifest))
    found = losses_at(state.manifest, ends, state.lines, are_elections_clean=are_clean)
    return {number: each for (of_topic, number), each in found.items() if of_topic == topic}


def lost_records(topic: str, partition: int, losses: Sequence[Loss]) -> dict[str, Any]:
    """Return where the losses of a partition lie, and what they are, as gaps have it.

    Returns:
        `topic`, `partition`, `from_offset`, `to_offset` (null where nobody knows it) and `lost`.
    """
    return {
        "topic": topic,
        "partition": partition,
        "from_offset": losses[0].first,
        "to_offset": None if losses[-1].is_open else losses[-1].end,
        "lost": lacks(topic, partition, losses),
    }


def partition_count(state: ReplayedWorkspace, topic: str) -> int | None:
    """Return how many partitions a topic has for clients; None where nothing says.

    What all records of the dump show counts (`analytics.engine.key_places`), whatever the instant:
    also before a topic was made, it is known how many partitions it was to have. Then come the
    metadata log at the instant and the settings of brokers (`partitions_set`).
    """
    shown = partitions_shown(state, topic)
    return partitions_set(state, topic) if shown is None else shown


def partitions_shown(state: ReplayedWorkspace, topic: str) -> int | None:
    """Return how many partitions a topic has, as the dump shows it; None where it does not."""
    homes = homes_in(state.manifest).get(topic)
    if homes is not None:
        return homes.partitions
    shown: int | None = state.manifest["replay"].get("partition_counts", {}).get(topic)
    if shown is not None:
        return shown
    everything = StoredTables(state.tables.workspace)
    named = everything.read("topics", ["partitions"], pc.field("topic") == topic)
    return max((each for each in named["partitions"].to_pylist() if each), default=None)


def partitions_set(state: ReplayedWorkspace, topic: str) -> int | None:
    """Return how many partitions brokers are set to make a topic with; None where that is not so.

    A topic is made with what was set then, and may get more later. So a partition that there would
    not be, and a group that would not lie where it does, contradict it.
    """
    count = state.partitions_by_settings(topic)
    if count is None:
        return None
    there = [each["partition"] for each in leading(state.manifest) if each["topic"] == topic]
    absent = state.manifest.get("absent_partitions", {}).get(topic, ())
    if max((*there, *absent), default=0) >= count:
        return None
    if topic != CONSUMER_OFFSETS:
        return count
    everything = StoredTables(state.tables.workspace)
    groups = pl.DataFrame(pl.from_arrow(everything.read("groups", ["group_id", _LIES_IN])))
    is_elsewhere = internal_partition(pl.col("group_id"), count) != pl.col(_LIES_IN)
    return None if groups.filter(is_elsewhere).height else count


def by_which_setting(state: ReplayedWorkspace, topic: str) -> str | None:
    """Return in words that the number of partitions of a topic is from a setting, or is not.

    None where the dump shows it, or no setting was given, or several that differ.
    """
    given = state.partitions_by_settings(topic)
    if given is None or partitions_shown(state, topic) is not None:
        return None
    setting = f"{PARTITIONS_SETTINGS[topic]}={given}"
    if partitions_set(state, topic) is None:
        return f"{setting} does not fit the partitions of {topic} that are there, and their groups"
    return (
        f"{topic} is taken to have {given} partitions: nothing in the dump says it, {setting} does"
    )


def partitions_that_fit(homes: Sequence[tuple[str, int]], least: int) -> int | None:
    """Return a number of partitions by which every group is where it is.

    Kafka's default goes before all others: a topic of 10 partitions and the first 10 of 50 look
    alike, and only the larger one says that there may be more.

    Args:
        homes: Groups and the partitions their records are in.
        least: The fewest partitions there can be.
    """
    candidates: list[int] = [DEFAULT_PARTITIONS, *range(least, _MOST_PARTITIONS + 1)]
    for each in candidates:
        if each >= least and all(home_of(group, each) == home for group, home in homes):
            return each
    return None
