"""Random logs of an offsets partition, as plain records and as bytes: groups that commit and rest.

Commits go on, back, far forward, or nowhere, below 0 at times, in transactions or not, now and then
without a time; generations change who owns what.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from schemas import embedded, record_type
from tests.support.coordinator_bytes import filled
from tests.support.encoder import encode_embedded, encode_key, encode_value
from tests.support.plain_log import PlainRecord
from tests.support.segments import Header, Record, batch, message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from random import Random

TOPICS = ("orders", "payments")
PARTITIONS = 2
MEMBERS = ("ada", "bob")
BEGUN = 1_795_000_000_000
VERSIONS = {"group_metadata": 3, "offset_commit": 3}
MARKERS = {"ABORT": 0, "COMMIT": 1}
WAITS = (1, 1000, 20_000, 200_000, 900_000)
LEAP = 9000
TIMELESS = 12
"""One of so many commits outside of transactions has the format that knows no times."""


@dataclass
class RandomLog:
    """The log of one partition of the offsets topic.

    Attributes:
        number: The partition.
        groups: Names of the groups that have their home there.
    """

    random: Random
    number: int
    groups: Sequence[str]
    records: list[PlainRecord] = field(default_factory=list)
    now: int = BEGUN
    generation: int = 0
    reached: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def play(self, acts: int) -> RandomLog:
        """Have so many things happen."""
        possible = (*[self.commit] * 7, *[self.in_transaction] * 2, *[self.end] * 2)
        for _ in range(acts):
            self.now += self.random.choice(WAITS)
            self.random.choice((*possible, self.remove, self.rebalance))()
        return self

    def _write(self, table: str, **said: Any) -> None:
        said = {"timestamp": self.now, **said}
        self.records.append(PlainRecord(self.number, len(self.records), table, **said))

    def _key(self) -> dict[str, Any]:
        chance = self.random
        where = {"topic": chance.choice(TOPICS), "partition": chance.randrange(PARTITIONS)}
        return {"group": chance.choice(self.groups), **where}

    def _commit(self, **batch: Any) -> None:
        key = self._key()
        place = (key["group"], key["topic"], key["partition"])
        steps = (0, 0, 1, 7, 30, 30, 30, -5, -60, LEAP)
        reached = self.reached.get(place, 50) + self.random.choice(steps)
        self.reached[place] = reached = max(0, reached)
        offset = -1 if self.random.randrange(25) == 0 else reached
        value = {"offset": offset, "leader_epoch": -1, "metadata": "", "commit_timestamp": self.now}
        self._write("offset_commit", key=key, value=value, **batch)

    def commit(self) -> None:
        """Commit an offset."""
        timeless = {"timestamp": -1} if self.random.randrange(TIMELESS) == 0 else {}
        self._commit(**timeless)

    def in_transaction(self) -> None:
        """Commit an offset in a transaction that is open, or begins."""
        self._commit(producer_id=self.random.randrange(2), producer_epoch=0, is_transactional=True)

    def end(self) -> None:
        """End a transaction, whether there is one or not."""
        word = self.random.choice(("COMMIT", "COMMIT", "ABORT"))
        producer = {"producer_id": self.random.randrange(2), "producer_epoch": 0}
        self._write("control_markers", control_type=word, is_transactional=True, **producer)

    def remove(self) -> None:
        """Remove an offset."""
        self._write("offset_commit", key=self._key(), value=None)

    def rebalance(self) -> None:
        """Have members come and go, and share out what they subscribe to."""
        chance = self.random
        there = [each for each in MEMBERS if chance.randrange(3)]
        self.generation += 1
        topics = [each for each in TOPICS if chance.randrange(4)] if there else []
        items = [(topic, number) for topic in topics for number in range(PARTITIONS)]
        owner = {item: chance.choice(there) for item in items if chance.randrange(5)}
        members = [
            _member(each, topics, [i for i in items if owner.get(i) == each]) for each in there
        ]
        value = {
            "protocol_type": "consumer",
            "generation": self.generation,
            "protocol": "range" if there else None,
            "leader": there[0] if there else None,
            "current_state_timestamp": self.now,
            "members": members,
        }
        self._write("group_metadata", key={"group": chance.choice(self.groups)}, value=value)


def _member(name: str, topics: list[str], items: list[tuple[str, int]]) -> dict[str, Any]:
    by_topic = {topic: [number for each, number in items if each == topic] for topic in topics}
    given = [{"topic": topic, "partitions": some} for topic, some in by_topic.items() if some]
    return {
        "member_id": name,
        "group_instance_id": None,
        "client_id": name,
        "client_host": "/10.0.0.1",
        "rebalance_timeout": 60_000,
        "session_timeout": 45_000,
        "subscription": {"topics": topics},
        "assignment": {"assigned_partitions": given},
    }


def bytes_of(log: Iterable[PlainRecord]) -> list[bytes]:
    """Return a log as batches of a record each; what has no time is a message of format 0."""
    return [_batch(each) for each in log]


def _batch(said: PlainRecord) -> bytes:
    if said.control_type is not None:
        key = struct.pack(">hh", 0, MARKERS[said.control_type])
        record = Record(said.offset, said.timestamp, key, struct.pack(">hi", 0, 3))
        return batch([record], _header(said, control=True)).data
    kind, version = record_type(said.table), VERSIONS[said.table]
    key = encode_key(kind, kind.ids[-1], filled(kind.key, 0, said.key))
    value = None
    if said.value is not None:
        value = encode_value(kind, version, filled(kind.value, version, _encoded(said.value)))
    record = Record(said.offset, said.timestamp, key, value)
    return message(record, magic=0) if said.timestamp < 0 else batch([record], _header(said)).data


def _header(said: PlainRecord, *, control: bool = False) -> Header:
    return Header(
        producer_id=said.producer_id,
        producer_epoch=said.producer_epoch,
        transactional=said.is_transactional,
        control=control,
    )


def _encoded(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value with what members say of their own as bytes."""
    members = [
        {**each, **{what: _message(what, each[what]) for what in ("subscription", "assignment")}}
        for each in value.get("members", ())
    ]
    return {**value, "members": members} if members else dict(value)


def _message(what: str, said: Mapping[str, Any]) -> bytes:
    kind = embedded(f"consumer_protocol_{what}")
    return encode_embedded(kind, 0, filled(kind.struct, 0, said))
