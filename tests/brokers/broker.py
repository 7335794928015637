"""One broker that is its own controller: formatted, started, stopped or killed."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from tests.brokers.answers import NotYetError
from tests.brokers.asking import NotAnsweredError
from tests.brokers.programs import Programs, start
from tests.brokers.releases import Release
from tests.support.kafka_jars import run

CLUSTER = "groupscope-brokers-00A"
_SECONDS_TO_ANSWER = 90
_SECONDS_TO_STOP = 40
_BETWEEN = 0.3
_LEVELS = (
    "org.slf4j.simpleLogger.defaultLogLevel=warn",
    "org.slf4j.simpleLogger.log.org.apache.kafka.coordinator=info",
    "org.slf4j.simpleLogger.log.kafka.coordinator=info",
)

T = TypeVar("T")


class BrokerFailedError(Exception):
    """A broker ended by itself, or never came to answer."""


@dataclass(frozen=True)
class Addresses:
    """Ports that were free a moment ago."""

    broker: int
    controller: int

    @classmethod
    def free(cls) -> Addresses:
        """Let the system choose."""
        with socket.socket() as one, socket.socket() as other:
            for each in (one, other):
                each.bind(("127.0.0.1", 0))
            return cls(one.getsockname()[1], other.getsockname()[1])

    @property
    def bootstrap(self) -> str:
        """Where clients find the broker."""
        return f"127.0.0.1:{self.broker}"


class Broker:
    """A broker on a log directory.

    Args:
        programs: Of its release.
        addresses: Where it listens.
        settings: They go before what follows from the addresses and the folder.
        folder: Of its log directory and what it says.
    """

    def __init__(
        self,
        programs: Programs,
        addresses: Addresses,
        settings: Mapping[str, str],
        folder: Path,
    ) -> None:
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None
        self.log_dir = folder / "log"
        self.said = folder / "broker.txt"
        self.properties = folder / "server.properties"
        folder.mkdir(parents=True, exist_ok=True)
        listeners = (
            f"PLAINTEXT://127.0.0.1:{addresses.broker},"
            f"CONTROLLER://127.0.0.1:{addresses.controller}"
        )
        placed = {
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://{addresses.bootstrap}",
            "controller.quorum.voters": f"1@127.0.0.1:{addresses.controller}",
            "log.dirs": str(self.log_dir),
        }
        self.properties.write_text(properties_text({**placed, **settings}))

    def format(self, release: Release, scram: Mapping[str, str] = MappingProxyType({})) -> None:
        """Make the log directory of a new cluster.

        Args:
            release: Of the broker.
            scram: Passwords by user name, for SCRAM-SHA-512.
        """
        features = [part for each in release.features for part in ("--feature", each)]
        for user, password in scram.items():
            features += ["--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]"]
        where = ["-t", CLUSTER, "-c", str(self.properties)]
        run(self._programs.java("kafka.tools.StorageTool", "format", *where, *features))

    def start(self) -> None:
        """Start it, and wait for nothing."""
        command = self._programs.java("kafka.Kafka", str(self.properties), properties=_LEVELS)
        self._process = start(command, self.said)

    def stop(self) -> None:
        """Let it end as it likes to."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Have it do nothing; its connections stay open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Have it go on after `pause`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def answer(self, ask: Callable[[], T], seconds: float = _SECONDS_TO_ANSWER) -> T:
        """Ask until it can say.

        Raises:
            BrokerFailedError: It ended, or could not in time.
        """
        assert self._process is not None
        last: Exception | None = None
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._process.poll() is not None:
                tail = self.said.read_text(errors="replace").splitlines()[-5:]
                raise BrokerFailedError("the broker ended:\n" + "\n".join(tail))
            try:
                return ask()
            except (NotAnsweredError, NotYetError) as reason:
                last = reason
                time.sleep(_BETWEEN)
        raise BrokerFailedError(f"no answer in {seconds:.0f} s: {last}")


def properties_text(settings: Mapping[str, str]) -> str:
    """Return settings as a properties file has them, by name."""
    return "".join(f"{name}={value}\n" for name, value in sorted(settings.items()))
