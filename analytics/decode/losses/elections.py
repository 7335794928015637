"""When the elections were that cost a line of history, as the metadata log has it.

Batches show an election only by the first record of the new leader, which may come minutes later,
or never. The metadata log shows the moment itself, since when nobody led, and whether the new
leader was in sync (``PartitionRegistration.merge``: a leader epoch grows with every change that
names a leader).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from analytics.dump.files.model import METADATA_LOG, OTHER_TOPIC, Divergence, Plan
from analytics.workspace import open_location
from schemas import INTERNAL_TOPICS

if TYPE_CHECKING:
    from analytics.workspace import Part

Row = Mapping[str, Any]

_NOBODY = -1
_UNCHANGED = -2
_RECOVERING = 1
"""LeaderRecoveryState: the leader was elected from outside the ISR."""

_SNAPSHOT = re.compile(r"(\d{20})-\d{10}\.checkpoint$")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Leadership:
    """One leader epoch of a partition.

    Attributes:
        epoch: The leader epoch.
        leader: Node id; -1 is nobody.
        since: Epoch milliseconds; None where a snapshot of the metadata log swallowed the change.
        is_unclean: The leader was elected from outside the ISR.
    """

    epoch: int
    leader: int
    since: int | None
    is_unclean: bool = False


@dataclass(frozen=True)
class Registered:
    """What the metadata log has of the leaders of a partition.

    Attributes:
        led: Its leader epochs, ascending.
        replicas: How many it had at most.
    """

    led: Sequence[Leadership] = ()
    replicas: int = 0

    @property
    def is_replicated(self) -> bool | None:
        """Whether it ever had more than one replica; None where nothing says."""
        return self.replicas > 1 if self.replicas else None


def with_elections(plan: Plan, registered: Mapping[tuple[str, int], Registered]) -> Plan:
    """Return the plan with the times of elections that its metadata log shows.

    Args:
        plan: Names lines that did not survive.
        registered: As `registered_partitions` returns it.
    """
    nodes = {copy.name: copy.node_id for copy in plan.copies}
    nobody = Registered()
    return replace(
        plan,
        divergences=tuple(
            with_election(
                each,
                registered.get((each.topic, each.partition), nobody).led,
                nodes.get(each.copy),
            )
            for each in plan.divergences
        ),
    )


def with_election(
    lost: Divergence, epochs: Sequence[Leadership], node_id: int | None
) -> Divergence:
    """Return a lost line with the election that ended it; unchanged where nothing shows it.

    Args:
        lost: The line.
        epochs: Of its partition, ascending.
        node_id: The broker that holds the line.
    """
    last = lost.lost_leader_epoch
    # What befell another topic of that name no election of this one tells.
    if lost.how == OTHER_TOPIC or last is None or not epochs or epochs[0].epoch > last:
        return lost
    leaderless: int | None = None
    for each in epochs:
        if each.epoch <= last:
            continue
        if each.since is None:
            return lost
        if each.leader == _NOBODY:
            leaderless = each.since if leaderless is None else leaderless
        elif each.leader == node_id:
            leaderless = None
        else:
            return replace(
                lost,
                elected_at=each.since,
                election_shown_by=METADATA_LOG,
                leaderless_from=leaderless,
                unclean=each.is_unclean,
            )
    return lost


def registered_partitions(
    parts: Sequence[Part], staging: str, topics: Iterable[str] = INTERNAL_TOPICS
) -> dict[tuple[str, int], Registered]:
    """Return who led the partitions of topics, as the metadata log has it.

    Args:
        parts: What was decoded.
        staging: Where the parts are.
        topics: By name.
    """
    filesystem = open_location(staging)[0]

    def records(name: str, column: str, wanted: Iterable[Any]) -> list[Row]:
        paths = [each.path for each in parts if each.table == f"decoded/{name}" and each.rows]
        if not paths:
            return []
        found = ds.dataset(paths, filesystem=filesystem).to_table(
            columns=["offset", "timestamp", "segment", "value"],
            filter=pc.field("value", column).isin(list(wanted)),
        )
        rows: list[Row] = found.to_pylist()
        return rows

    named = sorted(records("topic_record", "name", topics), key=_place)
    # A topic that was deleted and created again is known by its last id.
    ids = {each["value"]["name"]: each["value"]["topic_id"] for each in named}
    names = {topic_id: name for name, topic_id in ids.items()}
    if not names:
        return {}
    changes = [
        *records("partition_record", "topic_id", names),
        *records("partition_change_record", "topic_id", names),
    ]
    by_partition: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for each in changes:
        value = each["value"]
        by_partition[names[value["topic_id"]], value["partition_id"]].append(each)
    return {key: registered_by(rows) for key, rows in by_partition.items()}


def partition_counts(registered: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return how many partitions topics have, by the partitions that are registered."""
    counts: dict[str, int] = {}
    for topic, number in registered:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    return dict(sorted(counts.items()))


def registered_by(records: Sequence[Row]) -> Registered:
    """Return who led one partition, by its registrations and their changes, as decoded."""
    replicas = max(len(each["value"].get("replicas") or ()) for each in records)
    return Registered(list(leaderships(records)), replicas)


def leaderships(records: Iterable[Row]) -> Iterator[Leadership]:
    """Yield the leader epochs of one partition, ascending.

    Args:
        records: Registrations and changes of the partition: `offset`, `timestamp`, `segment` and
            `value` as decoded.
    """
    epoch: int | None = None
    for each in sorted(records, key=_place):
        value = each["value"]
        registered = value.get("leader_epoch")
        if registered is not None:
            if epoch is not None and registered <= epoch:
                continue
            epoch = registered
        elif epoch is None or value["leader"] in (None, _UNCHANGED):
            continue
        else:
            epoch += 1
        yield Leadership(
            epoch=epoch,
            leader=value["leader"],
            since=None if _is_snapshot(each) else _milliseconds(each["timestamp"]),
            is_unclean=value["leader_recovery_state"] == _RECOVERING,
        )


def _place(record: Row) -> tuple[int, bool]:
    """Return where a record stands: a snapshot stands for everything below its end."""
    snapshot = _SNAPSHOT.search(record["segment"])
    return (int(snapshot[1]), False) if snapshot else (record["offset"], True)


def _is_snapshot(record: Row) -> bool:
    return _SNAPSHOT.search(record["segment"]) is not None


def _milliseconds(when: datetime | None) -> int | None:
    return None if when is None else (when - _EPOCH) // timedelta(milliseconds=1)
