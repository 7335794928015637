"""What `kafka-dump-log` printed of a partition of `__consumer_offsets`, as plain records.

Names are Kafka's in snake case. Of several copies the survivor is the truth that `divergence.json`
names, else the one whose log goes on in the newest leader epoch.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.dump_log_records import TABLES, PrintedRecord
from tests.support.reference_offsets import GroupRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.support.dump_folder import DumpFolder, PrintedSegment
    from tests.support.dump_log import BatchLine

Place = tuple[str, int]


@dataclass(frozen=True)
class PlainRecord(GroupRecord):
    """A record with the time that was printed of it, in milliseconds."""

    timestamp: int = -1


def records_of(dump: DumpFolder, topic: str) -> dict[int, list[PlainRecord]]:
    """Return the records of a topic by partition, in the order of the log."""
    survivors = _survivors(dump)
    by_copy: dict[int, list[list[PlainRecord]]] = defaultdict(list)
    for copy in dump.copies:
        starts = dump.log_starts(copy)
        segments = defaultdict(list)
        for each in dump.segments(copy):
            if each.topic == topic:
                segments[each.partition].append(each)
        for partition, some in segments.items():
            if survivors.get((topic, partition), copy) != copy:
                continue
            start = starts.get((topic, partition), 0)
            by_copy[partition].append(
                [each for each in plain_records(some) if each.offset >= start]
            )
    return {partition: max(copies, key=_newest) for partition, copies in by_copy.items()}


def _survivors(dump: DumpFolder) -> dict[Place, str]:
    """Return by partition the copy that survived, where a file beside the dump names it."""
    path = dump.root / "tools" / "divergence.json"
    if not path.exists():
        return {}
    found = {}
    for each in json.loads(path.read_text("utf-8")):
        topic, _, partition = each["partition"].rpartition("-")
        found[topic, int(partition)] = f"broker-{each['survivor']}"
    return found


def _newest(records: list[PlainRecord]) -> tuple[int, int]:
    return (records[-1].leader_epoch, records[-1].offset) if records else (-1, -1)


def plain_records(segments: Iterable[PrintedSegment]) -> list[PlainRecord]:
    """Return what was printed of the segments of one partition."""
    batches = ((batch, each) for each in segments for batch in each.text.batches)
    ordered = sorted(batches, key=lambda pair: pair[0].offset)
    return [record for batch, segment in ordered for record in _of_batch(batch, segment)]


def _of_batch(batch: BatchLine, segment: PrintedSegment) -> Iterator[PlainRecord]:
    for line in batch.records:
        printed = PrintedRecord(segment, batch, line)
        said: dict[str, Any] = {
            "partition": segment.partition,
            "offset": line.offset,
            "timestamp": line.timestamp,
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "is_transactional": batch.is_transactional,
            "leader_epoch": batch.leader_epoch,
        }
        if line.control is not None:
            yield PlainRecord(table="control_markers", control_type=line.control.name, **said)
        elif printed.number in TABLES[segment.topic]:
            assert line.key is not None
            assert line.payload is not None
            value = None if line.payload.is_delete else _snake(line.payload.data)
            assert line.payload.is_delete or value is not None, printed.where
            yield PlainRecord(
                table=TABLES[segment.topic][printed.number],
                key=_snake(line.key.data),
                value=value,
                **said,
            )


def _snake(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower(): _snake(each)
            for name, each in value.items()
        }
    return [_snake(each) for each in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class PlainTopic:
    """A topic that the metadata log has: its id, name, and number of partitions."""

    topic_id: str
    name: str
    partitions: int


def metadata_lines(dump: DumpFolder) -> list[Mapping[str, Any]]:
    """Return the records of the metadata log in order, as printed, with their `type`."""
    found: dict[int, Mapping[str, Any]] = {}
    for copy in dump.copies:
        for segment in dump.segments(copy):
            if segment.topic == "__cluster_metadata":
                found |= dict(_of_metadata(segment))
    return [found[offset] for offset in sorted(found)]


def _of_metadata(segment: PrintedSegment) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for batch in segment.text.batches:
        for line in batch.records:
            if line.payload is not None and line.payload.data is not None:
                yield line.offset, {"type": line.payload.type, **_snake(line.payload.data)}


def plain_topics(lines: Iterable[Mapping[str, Any]]) -> dict[str, PlainTopic]:
    """Return by name the topics that are there at the end of the metadata log."""
    names: dict[str, str] = {}
    partitions: dict[str, set[int]] = defaultdict(set)
    for said in lines:
        if said["type"] == "TOPIC_RECORD":
            names[said["topic_id"]] = said["name"]
        elif said["type"] == "PARTITION_RECORD":
            partitions[said["topic_id"]].add(said["partition_id"])
        elif said["type"] == "REMOVE_TOPIC_RECORD":
            names.pop(said["topic_id"], None)
    return {
        name: PlainTopic(identity, name, len(partitions[identity]))
        for identity, name in names.items()
    }


def group_settings(lines: Iterable[Mapping[str, Any]], name: str) -> dict[str, str]:
    """Return what a setting is at the end of the metadata log, by resource."""
    found: dict[str, str | None] = {}
    for said in lines:
        if said["type"] == "CONFIG_RECORD" and said["name"] == name:
            found[said["resource_name"]] = said["value"]
    return {resource: value for resource, value in found.items() if value is not None}
