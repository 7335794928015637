"""Who led, and when elections cost a line of history, as the metadata log's records have it."""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.batches.walks import walk_segment
from analytics.dump.copies.leadership import (
    NO_LEADERS,
    NOBODY,
    Leaders,
    Leadership,
    MadeAt,
    Registered,
    Step,
)
from analytics.dump.copies.plan import PlanOptions, plan_partition
from analytics.dump.files.model import METADATA_LOG, OTHER_TOPIC, Divergence, Plan
from analytics.dump.records.segment_reader import SegmentReader
from analytics.epoch_times import milliseconds_of, time_of
from analytics.errors import InputUnreadableError
from schemas import CLUSTER_METADATA, COORDINATOR_TOPICS, INTERNAL_TOPICS

if TYPE_CHECKING:
    from analytics.dump.files.model import Copy, PartitionCopy, Slice
    from analytics.dump.records.raw_records import RawRecords

# Records of the metadata log that say who leads, read without Arrow: there are few of them.

Decoded = dict[str, Any]

_NAMES: Final = {2: "topic_record", 3: "partition_record", 5: "partition_change_record"}
_INT32: Final = struct.Struct(">i")


def leader_records(slices: Sequence[Slice]) -> dict[str, list[Decoded]]:
    """Return topics, partitions and changes of partitions, by the table they are decoded into.

    Args:
        slices: Of the metadata log.

    Returns:
        Rows of `offset`, `timestamp`, `segment` and `value`; topic ids are as they are stored.
    """
    found: dict[tuple[str, int], tuple[str, Decoded]] = {}
    for each in slices:
        if each.line:
            continue
        # A snapshot has offsets of its own; the log has one record at each, in whichever copy.
        place = each.segment.name if each.segment.kind == "checkpoint" else ""
        try:
            for chunk in SegmentReader(each, check_crc=True, digest=False).chunks():
                for name, row in _rows(chunk.records, each.segment.name):
                    found.setdefault((place, row["offset"]), (name, row))
        except InputUnreadableError:
            # Whoever reads the file next is told.
            continue
    tables: dict[str, list[Decoded]] = {name: [] for name in _NAMES.values()}
    for name, row in found.values():
        tables[name].append(row)
    return tables


def _rows(records: RawRecords, segment: str) -> Iterator[tuple[str, Decoded]]:
    data, value = records.data, records.value
    is_long = ~records.batches.is_control[records.batch] & (value.length >= 3)
    rows = np.flatnonzero(is_long)
    # A frame's version, the type and its version take one byte each.
    is_wanted = np.isin(data[value.start[rows] + 1], list(_NAMES)) & (data[value.start[rows]] == 1)
    for row in rows[is_wanted].tolist():
        start = int(value.start[row])
        content = data[start : start + int(value.length[row])].tobytes()
        try:
            read = _Content(content, 3).value(content[1], content[2])
        except (IndexError, struct.error, UnicodeDecodeError):
            continue
        time = int(records.timestamp[row])
        when = time_of(time)
        named = {"offset": int(records.offset[row]), "timestamp": when, "segment": segment}
        yield _NAMES[content[1]], {**named, "value": read}


class _Content:
    """What is left of a value."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at

    def value(self, kind: int, version: int) -> Decoded:
        if kind == 2:
            size = self.varint() - 1
            name = self.take(size).decode()
            return {"name": name, "topic_id": self.take(16)}
        found: Decoded = {"partition_id": self.int32(), "topic_id": self.take(16)}
        if kind == 3:
            found |= {"replicas": self.int32s(), "isr": self.int32s()}
            self.int32s(), self.int32s()
            found |= {"leader": self.int32(), "leader_epoch": self.int32()}
            self.int32()
            if version >= 1:
                self.take(16 * max(self.varint() - 1, 0))
        else:
            found |= {"leader": None, "isr": None, "replicas": None}
        found |= {"leader_recovery_state": 0 if kind == 3 else -1, "eligible_leader_replicas": None}
        return {**found, **self.tagged(kind)}

    def tagged(self, kind: int) -> Decoded:
        numbers = ("leader_recovery_state", "eligible_leader_replicas")
        names = dict(enumerate(numbers)) if kind == 3 else {5: numbers[0], 6: numbers[1]}
        names |= {} if kind == 3 else {0: "isr", 1: "leader", 2: "replicas"}
        found: Decoded = {}
        for _ in range(self.varint()):
            tag, end = self.varint(), self.varint()
            end += self.at
            name = names.get(tag)
            if name == "leader":
                found[name] = self.int32()
            elif name == "leader_recovery_state":
                found[name] = int.from_bytes(self.take(1), signed=True)
            elif name is not None:
                found[name] = self.int32s()
            self.at = end
        return found

    def varint(self) -> int:
        found = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift > 35:
                return found

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise IndexError
        self.at += size
        return self.data[self.at - size : self.at]

    def int32(self) -> int:
        (found,) = _INT32.unpack(self.take(4))
        return int(found)

    def int32s(self) -> list[int] | None:
        count = self.varint() - 1
        if count < 0:
            return None
        return list(struct.unpack(f">{count}i", self.take(4 * count)))


# Who led, and when the elections were that cost a line of history, as the metadata log has it.
#
# Batches show an election only by the first record of the new leader, which may come minutes
# later, or never. The metadata log shows the moment itself, since when nobody led, and whether
# the new leader was in sync (``PartitionRegistration.merge``: a leader epoch grows with every
# change that names a leader).
#
# Which copy of a partition is read first depends on who led it, so the metadata log goes before
# the others. It is small: the controller cuts it at snapshots.

Row = Mapping[str, Any]
_UNCHANGED = -2
_RECOVERING = 1
"""LeaderRecoveryState: the leader was elected from outside the ISR."""
_SNAPSHOT = re.compile(r"(\d{20})-\d{10}\.checkpoint$")

_DAY_MS: Final = 86_400_000


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
        if each.leader == NOBODY:
            leaderless = each.since if leaderless is None else leaderless
        elif each.leader == node_id:
            leaderless = None
        else:
            return replace(
                lost,
                surviving_leader_epoch=each.epoch,
                elected_at=each.since,
                election_shown_by=METADATA_LOG,
                leaderless_from=leaderless,
                unclean=each.is_unclean,
            )
    return lost


def registered_partitions(
    records: Callable[[str, str, Iterable[Any]], list[Row]],
    topics: Iterable[str] = INTERNAL_TOPICS,
) -> dict[tuple[str, int], Registered]:
    """Return who led the partitions of topics, as the metadata log has it.

    Args:
        records: Returns the records of a table whose field has one of some values: `offset`,
            `timestamp`, `segment` and `value` as decoded.
        topics: By name.
    """
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
    return Registered(list(leaderships(records)), replicas, list(steps(records)))


def steps(records: Iterable[Row]) -> Iterator[Step]:
    """Yield who led one partition and who was in sync, in order.

    Args:
        records: As in `leaderships`; `isr`, `eligible_leader_replicas` and `replicas` of a change
            are null where they stay.
    """
    last: Step | None = None
    eligible: frozenset[int] = frozenset()
    for each in sorted(records, key=_place):
        value = each["value"]
        step = _registration(each) if value.get("leader_epoch") is not None else None
        if step is None and last is not None:
            step = _change(each, last)
        if step is None or (last is not None and step.epoch < last.epoch):
            continue
        if last is not None:
            # Who was in sync, or eligible instead, has all that was committed.
            safe = last.in_sync | eligible
            is_new = step.epoch > last.epoch
            is_lossy = is_new and step.leader not in {NOBODY, last.leader} | safe
            step = replace(step, is_election=is_new, is_unclean=step.is_unclean or is_lossy)
        if value.get("eligible_leader_replicas") is not None:
            eligible = frozenset(value["eligible_leader_replicas"])
        if last is None or _what(step) != _what(last):
            yield step
            last = step


def _what(step: Step) -> tuple[Any, ...]:
    return step.epoch, step.leader, step.in_sync, step.replicas


def _registration(record: Row) -> Step:
    value, snapshot = record["value"], _SNAPSHOT.search(record["segment"])
    return Step(
        seen_from=int(snapshot[1]) if snapshot else record["offset"] + 1,
        since=None if snapshot else _milliseconds(record["timestamp"]),
        epoch=value["leader_epoch"],
        leader=value["leader"],
        in_sync=frozenset(value.get("isr") or ()),
        replicas=frozenset(value.get("replicas") or ()),
        # What led to the state that a snapshot holds is not told.
        is_unclean=snapshot is not None or value["leader_recovery_state"] == _RECOVERING,
    )


def _change(record: Row, last: Step) -> Step:
    value = record["value"]
    is_election = value["leader"] not in (None, _UNCHANGED)
    in_sync, replicas = value.get("isr"), value.get("replicas")
    return Step(
        seen_from=record["offset"] + 1,
        since=_milliseconds(record["timestamp"]),
        epoch=last.epoch + is_election,
        leader=value["leader"] if is_election else last.leader,
        in_sync=last.in_sync if in_sync is None else frozenset(in_sync),
        replicas=last.replicas if replicas is None else frozenset(replicas),
        is_unclean=is_election and value["leader_recovery_state"] == _RECOVERING,
    )


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
    return None if when is None else milliseconds_of(when)


def known_leaders(copies: Sequence[Copy]) -> Leaders:
    """Return who led the internal partitions of a dump, and when its copies were made.

    Args:
        copies: As listed.
    """
    logs = [each for copy in copies for each in copy.partitions if each.topic == CLUSTER_METADATA]
    if not logs:
        return NO_LEADERS
    tables = leader_records(plan_partition(logs, copies, PlanOptions()).slices)

    def records(name: str, column: str, values: Iterable[Any]) -> list[Row]:
        chosen = set(values)
        return [each for each in tables[name] if each["value"][column] in chosen]

    registered = registered_partitions(records)
    if not registered:
        return NO_LEADERS
    ends = {each.copy: _end_of(each) for each in logs}
    last = max((time for _, time in ends.values() if time is not None), default=None)
    made_at = {copy.name: _made_at(copy, ends.get(copy.name), last) for copy in copies}
    return Leaders(registered, made_at, last)


def _made_at(copy: Copy, end: tuple[int, int | None] | None, last: int | None) -> MadeAt:
    """Return what tells when a copy was made.

    Args:
        copy: As listed.
        end: End offset and last time of its own metadata log; None where it has none.
        last: Of the last record of any metadata log; a later time by more than a day is no time.
    """
    if end is not None:
        return MadeAt(copy.node_id, *end)
    times = [
        time
        for each in copy.partitions
        if each.topic in COORDINATOR_TOPICS and (time := _end_of(each)[1]) is not None
    ]
    known = [each for each in times if last is None or each <= last + _DAY_MS]
    return MadeAt(copy.node_id, None, max(known, default=None))


def _end_of(partition: PartitionCopy) -> tuple[int, int | None]:
    """Return the end offset of a copy of a log, and the time of its last batch."""
    covered = max((each.base_offset for each in partition.checkpoints), default=0)
    for segment in reversed(partition.logs):
        headers = walk_segment(segment, LogSense(segment.base_offset)).headers
        if len(headers):
            time = int(headers.max_timestamp.max())
            return max(int(headers.last_offset[-1]) + 1, covered), time if time >= 0 else None
    base = max((each.base_offset for each in partition.logs), default=0)
    return max(base, covered), None
