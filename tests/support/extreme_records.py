"""Dumps with records at the ends of their types: real records with some of their numbers changed.

What is written is sound in every byte, and means what no Kafka would write. The changed records
stand behind the real end of a partition, so that what they say is in force.
"""

from __future__ import annotations

import copy
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schemas import record_type, record_types
from tests.support.decoded_here import decoded_here
from tests.support.decoded_rows import read_rows
from tests.support.encoder import encode_key, encode_value
from tests.support.segments import Header, Record, batch

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from schemas.model import Struct
    from tests.support.decoded_rows import DecodedRow

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TIMES = (-(2**63), -2, -1, 0, 10**16, 253_402_300_800_000, 2**63 - 1)
_TOPICS = ("__consumer_offsets", "__share_group_state", "__cluster_metadata", "__transaction_state")

Place = tuple[str | int, ...]
"""The way to a number in a value: columns and places in lists."""


@dataclass(frozen=True)
class Changed:
    """A record and which of its numbers is another one."""

    table: str
    field: str
    number: int
    timestamp: int


def extremes(kind: str) -> list[int]:
    """Numbers at and beside the ends of a type, and around none."""
    half = 1 << (BITS[kind] - 1)
    return [-half, -half + 1, -3, -2, -1, 0, half - 2, half - 1]


def numbers_in(
    schema: Struct, version: int, layout: str | None, value: Any, at: Place = ()
) -> Iterator[tuple[Place, str]]:
    """Yield where numbers stand in a value, and of which type each is."""
    for each in schema.at(version, layout):
        content, place = value.get(each.column), (*at, each.column)
        kind = each.wire_type(layout)
        items = list(enumerate(content or ())) if each.is_array else []
        found = [((*place, number), item) for number, item in items] or [(place, content)]
        for here, item in found:
            if kind == "struct" and isinstance(item, dict):
                yield from numbers_in(each.struct, version, layout, item, here)
            elif kind in BITS and isinstance(item, int):
                yield here, kind


def with_number(value: Any, place: Place, number: int) -> Any:
    """Return a value with another number at a place."""
    changed = copy.deepcopy(value)
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = number
    return changed


@dataclass(frozen=True)
class ExtremeDumps:
    """Makes dumps of a real one.

    Attributes:
        source: The real dump.
        rows: What was decoded of it.
    """

    source: Path
    rows: Sequence[DecodedRow]

    @classmethod
    def of(cls, source: Path, folder: Path) -> ExtremeDumps:
        """Decode a dump, into a folder that is kept for that."""
        workspace = decoded_here([str(source)], folder)
        known = {each.table for topic in _TOPICS for each in record_types(topic).values()}
        rows = [
            each
            for each in read_rows(folder)
            if each.table in known and not each.line and not each.values.get("is_tombstone")
        ]
        assert workspace.manifest()
        return cls(source, rows)

    def made(self, target: Path, draw: random.Random, number: int) -> list[Changed]:
        """Write a dump of which so many records are changed, and return which."""
        shutil.copytree(self.source, target)
        tables = sorted({each.table for each in self.rows})
        changed: list[Changed] = []
        while len(changed) < number:
            table = draw.choice(tables)
            row = draw.choice([each for each in self.rows if each.table == table])
            found = self._changed(row, draw)
            if found is None:
                continue
            told, record = found
            _append(target / row.values["copy"], row.values, record, draw)
            changed.append(told)
        return changed

    def _changed(self, row: DecodedRow, draw: random.Random) -> tuple[Changed, Record] | None:
        kind, values = record_type(row.table), row.values
        version, layout = values["value_version"], values.get("layout")
        numbers = list(numbers_in(kind.value, version, layout, values["value"]))
        key = values.get("key")
        if key is not None:
            numbers += [(("key", *place), of) for place, of in numbers_in(kind.key, 0, None, key)]
        if not numbers:
            return None
        place, of = draw.choice(numbers)
        number, timestamp = draw.choice(extremes(of)), _milliseconds(values)
        if draw.random() < 0.2:
            timestamp = draw.choice(TIMES)
        value = values["value"]
        if place[0] == "key" and key is not None:
            key = with_number(key, place[1:], number)
        else:
            value = with_number(value, place, number)
        encoded_key = None if key is None else encode_key(kind, kind.ids[-1], key)
        record = Record(0, timestamp, encoded_key, encode_value(kind, version, value, layout))
        field = ".".join(map(str, place))
        return Changed(row.table, field, number, timestamp), record


def _milliseconds(values: dict[str, Any]) -> int:
    return values["timestamp"] if values["timestamp"] is not None else -1


def _append(log_dir: Path, values: dict[str, Any], record: Record, draw: random.Random) -> None:
    """Put a record behind the end of a partition, in a batch of its own."""
    partition = log_dir / f"{values['topic']}-{values['partition']}"
    log = max(partition.glob("*.log"))
    offset, epoch = _end(log)
    producer = draw.choice((-2, 0, 2**63 - 1)) if draw.random() < 0.1 else -1
    header = Header(leader_epoch=epoch, producer_id=producer)
    with log.open("ab") as file:
        file.write(batch([record._replace(offset=offset)], header).data)


def _end(log: Path) -> tuple[int, int]:
    """Return the offset behind the last batch of a segment, and that batch's leader epoch."""
    data, at = log.read_bytes(), 0
    offset, epoch = int(log.stem), 0
    while at + 61 <= len(data):
        base, length, epoch = (
            int.from_bytes(data[at + start : at + end], signed=True)
            for start, end in ((0, 8), (8, 12), (12, 16))
        )
        offset = base + 1
        if data[at + 16] == 2:
            offset += int.from_bytes(data[at + 23 : at + 27], signed=True)
        at += 12 + length
    return offset, max(epoch, 0)
