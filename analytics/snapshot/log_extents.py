"""What is to be read of a partition's log, how far it was read, and what is held of it already.

How much a snapshot fetches, and how fast: of all logs together, whoever reads them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.snapshot.cluster_description import NO_LEADER

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.snapshot import Partition


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

    @property
    def answer_bytes(self) -> int:
        """How many bytes have come."""
        return self._taken

    def count(self, answer_bytes: int) -> None:
        """Count bytes that came to others within this budget."""
        with self._changed:
            self._taken += answer_bytes

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


FETCH_BYTES: Final = 4 << 20
"""Of one answer; a batch that is larger comes whole (KIP-74)."""
PARALLEL: Final = 4
"""Logs that are read at once: while one is written others come."""


@dataclass(frozen=True)
class Span:
    """What is to be read.

    Attributes:
        topic: Whose.
        partition: Its number.
        leader: Node id.
        epoch: Of that leader; -1 where brokers know none.
        start: First offset.
        end: The offset after the last, or more: reading goes on where records are missing.
    """

    topic: str
    partition: int
    leader: int
    epoch: int
    start: int
    end: int


@dataclass(frozen=True)
class Reading:
    """How far a log was read.

    Attributes:
        span: What was to be read; null where nobody could say.
        end: Where reading ended, or was to end.
        next_offset: Where reading would go on.
        readings: How often it was begun.
        size: Bytes written.
        has_gaps: Offsets or records are missing in what was read.
        failure: Why the end was not reached; null where it was.
        last_batch: The last one that was read, or is held; null where there is none.
        fetched_from: Where reading began, where what lies below was held; null where nothing was.
        why_whole: Why what was held was read again; null where it was not.
    """

    span: Span | None
    end: int | None
    next_offset: int | None
    readings: int
    size: int = 0
    has_gaps: bool = False
    failure: str | None = None
    last_batch: LastBatch | None = None
    fetched_from: int | None = None
    why_whole: str | None = None


@dataclass(frozen=True)
class LastBatch:
    """The last batch that was read.

    Attributes:
        offset: Its last one.
        size: Its bytes.
    """

    offset: int
    size: int


@dataclass(frozen=True)
class HeldLog:
    """A log as an earlier snapshot has it.

    Attributes:
        start: Where it began.
        next_offset: Where reading goes on.
        has_gaps: Offsets or records are missing in it.
        last: Its last batch.
        content: The bytes of that batch.
        segments: Its files, in order.
    """

    start: int
    next_offset: int
    has_gaps: bool
    last: LastBatch
    content: bytes
    segments: tuple[Path, ...]


class WantedLog(NamedTuple):
    """A log that is to be read.

    Attributes:
        topic: Whose.
        partition: As it was described.
        held: Returns what an earlier snapshot has of it, why that is of no use, or null.
    """

    topic: str
    partition: Partition
    held: Callable[[], HeldLog | str | None]


class ReadLog(NamedTuple):
    """A log that was read.

    Attributes:
        reading: How far.
        read_at: When that ended.
    """

    reading: Reading
    read_at: datetime


class Patience:
    """How long a broker is waited for; what we wait ourselves to keep a pace does not count.

    Args:
        seconds: So long.
        clock: Seconds that pass evenly.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._left = seconds
        self._clock = clock

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count what passes meanwhile."""
        begun = self._clock()
        try:
            yield
        finally:
            self._left -= self._clock() - begun

    def ends_within(self, seconds: float) -> bool:
        """Return whether it does not last so long any more."""
        return self._left < seconds


@dataclass(frozen=True)
class Pace:
    """How fast, how long, and how many at once.

    Attributes:
        seconds: How long nothing may come before a log is given up.
        fetch_bytes: What one answer may have.
        budget: Of all logs together.
        parallel: How many logs are read at once.
        clock: Seconds that pass evenly.
    """

    seconds: float
    fetch_bytes: int = FETCH_BYTES
    budget: FetchBudget = field(default_factory=FetchBudget)
    parallel: int = PARALLEL
    clock: Callable[[], float] = time.monotonic

    def patience(self) -> Patience:
        """Return how long one answer is waited for."""
        return Patience(self.seconds, self.clock)


def span_of(topic: str, partition: Partition) -> Span | str:
    """Return what is to be read of a partition, or why that is not known."""
    start, end = partition.log_start_offset, partition.log_end_offset
    if partition.leader is None or start is None or end is None:
        return partition.error or NO_LEADER
    epoch = -1 if partition.leader_epoch is None else partition.leader_epoch
    return Span(topic, partition.partition, partition.leader, epoch, start, max(start, end))
