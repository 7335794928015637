"""A random metadata log, and what a broker that applies its records one by one has in memory.

Slow and simple: dicts, a record after the other, as ``MetadataDelta.replay`` does. It knows of
nothing but the log from its start or from a snapshot on.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

RECOVERING = 1
Value = dict[str, Any]
Step = tuple[str, Value]
HARMLESS, SECRET = "retention.ms", "sasl.jaas.config"
_TOPIC, _GROUP = 2, 32
_RESOURCES = {_TOPIC: "topic", 4: "broker", _GROUP: "group"}


@dataclass
class Partition:
    """A partition's registration (``PartitionRegistration``)."""

    leader: int
    leader_epoch: int
    isr: list[int]
    elr: list[int]
    recovery: int


@dataclass
class Image:
    """What a broker knows of its cluster."""

    names: dict[str, str] = field(default_factory=dict)
    partitions: dict[tuple[str, int], Partition] = field(default_factory=dict)
    settings: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def apply(self, name: str, value: Value) -> None:
        """Apply a record (``MetadataDelta.replay``)."""
        getattr(self, f"_{name}", lambda _: None)(value)

    def leaders(self) -> dict[tuple[str, int], Partition]:
        """Who leads, by name."""
        return {(self.names[of], number): each for (of, number), each in self.partitions.items()}

    def _topic_record(self, value: Value) -> None:
        self.names[value["topic_id"]] = value["name"]

    def _remove_topic_record(self, value: Value) -> None:
        name = self.names.pop(value["topic_id"])
        self.partitions = {
            key: each for key, each in self.partitions.items() if key[0] in self.names
        }
        self.settings = {
            key: each for key, each in self.settings.items() if key[:2] != ("topic", name)
        }

    def _partition_record(self, value: Value) -> None:
        self.partitions[value["topic_id"], value["partition_id"]] = Partition(
            value["leader"],
            value["leader_epoch"],
            value["isr"],
            value["eligible_leader_replicas"] or [],
            value["leader_recovery_state"],
        )

    def _partition_change_record(self, value: Value) -> None:
        changed = self.partitions[value["topic_id"], value["partition_id"]]
        if value["leader"] != -2:
            changed.leader = value["leader"]
            changed.leader_epoch += 1
        if value["isr"] is not None:
            changed.isr = value["isr"]
        if value["eligible_leader_replicas"] is not None:
            changed.elr = value["eligible_leader_replicas"]
        if value["leader_recovery_state"] != -1:
            changed.recovery = value["leader_recovery_state"]

    def _clear_elr_record(self, value: Value) -> None:
        for (topic_id, _), each in self.partitions.items():
            if value["topic_name"] in {"", self.names[topic_id]}:
                each.elr = []

    def _config_record(self, value: Value) -> None:
        key = _RESOURCES[value["resource_type"]], value["resource_name"], value["name"]
        self.settings.pop(key, None)
        if value["value"] is not None:
            self.settings[key] = value["value"]


class RandomCluster:
    """Records that a controller may write, and what brokers make of those that count."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._ids = 0
        self.image = Image()

    def records(self, count: int) -> Iterator[Step]:
        """Yield records, each applied; those of an aborted transaction are not."""
        for _ in range(count):
            if self._chance.random() < 0.1:
                yield from self._transaction(aborted=self._chance.random() < 0.5)
            else:
                yield self._applied(self._step())

    def snapshot(self) -> Iterator[Step]:
        """Yield what a snapshot of the cluster as it is now holds."""
        for topic_id, name in self.image.names.items():
            yield "topic_record", {"topic_id": topic_id, "name": name}
        for (topic_id, number), each in self.image.partitions.items():
            about = {"topic_id": topic_id, "partition_id": number, "leader": each.leader}
            about |= {"leader_epoch": each.leader_epoch, "leader_recovery_state": each.recovery}
            yield (
                "partition_record",
                about | {"isr": each.isr, "eligible_leader_replicas": each.elr},
            )
        kinds = {word: kind for kind, word in _RESOURCES.items()}
        for (kind, resource, name), value in self.image.settings.items():
            about = {"resource_type": kinds[kind], "resource_name": resource}
            yield "config_record", about | {"name": name, "value": value}

    def _transaction(self, *, aborted: bool) -> Iterator[Step]:
        yield "begin_transaction_record", {}
        # What does not come to be is of no topic that later records could name.
        if aborted:
            yield self._new_topic()
            yield self._setting()
        else:
            yield from (self._applied(self._step()) for _ in range(3))
        yield ("abort" if aborted else "end") + "_transaction_record", {}

    def _applied(self, step: Step) -> Step:
        self.image.apply(*step)
        return step

    def _step(self) -> Step:
        image, chance = self.image, self._chance
        made = [self._new_topic, self._setting]
        if image.names:
            made += [self._new_partition] * 3 + [self._clearing]
        if image.partitions:
            made += [self._change] * 8
        if len(image.names) > 1 and chance.random() < 0.3:
            made += [self._removal]
        return chance.choice(made)()

    def _new_topic(self) -> Step:
        self._ids += 1
        free = {"a", "b", "c"} - set(self.image.names.values())
        name = self._chance.choice(sorted(free) or [f"t{self._ids}"])
        return "topic_record", {"topic_id": f"{self._ids:022}", "name": name}

    def _removal(self) -> Step:
        return "remove_topic_record", {"topic_id": self._chance.choice(sorted(self.image.names))}

    def _new_partition(self) -> Step:
        topic_id = self._chance.choice(sorted(self.image.names))
        number = sum(each == topic_id for each, _ in self.image.partitions)
        about = {
            "topic_id": topic_id,
            "partition_id": number,
            "leader": self._chance.choice((1, 2)),
        }
        about |= {"leader_epoch": self._chance.choice((0, 3)), "leader_recovery_state": 0}
        return "partition_record", about | {"isr": [1, 2], "eligible_leader_replicas": None}

    def _change(self) -> Step:
        topic_id, number = self._chance.choice(sorted(self.image.partitions))
        leader = self._chance.choice((-2, -2, -1, 1, 2, 3))
        recovery = self._chance.choice((-1, -1, 0, RECOVERING))
        about = {"topic_id": topic_id, "partition_id": number, "leader": leader}
        about |= {"leader_recovery_state": recovery}
        about["isr"] = self._chance.choice((None, [1], [2, 3], []))
        return "partition_change_record", about | {
            "eligible_leader_replicas": self._chance.choice((None, None, [], [3]))
        }

    def _clearing(self) -> Step:
        names = sorted(self.image.names.values())
        return "clear_elr_record", {"topic_name": self._chance.choice(["", *names])}

    def _setting(self) -> Step:
        kind = self._chance.choice((_TOPIC, _TOPIC, 4, _GROUP))
        topics = sorted(self.image.names.values()) or ["none"]
        resource = self._chance.choice(topics if kind == _TOPIC else ["", "1"])
        about = {"resource_type": kind, "resource_name": resource}
        about["name"] = self._chance.choice((HARMLESS, SECRET))
        return "config_record", about | {"value": self._chance.choice((None, "1", "2"))}
