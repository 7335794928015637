"""How much a snapshot fetches, and how fast: of all logs together, whoever reads them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class SpentError(Exception):
    """No more may be fetched; says why."""


@dataclass
class Share:
    """What one fetch may bring.

    Attributes:
        size: How many bytes may be asked for.
        answer_bytes: How many came: a first batch comes whole, so they may be more.
    """

    size: int
    answer_bytes: int = 0


class FetchBudget:
    """Bytes, and bytes a second, that readers in several threads share.

    Args:
        bytes_a_second: At most, on average; null without a limit.
        most_bytes: At most, but for the rests of last batches; null without a limit.
        clock: Seconds that pass evenly.
    """

    def __init__(
        self,
        bytes_a_second: int | None = None,
        most_bytes: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.bytes_a_second = bytes_a_second
        self._most_bytes = most_bytes
        self._clock = clock
        self._begun = clock()
        self._taken = self._promised = 0
        self._changed = threading.Condition()
        self._is_stopped = threading.Event()

    @contextmanager
    def share(self, size: int) -> Iterator[Share]:
        """Hand over what one fetch may bring, no more than is left.

        What others were promised and may yet leave is waited for.

        Raises:
            SpentError: Nothing is left.
        """
        share = Share(self._promise(size))
        try:
            yield share
        finally:
            with self._changed:
                self._promised -= share.size
                self._taken += share.answer_bytes
                self._changed.notify_all()

    def _promise(self, size: int) -> int:
        with self._changed:
            while not self._is_stopped.is_set():
                left = self._left()
                if left is None or left > 0:
                    promised = size if left is None else min(size, left)
                    self._promised += promised
                    return promised
                if not self._promised:
                    raise SpentError(
                        f"no more is fetched of all logs than the {self._most_bytes} bytes that "
                        "are allowed"
                    )
                self._changed.wait()
        raise SpentError("reading was stopped")

    def _left(self) -> int | None:
        if self._most_bytes is None:
            return None
        return self._most_bytes - self._taken - self._promised

    def keep_pace(self) -> None:
        """Wait until so many bytes as have come may have come."""
        while self.bytes_a_second is not None and not self._is_stopped.is_set():
            ahead = self._taken / self.bytes_a_second - (self._clock() - self._begun)
            if ahead <= 0:
                return
            self._sleep(ahead)

    def stop(self) -> None:
        """Have nobody wait or fetch any more."""
        self._is_stopped.set()
        with self._changed:
            self._changed.notify_all()

    def _sleep(self, seconds: float) -> None:
        self._is_stopped.wait(seconds)
