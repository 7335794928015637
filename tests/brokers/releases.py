"""What a release of Kafka can do, and the settings under which its broker is made to do it.

Every setting that makes records more various is drawn from the seed: how long offsets are kept,
whether compaction and snapshots of the metadata log come in time to be seen.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

OLDEST = (3, 5)
"""Older ones have no broker that is its own controller for production."""
OFFSETS_PARTITIONS = 5
SHARE_PARTITIONS = 3
TRANSACTION_PARTITIONS = 3
INTERNAL = {
    "__consumer_offsets": OFFSETS_PARTITIONS,
    "__share_group_state": SHARE_PARTITIONS,
    "__transaction_state": TRANSACTION_PARTITIONS,
}

_CLASSIC_ACTS = (
    *("ClassicMembers", "ClassicMembers", "Topics", "Production", "Production"),
    *("SimpleCommits", "SimpleCommits", "OldCommits", "Transactions", "Transactions", "Deletions"),
)
_WITHOUT_TOOLS = {"4.4.0": "4.3.1"}
"""Releases of which Maven has neither tools nor streams, and the one whose tools do instead."""
_TOOLS_SAY_ENOUGH = (3, 9)
_NEWER_TOOLS = "4.3.1"
_NEVER = "86400000"


@dataclass(frozen=True)
class Release:
    """A release by its number, as "4.4.0"."""

    number: str

    @property
    def line(self) -> tuple[int, int]:
        """Major and minor number."""
        major, minor = self.number.split(".")[:2]
        return int(major), int(minor)

    @property
    def has_consumer_groups(self) -> bool:
        """Whether KIP-848 is on: its previews in 3.x need another coordinator."""
        return self.line >= (4, 0)

    @property
    def has_share_groups(self) -> bool:
        """Since the early access of 4.0."""
        return self.line >= (4, 0)

    @property
    def has_streams_groups(self) -> bool:
        """Since the early access of 4.1."""
        return self.line >= (4, 1)

    @property
    def has_streams_clients(self) -> bool:
        """Whether there are clients to act in streams groups."""
        return self.has_streams_groups and self.number not in _WITHOUT_TOOLS

    @property
    def acts(self) -> tuple[str, ...]:
        """The classes of ``acts`` that its clients can perform; those named twice more often."""
        acts = list(_CLASSIC_ACTS)
        if self.has_consumer_groups:
            acts += ["ConsumerMembers", "ConsumerMembers", "PatternMembers"]
        if self.has_share_groups:
            acts += ["ShareMembers", "ShareMembers"]
        if self.has_streams_groups:
            acts += ["ShareOffsets"]
        if self.has_streams_clients:
            acts += ["StreamsMembers"]
        return tuple(acts)

    @property
    def tools(self) -> Release:
        """The release whose tools print its segments: its own, if there are and say enough."""
        if self.line < _TOOLS_SAY_ENOUGH:
            return Release(_NEWER_TOOLS)
        return Release(_WITHOUT_TOOLS.get(self.number, self.number))

    @property
    def artifacts(self) -> dict[str, str]:
        """What of ``org.apache.kafka`` runs its broker and the acts, by version."""
        streams = {"kafka-streams": self.number} if self.has_streams_clients else {}
        return {"kafka_2.13": self.number} | streams

    @property
    def features(self) -> tuple[str, ...]:
        """Features that a fresh cluster does not have by itself."""
        return ("share.version=1", "streams.version=1") if self.line == (4, 1) else ()


def broker_settings(release: Release, seed: int) -> dict[str, str]:
    """Return a broker's settings, without addresses and folders."""
    draw = random.Random(seed)
    settings = _of_one_broker() | _of_logs(draw) | _of_groups(draw)
    if release.has_consumer_groups:
        settings |= _of_consumer_groups()
    if release.has_share_groups:
        settings |= _of_share_groups(draw)
    if release.has_streams_groups:
        settings |= _of_streams_groups()
    if release.line == (4, 0):
        settings |= {"group.share.enable": "true", "unstable.api.versions.enable": "true"}
        # It cannot load share groups whose log was compacted: a tombstone without a member fails.
        settings["log.cleaner.enable"] = "false"
    if release.line == (4, 1):
        settings |= {"unstable.api.versions.enable": "true"}
        settings |= {"unstable.feature.versions.enable": "true"}
    protocols = ["classic", "consumer"] if release.has_consumer_groups else ["classic"]
    protocols += ["share"] if release.has_share_groups else []
    protocols += ["streams"] if release.has_streams_groups else []
    return settings | {"group.coordinator.rebalance.protocols": ",".join(protocols)}


def loading_settings(settings: dict[str, str]) -> dict[str, str]:
    """Return the settings under which a broker loads a cut: it must not change what it loaded.

    No session ends, nothing expires, is compacted or snapshotted while it is asked.
    """
    calm = {
        "group.share.max.session.timeout.ms": _NEVER,
        "group.consumer.max.session.timeout.ms": _NEVER,
        "group.streams.max.session.timeout.ms": _NEVER,
        "group.share.session.timeout.ms": _NEVER,
        "group.consumer.session.timeout.ms": _NEVER,
        "group.streams.session.timeout.ms": _NEVER,
        "share.coordinator.state.topic.prune.interval.ms": _NEVER,
        "share.coordinator.cold.partition.snapshot.interval.ms": _NEVER,
    }
    known = {name: value for name, value in calm.items() if _without_limit(name) in settings}
    return (
        settings
        | known
        | {
            "offsets.retention.minutes": "100000",
            "offsets.retention.check.interval.ms": _NEVER,
            "log.cleaner.enable": "false",
        }
    )


def _without_limit(name: str) -> str:
    return name.replace(".max.session.", ".session.")


def _of_one_broker() -> dict[str, str]:
    one = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "auto.create.topics.enable": "false",
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": str(TRANSACTION_PARTITIONS),
        "num.io.threads": "4",
        "num.network.threads": "2",
    }
    return one | {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000"}


def _of_logs(draw: random.Random) -> dict[str, str]:
    logs = {
        "log.index.size.max.bytes": "4096",
        "log.flush.start.offset.checkpoint.interval.ms": "2000",
        "log.cleaner.dedupe.buffer.size": "20000000",
        "log.cleaner.backoff.ms": "3000",
        "log.segment.delete.delay.ms": "1000",
        "log.initial.task.delay.ms": "1000",
        "metadata.max.idle.interval.ms": "0",
    }
    if draw.random() < 0.5:  # compaction needs segments that are closed
        logs |= {
            "log.roll.ms": "12000",
            "log.cleaner.min.cleanable.ratio": "0.01",
            "log.cleaner.delete.retention.ms": "4000",
        }
    if draw.random() < 0.5:  # the metadata log is cut by its snapshots
        logs |= {
            "metadata.log.max.record.bytes.between.snapshots": "20000",
            "metadata.log.max.snapshot.interval.ms": "20000",
            "metadata.log.segment.ms": "15000",
            "metadata.max.retention.ms": "10000",
        }
    return logs


def _of_groups(draw: random.Random) -> dict[str, str]:
    groups = {"group.initial.rebalance.delay.ms": "200", "group.min.session.timeout.ms": "1000"}
    if draw.random() < 0.5:
        groups |= {
            "offsets.retention.minutes": "1",
            "offsets.retention.check.interval.ms": "3000",
        }
    return groups


def _of_consumer_groups() -> dict[str, str]:
    return {
        "group.consumer.min.heartbeat.interval.ms": "1000",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.consumer.min.session.timeout.ms": "5000",
        "group.consumer.session.timeout.ms": "8000",
    }


def _of_share_groups(draw: random.Random) -> dict[str, str]:
    updates = draw.choice(("5", "20", "500"))
    return {
        "group.share.min.heartbeat.interval.ms": "1000",
        "group.share.heartbeat.interval.ms": "1000",
        "group.share.min.session.timeout.ms": "5000",
        "group.share.session.timeout.ms": "8000",
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.record.lock.duration.ms": "2000",
        "group.share.delivery.count.limit": "3",
        "share.coordinator.state.topic.num.partitions": str(SHARE_PARTITIONS),
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.snapshot.update.records.per.snapshot": updates,
        "share.coordinator.state.topic.prune.interval.ms": draw.choice(("10000", "300000")),
        "share.coordinator.cold.partition.snapshot.interval.ms": draw.choice(("20000", "300000")),
    }


def _of_streams_groups() -> dict[str, str]:
    return {
        "group.streams.min.heartbeat.interval.ms": "1000",
        "group.streams.heartbeat.interval.ms": "1000",
        "group.streams.min.session.timeout.ms": "5000",
        "group.streams.session.timeout.ms": "8000",
    }
