"""Three brokers, the first of which is the controller too and stays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.brokers.asking import Ask, NotAnsweredError
from tests.brokers.broker import Addresses, Broker
from tests.brokers.programs import Programs
from tests.brokers.releases import INTERNAL, Release, broker_settings

_OF_ALL: Final = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "min.insync.replicas": "1",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
    "auto.leader.rebalance.enable": "false",
}
_OF_SHARES: Final = {"share.coordinator.state.topic.replication.factor": "3"}
_MS: Final = 20_000
_PREFERRED: Final = 0


class ThreeBrokers:
    """Brokers 1 to 3 on log directories of their own."""

    def __init__(self, programs: Programs, release: Release, seed: int, folder: Path) -> None:
        self.release = release
        self.addresses = [Addresses.free() for _ in range(3)]
        self.brokers = [
            Broker(programs, each, self._settings(number, seed), folder / f"broker-{number}")
            for number, each in enumerate(self.addresses, 1)
        ]

    def _settings(self, number: int, seed: int) -> dict[str, str]:
        settings = broker_settings(self.release, seed) | _OF_ALL
        if self.release.has_share_groups:
            settings |= _OF_SHARES
        settings |= {
            "node.id": str(number),
            "controller.quorum.voters": f"1@127.0.0.1:{self.addresses[0].controller}",
        }
        if number > 1:
            heard = f"PLAINTEXT://{self.addresses[number - 1].bootstrap}"
            settings |= {"process.roles": "broker", "listeners": heard}
        return settings

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Format and start them; at the end they are killed at once."""
        try:
            for each in self.brokers:
                each.format(self.release)
                each.start()
            yield
        finally:
            for each in self.brokers:
                each.kill()

    @property
    def bootstrap(self) -> str:
        return ",".join(each.bootstrap for each in self.addresses)

    @property
    def log_dirs(self) -> list[Path]:
        return [each.log_dir for each in self.brokers]

    def wait_for_all(self, ask: Ask) -> None:
        """Wait until the controller knows all three."""

        def all_known() -> None:
            nodes = ask("Metadata", {"topics": None})["brokers"]
            if len(nodes) < len(self.brokers):
                raise NotAnsweredError(f"{len(nodes)} brokers are there")

        self.brokers[0].answer(all_known)

    def lead(self, ask: Ask, topic: str, replicas: Sequence[int]) -> None:
        """Have other brokers hold a topic's partitions, and the first of them lead."""
        partitions = list(range(INTERNAL[topic]))
        assignments = [{"partitionIndex": each, "replicas": list(replicas)} for each in partitions]
        moved = {"topics": [{"name": topic, "partitions": assignments}], "timeoutMs": _MS}
        self.brokers[0].answer(lambda: ask("AlterPartitionReassignments", moved))
        elected = [{"topic": topic, "partitions": partitions}]
        ask(
            "ElectLeaders",
            {"electionType": _PREFERRED, "topicPartitions": elected, "timeoutMs": _MS},
        )
