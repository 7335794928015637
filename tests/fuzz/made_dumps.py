"""Small dumps drawn from bytes: brokers' log directories of a few partitions, sound and otherwise.

Groups live as in the histories of the tests; every other record is drawn from its schema, its
names from a few so that records meet. What is encoded decodes again, whatever its numbers are;
then bytes of some files are changed, and some files are cut or taken away.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Self

from schemas import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    embedded,
    record_types,
)
from schemas.model import Field, RecordType, Struct
from tests.support.encoder import encode_embedded, encode_key, encode_value
from tests.support.group_histories import random_records
from tests.support.random_group_values import MEMBERS, NAMED_TOPICS, TOPIC_IDS
from tests.support.reference_offsets import GroupRecord
from tests.support.segments import (
    ABORT,
    CODECS,
    COMMIT,
    LEADER_CHANGE,
    NOW,
    Header,
    Record,
    batch,
)

CLUSTER = "fuzzed-cluster-00000000"
RELEASES = ("2.8", "4.0", "4.1", "4.3", "4.4")
MARKERS = {"ABORT": ABORT, "COMMIT": COMMIT, "LEADER_CHANGE": LEADER_CHANGE}
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 17, "uint32": 33}
_WORDS = ("", "app", "größe", "t", "a,b\n|<b>\x00", "x" * 300)
_METADATA = (
    "topic_record",
    "partition_record",
    "partition_change_record",
    "config_record",
    "feature_level_record",
    "register_broker_record",
    "remove_topic_record",
)
_TIMES = (
    *(-1, 0, NOW - (1 << 40), NOW + (1 << 40), 253402300799999, 253402300800000),
    *(10**16, 1 << 62, -(1 << 62), (1 << 63) - 1, -(1 << 63)),
)
_CODECS = (*[CODECS[0]] * 4, *CODECS)


class BytesDraw(Random):
    """Chance that takes its choices from bytes, and from a seed made of them behind their end."""

    def __new__(cls, _content: bytes) -> Self:
        """Make one; `Random` would hash what it is given here."""
        return super().__new__(cls)

    def __init__(self, content: bytes) -> None:
        """Take choices from the content."""
        self._content = b""
        super().__init__(content)
        self._content = content
        self._at = 0

    def random(self) -> float:
        """Return a number from 0 up to 1."""
        return self.getrandbits(32) / (1 << 32)

    def getrandbits(self, k: int, /) -> int:
        """Return so many bits."""
        size = -(-k // 8)
        taken = self._content[self._at : self._at + size]
        self._at += len(taken)
        if len(taken) < size:
            return super().getrandbits(k)
        return int.from_bytes(taken, "big") & ((1 << k) - 1)


@dataclass(frozen=True)
class Written:
    """A record with what its batch says of it."""

    key: bytes | None
    value: bytes | None
    offset: int
    leader_epoch: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    is_transactional: bool = False
    is_control: bool = False

    def goes_with(self, other: Written) -> bool:
        """Return whether both may lie in one batch."""
        return (
            not self.is_control
            and replace(self, key=other.key, value=other.value, offset=other.offset) == other
        )


@dataclass(frozen=True)
class DumpMaker:
    """Draws a dump.

    Args:
        draw: The chance.
        boldness: How likely a number is one at the ends of its type.
    """

    draw: Random
    boldness: float

    # --- values ----------------------------------------------------------------------------------

    def struct(
        self, schema: Struct, version: int, layout: str | None, known: Any = None
    ) -> dict[str, Any]:
        """Draw a struct around the fields that are known."""
        known = known or {}
        return {
            each.column: self._field(
                each, version, layout, known.get(each.column), each.column in known
            )
            for each in schema.at(version, layout)
        }

    def _field(
        self, schema: Field, version: int, layout: str | None, known: Any, is_known: bool
    ) -> Any:
        draw = self.draw
        if is_known and known is None and (version in schema.nullable or not schema.is_array):
            if version in schema.nullable:
                return None
            is_known = False
        elif version in schema.nullable and not is_known and draw.random() < 0.2:
            return None
        if not schema.is_array:
            return self._single(schema, version, layout, known, is_known)
        if not is_known:
            known = [None] * draw.choice((0, 1, 1, 2))
        return [self._single(schema, version, layout, each, is_known) for each in known or ()]

    def _single(
        self, schema: Field, version: int, layout: str | None, known: Any, is_known: bool
    ) -> Any:
        kind = schema.wire_type(layout)
        if kind == "struct":
            return self.struct(schema.struct, version, layout, known)
        if kind in _BITS:
            return self._integer(schema.column, kind, known if is_known else None)
        if is_known and kind != "bytes":
            return known
        drawn: dict[str, Callable[[], Any]] = {
            "bool": lambda: self.draw.random() < 0.5,
            "uuid": self._uuid,
            "bytes": lambda: self._bytes(schema),
            "string": lambda: self._name(schema.column),
        }
        return drawn[kind]()

    def _integer(self, column: str, kind: str, known: int | None) -> int:
        half = 1 << (_BITS[kind] - 1)
        lowest = 0 if kind.startswith("u") else -half
        if self.draw.random() < self.boldness:
            return self.draw.choice((half - 1, lowest, half - 2, max(-1, lowest), 0))
        if known is not None:
            return max(lowest, min(half - 1, known))
        return self._number(column, half)

    def _number(self, column: str, half: int) -> int:
        if "timestamp" in column and half > 1 << 31:
            return NOW + self.draw.randrange(-5000, 5_000_000)
        return self.draw.randrange(min(4, half))

    def _bytes(self, schema: Field) -> bytes:
        if schema.embedded is None or self.draw.random() < 0.1:
            return self.draw.randbytes(self.draw.randrange(9))
        message = embedded(schema.embedded.name)
        version = self.draw.randint(message.versions.first, message.versions.last)
        return encode_embedded(message, version, self.struct(message.struct, version, None))

    def _uuid(self) -> str:
        if self.draw.random() < 0.9:
            return self.draw.choice(TOPIC_IDS)
        made = base64.urlsafe_b64encode(self.draw.randbytes(16))
        return made.decode("ascii").rstrip("=")

    def _name(self, column: str) -> str:
        if self.draw.random() < self.boldness / 2:
            return self.draw.choice(_WORDS)
        if "member" in column:
            return self.draw.choice(MEMBERS)
        if "group" in column:
            return f"group-{self.draw.randrange(2)}-{self.draw.randrange(2)}"
        if "topic" in column:
            return self.draw.choice("tu")
        return self.draw.choice(_WORDS)

    # --- records ---------------------------------------------------------------------------------

    def encoded(
        self, kind: RecordType, key: Any = None, value: Any = None, *, is_tombstone: bool = False
    ) -> tuple[bytes | None, bytes | None]:
        """Draw a record of a type around what is known of it."""
        version = self.draw.randint(kind.versions.first, kind.versions.last)
        layout = self.draw.choice(kind.layouts) if kind.layouts else None
        made_key = None
        if kind.framing == "coordinator":
            made_key = encode_key(kind, kind.ids[-1], self.struct(kind.key, 0, None, key))
        if is_tombstone:
            return made_key, None
        return made_key, encode_value(
            kind, version, self.struct(kind.value, version, layout, value), layout
        )

    def groups(self, partition: int) -> list[Written]:
        """Draw the records of a partition of `__consumer_offsets`."""
        kinds = _kinds(CONSUMER_OFFSETS)
        records = random_records(self.draw, partition, self.draw.choice(RELEASES))
        made = [self._of_history(each, kinds) for each in records]
        return [*made, *self._of_schema(list(kinds.values()), _end(made))]

    def _of_history(self, record: GroupRecord, kinds: dict[str, RecordType]) -> Written:
        if record.control_type is None:
            pair = self.encoded(
                kinds[record.table],
                record.key,
                record.value,
                is_tombstone=record.value is None,
            )
        else:
            kind = MARKERS[record.control_type]
            pair = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 3)
        return Written(
            *pair,
            record.offset,
            record.leader_epoch,
            record.producer_id,
            record.producer_epoch,
            record.is_transactional,
            record.control_type is not None,
        )

    def _of_schema(self, kinds: Sequence[RecordType], offset: int = 0) -> Iterable[Written]:
        for _ in range(self.draw.randrange(10)):
            kind = self.draw.choice(kinds)
            is_tombstone = kind.framing == "coordinator" and self.draw.random() < 0.15
            yield Written(*self.encoded(kind, is_tombstone=is_tombstone), offset)
            offset += self.draw.choice((1, 1, 1, 3))

    def of_topic(self, topic: str) -> list[Written]:
        """Draw the records of a partition of another internal topic."""
        kinds = _kinds(topic)
        if topic != CLUSTER_METADATA:
            return list(self._of_schema(list(kinds.values())))
        named = [
            Written(*self.encoded(kinds["topic_record"], None, {"name": name, "topic_id": each}), n)
            for n, (each, name) in enumerate(NAMED_TOPICS.items())
        ]
        some = [kinds[each] for each in _METADATA] * 3 + list(kinds.values())
        return named + list(self._of_schema(some, len(named)))

    def data(self) -> list[Written]:
        """Draw the records of a partition that groups read."""
        first = self.draw.choice((0, 0, 100, 998))
        return [Written(b"k", b"v", first + n) for n in range(self.draw.randrange(1, 4))]

    # --- files -----------------------------------------------------------------------------------

    def segment(self, records: Sequence[Written]) -> bytes:
        """Lay records into batches."""
        draw, made, held = self.draw, b"", list[Written]()
        at = NOW + draw.randrange(-2000, 2000)
        for each in records:
            if held and (not held[-1].goes_with(each) or draw.random() < 0.3):
                made += self._batch(held, at)
                at += draw.choice((0, 1, 10, 1000, 3_600_000, -5000))
                held = []
            held.append(each)
        return made + (self._batch(held, at) if held else b"")

    def _batch(self, held: Sequence[Written], at: int) -> bytes:
        draw, first = self.draw, held[0]
        if draw.random() < self.boldness / 4:
            at = draw.choice(_TIMES)
        return batch(
            [Record(each.offset, at, each.key, each.value) for each in held],
            Header(
                leader_epoch=first.leader_epoch,
                codec=draw.choice(_CODECS),
                producer_id=first.producer_id,
                producer_epoch=first.producer_epoch,
                transactional=first.is_transactional,
                control=first.is_control,
                append_time=draw.choice((None, None, None, at)),
                base_timestamp=self._header_time(),
                max_timestamp=self._header_time(),
                delete_horizon=self._header_time(),
            ),
        ).data

    def _header_time(self) -> int | None:
        """Return a time that stands in a header whatever its records say; mostly none does."""
        return self.draw.choice(_TIMES) if self.draw.random() < self.boldness / 4 else None

    def write(self, folder: Path) -> None:
        """Write the log directories of one or two brokers, then do them harm."""
        draw = self.draw
        partitions: dict[str, list[Written]] = {
            f"{CONSUMER_OFFSETS}-{n}": self.groups(n) for n in range(draw.randrange(1, 4))
        }
        others = (SHARE_GROUP_STATE, TRANSACTION_STATE, CLUSTER_METADATA)
        partitions |= {f"{each}-0": self.of_topic(each) for each in others if draw.random() < 0.7}
        partitions |= {f"{each}-0": self.data() for each in "tu" if draw.random() < 0.5}
        segments = {name: self.segment(held) for name, held in partitions.items()}
        for node in range(1, draw.choice((2, 2, 3))):
            self._write_broker(folder / f"broker-{node}", node, partitions, segments)
        self._harm([each for each in sorted(folder.rglob("*")) if each.is_file()])

    def _write_broker(
        self,
        folder: Path,
        node: int,
        partitions: dict[str, list[Written]],
        segments: dict[str, bytes],
    ) -> None:
        folder.mkdir(parents=True)
        (folder / "meta.properties").write_text(
            f"#\nversion=1\nnode.id={node}\ncluster.id={CLUSTER}\ndirectory.id={self._uuid()}\n"
        )
        ends = {}
        for name, held in partitions.items():
            if self.draw.random() < 0.1:
                continue
            data = segments[name]
            if node > 1 and self.draw.random() < 0.4:
                data = self.segment(held[: self.draw.randrange(len(held) + 1)])
            self._write_partition(folder / name, held, data)
            ends[name] = _end(held)
        for name in ("replication-offset-checkpoint", "log-start-offset-checkpoint"):
            numbers = {
                each: self._checkpointed(0 if "start" in name else end)
                for each, end in ends.items()
            }
            lines = [" ".join(each.rsplit("-", 1)) + f" {n}" for each, n in numbers.items()]
            (folder / name).write_text("\n".join(["0", str(len(lines)), *lines]) + "\n")

    def _checkpointed(self, number: int) -> int:
        if self.draw.random() < self.boldness:
            return self.draw.choice(((1 << 63) - 1, -1, -(1 << 63), 0, 1 << 40))
        return max(0, number - self.draw.choice((0, 0, 0, 1)))

    def _write_partition(self, folder: Path, held: Sequence[Written], data: bytes) -> None:
        folder.mkdir()
        first = held[0].offset if held else 0
        (folder / f"{self.draw.choice((0, first)):020d}.log").write_bytes(data)
        starts: dict[int, int] = {}
        for each in held:
            starts.setdefault(each.leader_epoch, each.offset)
        lines = [f"{epoch} {self._checkpointed(start)}" for epoch, start in starts.items()]
        (folder / "leader-epoch-checkpoint").write_text(
            "\n".join(["0", str(len(lines)), *lines]) + "\n"
        )
        ids = {name: each for each, name in NAMED_TOPICS.items()}
        topic_id = ids.get(folder.name.rpartition("-")[0], TOPIC_IDS[-1])
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")

    def _harm(self, files: Sequence[Path]) -> None:
        harms: tuple[Callable[[Path], None], ...] = (self._change, self._change, self._cut, _remove)
        if self.draw.random() < 0.5:
            return
        for path in self.draw.sample(files, min(len(files), self.draw.randrange(1, 4))):
            self.draw.choice(harms)(path)

    def _change(self, path: Path) -> None:
        content = bytearray(path.read_bytes())
        for _ in range(self.draw.randrange(1, 5)):
            if content:
                content[self.draw.randrange(len(content))] = self.draw.randrange(256)
        path.write_bytes(bytes(content))

    def _cut(self, path: Path) -> None:
        content = path.read_bytes()
        path.write_bytes(content[: self.draw.randrange(len(content) + 1)])


def write_dump(content: bytes, folder: Path) -> Random:
    """Write the dump that bytes mean, and return the chance for what is asked of it."""
    draw = BytesDraw(content)
    DumpMaker(draw, draw.choice((0.0, 0.02, 0.1, 0.4))).write(folder)
    return draw


def _remove(path: Path) -> None:
    path.unlink()


def _end(records: Sequence[Written]) -> int:
    return records[-1].offset + 1 if records else 0


def _kinds(topic: str) -> dict[str, RecordType]:
    return {each.table: each for each in record_types(topic).values() if each.read == "decode"}
