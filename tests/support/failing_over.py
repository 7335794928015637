"""Brokers' disks after elections, each with its line of one offsets partition, and who led when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from schemas import record_type
from tests.support.encoder import default_of, encode_key, encode_value
from tests.support.log_dirs import LogDir
from tests.support.segments import Header, Record, batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TOPIC_ID = "gtb2stGYRk-vWZ2zAozmoA"
START = 1_764_000_000_000
SECOND = 1000


@dataclass(frozen=True)
class Commit:
    """A commit of a group as a leader wrote it, at a second, in its epoch."""

    second: int
    epoch: int
    group: str
    committed: int


@dataclass(frozen=True)
class Change:
    """From a second on: a leader, its epoch, who is in sync."""

    second: int
    epoch: int
    leader: int
    in_sync: Sequence[int]
    is_unclean: bool = False


@dataclass(frozen=True)
class Disk:
    """What a broker's disk has: its log, the epochs it noted, and until when it knew of changes."""

    node: int
    log: Sequence[Commit]
    epochs: Sequence[tuple[int, int]] | None
    until: int


@dataclass(frozen=True)
class FailingOver:
    """A partition's leaders, and the disks that are left."""

    changes: Sequence[Change]
    disks: Sequence[Disk]
    replicas: Sequence[int] = field(default=(1, 2, 3))

    def write(self, folder: Path, nodes: Sequence[int], *, controller: bool = True) -> list[str]:
        """Write the disks of some brokers, and the controller's; return the log directories."""
        written = []
        for disk in self.disks:
            if disk.node in nodes:
                path = folder / f"broker-{disk.node}"
                made = LogDir.create(path, disk.node)
                batches = [_commit(offset, each) for offset, each in enumerate(disk.log)]
                made.partition("__consumer_offsets-0", {0: batches}, disk.epochs)
                if controller:
                    self._metadata(made, disk.until)
                written.append(str(path))
        if controller:
            path = folder / "controller-100"
            self._metadata(LogDir.create(path, 100), 1 << 30)
            written.append(str(path))
        return written

    def _metadata(self, made: LogDir, until: int) -> None:
        """Write the metadata log as far as it reaches at a second."""
        topic = {"name": "__consumer_offsets", "topic_id": TOPIC_ID}
        rows: list[tuple[int, str, dict[str, Any]]] = [(0, "topic_record", topic)]
        for number, each in enumerate(self.changes):
            value: dict[str, Any] = {"partition_id": 0, "topic_id": TOPIC_ID}
            value |= {"leader": each.leader, "isr": list(each.in_sync)}
            value |= {"leader_recovery_state": int(each.is_unclean)}
            name = "partition_change_record" if number else "partition_record"
            if not number:
                value |= {"leader_epoch": each.epoch, "replicas": list(self.replicas)}
            rows.append((each.second, name, value))
        records = [(second, encode(name, value)) for second, name, value in rows if second <= until]
        batches = [
            batch([Record(offset, _time(second), None, value)], Header(leader_epoch=1)).data
            for offset, (second, value) in enumerate(records)
        ]
        made.partition("__cluster_metadata-0", {0: batches})


def encode(name: str, value: dict[str, Any]) -> bytes:
    """Return the value of a metadata record, what is not named at its default."""
    kind = record_type(name)
    every = {
        each.column: [] if each.is_array and 0 not in each.nullable else default_of(each, 0)
        for each in kind.value.at(0, None)
    }
    return encode_value(kind, 0, {**every, **value})


def _commit(offset: int, each: Commit) -> bytes:
    kind = record_type("offset_commit")
    key = {"group": each.group, "topic": "orders", "partition": 0}
    value = {"offset": each.committed, "leader_epoch": -1, "metadata": ""}
    value |= {"commit_timestamp": _time(each.second), "topic_id": TOPIC_ID}
    record = Record(
        offset, _time(each.second), encode_key(kind, 1, key), encode_value(kind, 3, value)
    )
    return batch([record], Header(leader_epoch=each.epoch)).data


def _time(second: int) -> int:
    return START + second * SECOND
