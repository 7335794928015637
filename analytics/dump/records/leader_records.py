"""Records of the metadata log that say who leads, read without Arrow: there are few of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.dump.records.segment_reader import SegmentReader
from analytics.epoch_times import time_of
from analytics.errors import InputUnreadableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.dump.files.model import Slice
    from analytics.dump.records.raw_records import RawRecords

Row = dict[str, Any]

_NAMES: Final = {2: "topic_record", 3: "partition_record", 5: "partition_change_record"}
_INT32: Final = struct.Struct(">i")


def leader_records(slices: Sequence[Slice]) -> dict[str, list[Row]]:
    """Return topics, partitions and changes of partitions, by the table they are decoded into.

    Args:
        slices: Of the metadata log.

    Returns:
        Rows of `offset`, `timestamp`, `segment` and `value`; topic ids are as they are stored.
    """
    found: dict[tuple[str, int], tuple[str, Row]] = {}
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
    tables: dict[str, list[Row]] = {name: [] for name in _NAMES.values()}
    for name, row in found.values():
        tables[name].append(row)
    return tables


def _rows(records: RawRecords, segment: str) -> Iterator[tuple[str, Row]]:
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

    def value(self, kind: int, version: int) -> Row:
        if kind == 2:
            size = self.varint() - 1
            name = self.take(size).decode()
            return {"name": name, "topic_id": self.take(16)}
        found: Row = {"partition_id": self.int32(), "topic_id": self.take(16)}
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

    def tagged(self, kind: int) -> Row:
        numbers = ("leader_recovery_state", "eligible_leader_replicas")
        names = dict(enumerate(numbers)) if kind == 3 else {5: numbers[0], 6: numbers[1]}
        names |= {} if kind == 3 else {0: "isr", 1: "leader", 2: "replicas"}
        found: Row = {}
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
