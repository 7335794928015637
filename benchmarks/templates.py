"""Batches of magic 2 to copy, and where in them the copies differ.

Record types and versions are those that brokers of 3.x and 4.x write: OffsetCommit v3 with one in a
hundred a tombstone, GroupMetadata v3; ShareSnapshot and ShareUpdate v0 in the layout of 4.1.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random

BATCH_HEADER: Final = 61
_WORDS: Final = ("orders", "billing", "clicks", "fraud", "audit", "search", "ledger", "stock")


class Patch(Enum):
    """What is written into copies: 8 bytes each, the group's number as 6 digits."""

    BASE_OFFSET = auto()
    MARKER_OFFSET = auto()
    PRODUCER = auto()
    TIME = auto()
    COMMITTED = auto()
    GROUP = auto()


@dataclass(frozen=True)
class Template:
    """A batch, and (what, position) of what differs between its copies.

    Attributes:
        content: Its bytes; behind them those of the marker that ends its transaction.
        records: Their number, with the marker.
        patches: What differs.
        name: What follows the number in the names of its groups.
        starts: Where in the bytes batches begin.
    """

    content: bytes
    records: int
    patches: tuple[tuple[Patch, int], ...]
    name: bytes
    starts: tuple[int, ...] = (0,)


class _Bytes:
    """Bytes under construction that remember where patches go."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.patches: list[tuple[Patch, int]] = []

    def put(self, layout: str, *values: int) -> None:
        """Append big-endian numbers."""
        self.content += struct.pack(f">{layout}", *values)

    def string(self, text: bytes) -> None:
        """Append a string with a length of two bytes."""
        self.put("h", len(text))
        self.content += text

    def group(self, text: bytes) -> None:
        """Append a string that begins with a group's number."""
        self.put("h", len(text) + 6)
        self.patch(Patch.GROUP, b"000000")
        self.content += text

    def patch(self, patch: Patch, placeholder: bytes = bytes(8)) -> None:
        """Append bytes that copies replace."""
        self.patches.append((patch, len(self.content)))
        self.content += placeholder

    def add(self, other: _Bytes) -> None:
        """Append what was built apart."""
        start = len(self.content)
        self.patches += [(patch, start + place) for patch, place in other.patches]
        self.content += other.content


def offsets_templates(
    draw: random.Random,
    number: int,
    mean: int,
    group_share: float = 0.01,
    transaction_share: float = 0,
) -> list[Template]:
    """Return batches of ``__consumer_offsets``.

    Args:
        draw: Everything random.
        number: How many.
        mean: Records of a batch.
        group_share: Of the records, those of members.
        transaction_share: Of the batches, those that are a transaction: commits and its marker.
    """
    ended = round(number * transaction_share)
    made = []
    for place in range(number):
        size = draw.randint(1, 2 * mean - 1)
        if place < ended:
            made.append(_with_marker(_offsets_batch(draw, size, 0, tombstone_share=0)))
        else:
            made.append(_offsets_batch(draw, size, group_share))
    return made


def share_templates(draw: random.Random, number: int, mean: int) -> list[Template]:
    """Return batches of ``__share_group_state``."""
    return [_share_batch(draw, draw.randint(1, 2 * mean - 1)) for _ in range(number)]


def _offsets_batch(
    draw: random.Random, records: int, group_share: float, tombstone_share: float = 0.01
) -> Template:
    name = b"-" + draw.choice(_WORDS).encode() + b"-" * draw.randint(0, 20)
    topic = draw.choice(_WORDS).encode() + b".%d" % draw.randint(1, 2000)
    built: list[tuple[_Bytes, _Bytes | None]] = []
    for partition in range(records):
        key, value = _Bytes(), _Bytes()
        if draw.random() < group_share:
            key.put("h", 2)
            key.group(name)
            _group_metadata(draw, value)
        else:
            key.put("h", 1)
            key.group(name)
            key.string(topic)
            key.put("i", partition)
            if draw.random() < tombstone_share:
                built.append((key, None))
                continue
            value.put("h", 3)
            value.patch(Patch.COMMITTED)
            value.put("i", draw.randint(-1, 20))
            value.string(b"m" * draw.choice((0, 10, 40, 80)))
            value.patch(Patch.TIME)
        built.append((key, value))
    return _batch(built, name)


def _group_metadata(draw: random.Random, value: _Bytes) -> None:
    members = [b"consumer-%d-%032x" % (each, draw.getrandbits(128)) for each in range(3)]
    value.put("h", 3)
    value.string(b"consumer")
    value.put("i", draw.randint(1, 99))
    value.string(b"range")
    value.string(members[0])
    value.patch(Patch.TIME)
    value.put("i", len(members))
    for member in members:
        value.string(member)
        value.put("h", -1)
        value.string(member[:10])
        value.string(b"/10.0.%d.%d" % (draw.randint(0, 255), draw.randint(0, 255)))
        value.put("ii", 300_000, 45_000)
        for content in (_subscription(), _assignment()):
            value.put("i", len(content))
            value.content += content


def _subscription() -> bytes:
    return struct.pack(">hih6si", 1, 1, 6, b"orders", -1) + struct.pack(">i", 0)


def _assignment() -> bytes:
    return struct.pack(">hih6siiii", 1, 1, 6, b"orders", 2, 0, 1, -1)


def _share_batch(draw: random.Random, records: int) -> Template:
    name = b"-" + draw.choice(_WORDS).encode()
    topic_id = draw.randbytes(16)
    built: list[tuple[_Bytes, _Bytes | None]] = []
    for partition in range(records):
        is_update = draw.random() < 0.8
        key, value = _Bytes(), _Bytes()
        key.put("h", int(is_update))
        key.group(name)
        key.content += topic_id
        key.put("i", partition)
        # Value version, snapshot epoch, then the state epoch that only a snapshot has.
        value.put("hi", 0, draw.randint(0, 500))
        if not is_update:
            value.put("i", draw.randint(0, 5))
        value.put("i", draw.randint(0, 20))
        value.patch(Patch.COMMITTED)
        if not is_update:
            value.patch(Patch.TIME)
            value.patch(Patch.TIME)
        _state_batches(draw, value, draw.randint(0, 8))
        built.append((key, value))
    return _batch(built, name)


def _state_batches(draw: random.Random, value: _Bytes, number: int) -> None:
    value.put("B", number + 1)
    first = draw.randint(0, 1 << 40)
    for _ in range(number):
        last = first + draw.randint(0, 500)
        # Delivery state and count; then no tagged fields.
        value.put("qqbhB", first, last, draw.choice((0, 2, 4)), draw.randint(1, 5), 0)
        first = last + 1
    value.put("B", 0)


def _batch(built: list[tuple[_Bytes, _Bytes | None]], name: bytes) -> Template:
    batch = _Bytes()
    batch.patch(Patch.BASE_OFFSET)
    # Length, leader epoch, magic, checksum, attributes, last offset delta.
    batch.put("iibIhi", 0, 3, 2, 0, 0, len(built) - 1)
    batch.patch(Patch.TIME)
    batch.patch(Patch.TIME)
    batch.put("qhii", -1, -1, -1, len(built))
    for delta, (key, value) in enumerate(built):
        record = _Bytes()
        record.content += b"\0\0" + varint(delta)
        for part in (key, value):
            record.content += varint(-1 if part is None else len(part.content))
            if part is not None:
                record.add(part)
        record.content += varint(0)
        batch.content += varint(len(record.content))
        batch.add(record)
    batch.content[8:12] = (len(batch.content) - 12).to_bytes(4)
    return Template(bytes(batch.content), len(built), tuple(batch.patches), name)


_ATTRIBUTES: Final = 21
_PRODUCER_ID: Final = 43
_TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
"""Bit of a batch's attributes: of the transaction's end, not of data."""


def _with_marker(commits: Template) -> Template:
    """Return a batch as one of a transaction, and behind it the marker that commits it."""
    key, value = _Bytes(), _Bytes()
    key.put("hh", 0, 1)  # a COMMIT of version 0
    value.put("hi", 0, 5)  # of the coordinator's epoch 5
    marker = _batch([(key, value)], commits.name)
    content = bytearray(commits.content + marker.content)
    behind = len(commits.content)
    patches = [*commits.patches]
    for patch, place in marker.patches:
        at_marker = Patch.MARKER_OFFSET if patch is Patch.BASE_OFFSET else patch
        patches.append((at_marker, behind + place))
    for start, attributes in ((0, _TRANSACTIONAL), (behind, _TRANSACTIONAL | CONTROL)):
        content[start + _ATTRIBUTES : start + _ATTRIBUTES + 2] = attributes.to_bytes(2)
        content[start + _PRODUCER_ID + 8 : start + _PRODUCER_ID + 10] = bytes(2)
        patches.append((Patch.PRODUCER, start + _PRODUCER_ID))
    records = commits.records + 1
    return Template(bytes(content), records, tuple(patches), commits.name, (0, behind))


def varint(value: int) -> bytes:
    """Return a zigzag varint, as record fields use it."""
    left = value << 1 ^ value >> 63
    encoded = bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)
