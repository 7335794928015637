"""Clients that act at random on a broker: a program of its own, ended without a goodbye."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.brokers.programs import Programs, start
from tests.brokers.releases import Release

HOLDING = b"holding still"
_QUIET = ("org.slf4j.simpleLogger.defaultLogLevel=off",)
_MORE_SECONDS = 90


class TroupeFailedError(Exception):
    """The clients' program ended by itself."""


class Troupe:
    """One program of clients."""

    def __init__(self, said: Path) -> None:
        self.said = said
        self._process: subprocess.Popen[bytes] | None = None

    def begin(
        self, programs: Programs, release: Release, bootstrap: str, seed: int, seconds: int
    ) -> None:
        """Start; it acts for so many seconds."""
        arguments = [bootstrap, str(seed), str(seconds), release.number, *release.acts]
        self._process = start(programs.java("RandomActs", *arguments, properties=_QUIET), self.said)

    def wait_until_still(self, seconds: int) -> None:
        """Wait until it only keeps alive what it began.

        Args:
            seconds: How long it was to act.

        Raises:
            TroupeFailedError: It ended, or does not come to rest.
        """
        end = time.monotonic() + seconds + _MORE_SECONDS
        while HOLDING not in self.said.read_bytes():
            if self._process is None or self._process.poll() is not None:
                raise TroupeFailedError(f"the clients ended: {self._last()}")
            if time.monotonic() > end:
                raise TroupeFailedError(f"the clients do not end their acts: {self._last()}")
            time.sleep(0.2)

    def kill(self) -> None:
        """End it without a goodbye to the broker."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def told(self) -> list[str]:
        """What it did, as JSON lines."""
        lines = self.said.read_text(errors="replace").splitlines()
        return [line for line in lines if line.startswith('{"at": ')]

    def _last(self) -> str:
        return " | ".join(self.said.read_text(errors="replace").splitlines()[-3:])
