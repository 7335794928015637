"""Share partitions at work, as a leader of the early text of KIP-932 would write them.

A leader hands records out, takes acknowledgements, and writes what changed as deltas, now and then
a checkpoint. Its groups write into one data partition, in turns.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pyarrow as pa

from analytics.seeds.checkpoint_delta.control_segments import RECORDS
from schemas.catalog import dialect_types
from tests.support.encoder import encode_value
from tests.support.reference_chains import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    CHECKPOINT,
    DELTA,
    ChainRecord,
    Range,
    Recovered,
)
from tests.support.segments import NOW, Header, Made, Record, batch

IDS = {CHECKPOINT: 5, DELTA: 6}


@dataclass
class Leader:
    """One group's writer; what it has written is what it would recover."""

    group: str
    random: Random
    epoch: int
    state: Recovered = field(default_factory=Recovered)

    def write(self, offset: int) -> ChainRecord:
        """Return the group's next record."""
        if self.state.newest is None or self.random.random() < 0.15:
            record = self._checkpoint(offset)
        else:
            record = self._delta(offset)
        self.state.take(record)
        return record

    def _checkpoint(self, offset: int) -> ChainRecord:
        state = self.state
        self.epoch = (self.epoch + 1) % 65536
        start = self.random.randrange(5) if state.start is None else state.start
        end = start if state.end is None else state.end
        return ChainRecord(
            offset, self.group, CHECKPOINT, self.epoch, None, start, end, tuple(state.ranges)
        )

    def _delta(self, offset: int) -> ChainRecord:
        ranges = tuple(self._range() for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))))
        return ChainRecord(offset, self.group, DELTA, self.epoch, self.state.newest, ranges=ranges)

    def _range(self) -> Range:
        assert self.state.start is not None
        first = max(self.state.start + self.random.choice((-2, 0, 0, 0, 1, 2, 4, 7)), 0)
        state = self.random.choice((AVAILABLE, ACKNOWLEDGED, ACKNOWLEDGED, ARCHIVED))
        return Range(
            first, first + self.random.choice((0, 0, 1, 3)), state, self.random.randrange(4)
        )


def written(random: Random, groups: int = 3, records: int = 40) -> list[ChainRecord]:
    """What some groups write into one data partition, with other records between."""
    leaders = [
        # Some are about to run out of numbers.
        Leader(f"group-{number}", random, random.choice((0, 7, 65533, 65535)))
        for number in range(groups)
    ]
    found, offset = [], random.randrange(4)
    for _ in range(random.randrange(records)):
        found.append(random.choice(leaders).write(offset))
        offset += random.choice((1, 1, 2, 5))
    return found


def shifted(found: list[ChainRecord], by: int) -> list[ChainRecord]:
    """The same records behind so many others."""
    return [
        replace(each, offset=each.offset + by, back=None if each.back is None else each.back + by)
        for each in found
    ]


def harmed(random: Random, records: list[ChainRecord]) -> list[ChainRecord]:
    """The same with some records gone, and some that no leader would write."""
    kept = [each for each in records if random.random() > random.choice((0.0, 0.05, 0.2))]
    return [_changed(random, each) if random.random() < 0.05 else each for each in kept]


def _changed(random: Random, record: ChainRecord) -> ChainRecord:
    said: dict[str, Any] = dict(vars(record))
    match random.randrange(5):
        case 0:
            said["epoch"] = (record.epoch + random.choice((1, -1, 2, 40_000))) % 65536
        case 1 if record.back is not None:
            said["back"] = record.back + random.choice((-1, 1, 3))
        case 2:
            said["ranges"] = (*record.ranges, Range(9, 8, 0, 1))
        case 3:
            said["ranges"] = (
                Range(record.start or 0, record.start or 0, random.choice((1, 3, 9)), 1),
            )
        case _ if record.end is not None:
            said["end"] = record.end - random.choice((1, 2))
    return ChainRecord(**said)


def as_rows(records: list[ChainRecord]) -> pa.Table:
    """The records as the columns of the fold."""
    rows = [
        {
            "offset": each.offset,
            "kind": 0 if each.kind == CHECKPOINT else 1,
            "group_id": each.group,
            "checkpoint_epoch": each.epoch,
            "back_offset": each.back,
            "start_offset": each.start,
            "end_offset": each.end,
            "states": _states(each),
        }
        for each in records
    ]
    return pa.Table.from_pylist(rows, RECORDS)


def as_value(record: ChainRecord) -> bytes:
    """The bytes of a control record's value."""
    kind = dialect_types("checkpoint-delta")[f"share_{record.kind}"]
    value = {"group_id": record.group, "checkpoint_epoch": record.epoch, "states": _states(record)}
    if record.kind == CHECKPOINT:
        value |= {"start_offset": record.start, "end_offset": record.end}
    else:
        value |= {"back_offset": record.back}
    return encode_value(kind, 0, value)


def as_control_batch(record: ChainRecord, value: bytes | None = None) -> Made:
    """A control batch that holds the record alone."""
    key = struct.pack(">hh", 0, IDS[record.kind])
    held = [Record(record.offset, NOW, key, as_value(record) if value is None else value)]
    return batch(held, Header(control=True))


def _states(record: ChainRecord) -> list[dict[str, int]]:
    return [
        {
            "base_offset": each.first,
            "last_offset": each.last,
            "state": each.state,
            "delivery_count": each.count,
        }
        for each in record.ranges
    ]
