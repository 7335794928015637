"""What `topic_usage` must say of a printed log: one record after the other, as slow as can be.

Written from the columns of `topic_usage` and from docs/usage.md, not from what the tests hold
against it. Texts are what ``kafka-dump-log`` printed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.dump_log_records import TABLES, PrintedRecord, record_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.support.dump_folder import PrintedSegment
    from tests.support.dump_log import BatchLine

Place = tuple[str, int, str | None, str]
"""Internal topic, partition, group or transactional id, record type."""
_GROUP_FIELDS = ("group", "groupId", "transactionalId")
_COMMIT = "offset_commit"


@dataclass
class PlainUsage:
    """What the records of one group and type add up to."""

    keys: set[str] = field(default_factory=set)
    records: int = 0
    bytes: int = 0
    tombstones: int = 0
    aborted_records: int = 0
    open_records: int = 0
    unchanged_commits: int = 0
    unchanged_bytes: int = 0
    max_record_bytes: int = 0
    max_metadata_bytes: int = 0
    times: list[int] = field(default_factory=list)
    last: dict[str, int | None] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """The columns of `topic_usage` that are held against this."""
        counted = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        return {
            **counted,
            "keys": len(self.keys),
            "first_timestamp": min(self.times, default=None),
            "last_timestamp": max(self.times, default=None),
        }


def plain_usage(segments: Iterable[PrintedSegment]) -> dict[Place, PlainUsage]:
    """Return what the records of one partition of a coordinator's topic add up to."""
    usage: dict[Place, PlainUsage] = defaultdict(PlainUsage)
    batches = sorted(
        ((batch, each) for each in segments for batch in each.text.batches),
        key=lambda pair: pair[0].offset,
    )
    ends = _ends(batch for batch, _ in batches)
    for batch, segment in batches:
        for line in batch.records if not batch.is_control else []:
            record = PrintedRecord(segment, batch, line)
            if record.number not in TABLES[segment.topic]:
                continue
            fate = _fate(record, ends)
            _add(usage[_place_of(record)], record, fate)
    return usage


def _place_of(record: PrintedRecord) -> Place:
    key = _key_of(record)
    group = next((key[name] for name in _GROUP_FIELDS if name in key), None)
    return record.segment.topic, record.segment.partition, group, str(record.table)


def _key_of(record: PrintedRecord) -> dict[str, Any]:
    assert record.line.key is not None
    assert record.line.key.data is not None
    return record.line.key.data


def _add(usage: PlainUsage, record: PrintedRecord, fate: str) -> None:
    payload, size = record.line.payload, record_bytes(record)
    assert payload is not None
    key = f"{record.number}: {_key_of(record)}"
    usage.keys.add(key)
    usage.records += 1
    usage.bytes += size
    usage.max_record_bytes = max(usage.max_record_bytes, size)
    if record.line.timestamp >= 0:
        usage.times.append(record.line.timestamp)
    committed = None
    if record.table == _COMMIT and not payload.is_delete:
        assert payload.data is not None
        committed = payload.data["offset"]
        metadata = len(payload.data["metadata"].encode())
        usage.max_metadata_bytes = max(usage.max_metadata_bytes, metadata)
    if fate == "aborted":
        usage.aborted_records += 1
    elif fate == "open":
        usage.open_records += 1
    else:
        usage.tombstones += payload.is_delete
        if committed is not None and usage.last.get(key) == committed:
            usage.unchanged_commits += 1
            usage.unchanged_bytes += size
        usage.last[key] = committed


def _ends(batches: Iterable[BatchLine]) -> dict[int, list[tuple[int, bool]]]:
    """Return by producer where its transactions end, and whether by an abort."""
    ends = defaultdict(list)
    for producer, offset, is_abort in _markers(batches):
        ends[producer].append((offset, is_abort))
    return ends


def _markers(batches: Iterable[BatchLine]) -> Iterator[tuple[int, int, bool]]:
    for batch in batches:
        for record in batch.records if batch.is_control else []:
            if record.control is not None:
                yield batch.producer_id, record.offset, record.control.name == "ABORT"


def _fate(record: PrintedRecord, ends: dict[int, list[tuple[int, bool]]]) -> str:
    if not record.batch.is_transactional:
        return "counts"
    after = [
        is_abort
        for offset, is_abort in ends.get(record.batch.producer_id, [])
        if offset > record.line.offset
    ]
    if not after:
        return "open"
    return "aborted" if after[0] else "counts"
