"""Logs that are read in tasks on Spark, into the segments that one process would write.

Each attempt of a task writes into a folder of its own. What the attempts wrote whose results came
back gets its place; what others left, repeated or speculative ones, is removed.
"""

from __future__ import annotations

import shutil
import socket
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analytics.cluster_probe import ListedFile, check_executors
from analytics.errors import (
    ClusterUnfitError,
    ClusterUnreachableError,
    InstallationError,
    WorkspaceError,
)
from analytics.snapshot.cluster_connection import (
    CLIENT_LIBRARY,
    ClusterConnection,
    check_client_library,
)
from analytics.snapshot.log_extents import FetchBudget, HeldLog, Pace, ReadLog, WantedLog
from analytics.snapshot.log_reading import LogReader
from analytics.snapshot.sealed_settings import SealedSettings
from analytics.spark_tasks import run_tasks

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession

PACKAGES: Final = "requirements/worker-snapshot.txt"
"""What executors need besides."""
_ATTEMPTS: Final = ".attempts"
_PRIVATE: Final = 0o700
_PATIENCE: Final = 5.0
_BETWEEN: Final = 0.1
"""Seconds."""


@dataclass(frozen=True)
class _HeldBefore:
    """What an earlier snapshot has of a log, on its way to a task."""

    held: HeldLog | str | None

    def __call__(self) -> HeldLog | str | None:
        return self.held


@dataclass(frozen=True)
class _Work:
    """What tasks do.

    Attributes:
        bootstrap: Where the cluster is found.
        settings: How brokers are reached.
        seconds: How long an answer is waited for.
        fetch_bytes: What one answer may have.
        bytes_a_second: Of each task; null without a limit.
        folder: What each attempt makes a folder in.
        parts: The logs of each task.
        clock: The time now, in UTC.
    """

    bootstrap: str
    settings: SealedSettings
    seconds: float
    fetch_bytes: int
    bytes_a_second: int | None
    folder: Path
    parts: Sequence[Sequence[WantedLog]]
    clock: Callable[[], datetime]


@dataclass(frozen=True)
class _Attempt:
    """What an attempt of a task gives back.

    Attributes:
        host: Where it ran.
        folder: What it wrote into.
        logs: How far each of its logs was read.
        answer_bytes: How many bytes it fetched.
    """

    host: str
    folder: Path
    logs: tuple[ReadLog, ...]
    answer_bytes: int


class TaskReader(LogReader):
    """Reads logs in tasks, as many as may be read at once, and all else in this process.

    Args:
        spark: The session.
        cluster: Is reached by tasks as it is here.
        pace: Holds for all tasks together; it has no limit of bytes.
    """

    def __init__(self, spark: SparkSession, cluster: ClusterConnection, pace: Pace) -> None:
        super().__init__(cluster, pace)
        self._spark = spark

    def prepare(self, folder: Path, earlier: Path | None) -> None:
        """Check that executors see the folder, and the earlier snapshot, and have kafka-python.

        Raises:
            ClusterUnfitError: One does not.
        """
        segments = [] if earlier is None else sorted(earlier.absolute().glob("*/*.log"))
        files = [ListedFile(str(each), each.stat().st_size) for each in segments]
        check_executors(
            self._spark, files, str(folder.absolute()), further={CLIENT_LIBRARY: PACKAGES}
        )

    def read_all(
        self, logs: Iterable[WantedLog], folder: Path, clock: Callable[[], datetime]
    ) -> Generator[ReadLog]:
        """Read logs, each task some of them; all are there before the first one comes.

        Raises:
            ClusterUnfitError: What a task wrote is not seen here, or it lacks kafka-python.
            ClusterUnreachableError: Where tasks run the cluster does not answer.
            WorkspaceError: A task cannot write.
        """
        logs = [each._replace(held=_held(each)) for each in logs]
        numbers = _parts([_offsets(each) for each in logs], self.parallel)
        begun = clock()
        attempts = folder.absolute() / _ATTEMPTS
        attempts.mkdir(mode=_PRIVATE)
        with SealedSettings.within(self._spark, self._cluster.settings) as settings:
            rate = self._pace.budget.bytes_a_second
            work = _Work(
                self._cluster.bootstrap,
                settings,
                self._pace.seconds,
                self._pace.fetch_bytes,
                None if rate is None else max(rate // max(len(numbers), 1), 1),
                attempts,
                [[logs[number] for number in part] for part in numbers],
                clock,
            )
            try:
                done = run_tasks(self._spark, len(numbers), partial(_read_part, work))
            except BaseException:
                # Nothing may still write where all is about to be removed. The JVM may be gone.
                with suppress(Exception):
                    self._spark.sparkContext.cancelAllJobs()
                with suppress(OSError):
                    _remove(attempts)
                raise
        ended = clock()
        read: dict[int, ReadLog] = {}
        for part, attempt in zip(numbers, done, strict=True):
            self._pace.budget.count(attempt.answer_bytes)
            for number, each in zip(part, attempt.logs, strict=True):
                _publish(attempt, logs[number], each, folder)
                # Clocks of other machines may be wrong.
                read[number] = each._replace(read_at=min(max(each.read_at, begun), ended))
        _remove(attempts)
        for number in range(len(logs)):
            yield read[number]


def _held(log: WantedLog) -> _HeldBefore:
    held = log.held()
    if isinstance(held, HeldLog):
        held = replace(held, segments=tuple(each.absolute() for each in held.segments))
    return _HeldBefore(held)


def _offsets(log: WantedLog) -> int:
    """Return how many offsets are to be read: of how many bytes they are nobody tells before."""
    partition, held = log.partition, log.held()
    start = held.next_offset if isinstance(held, HeldLog) else partition.log_start_offset
    return max((partition.log_end_offset or 0) - (start or 0), 0)


def _parts(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Return numbers of logs, part by part, so that parts have about as much to read."""
    parts: list[list[int]] = [[] for _ in range(min(most, len(sizes)))]
    loads = [(0, number) for number in range(len(parts))]
    heapify(loads)
    for number in sorted(range(len(sizes)), key=lambda each: -sizes[each]):
        load, part = heappop(loads)
        parts[part].append(number)
        # A log takes a question, also where nothing is in it.
        heappush(loads, (load + sizes[number] + 1, part))
    return parts


def _read_part(work: _Work, number: int) -> _Attempt:
    """Read the logs of a task, where it runs."""
    host = socket.gethostname()
    try:
        check_client_library()
    except InstallationError as error:
        raise ClusterUnfitError(
            f"on {host}, where executors run, {CLIENT_LIBRARY} 3 is not installed: give executors "
            f"the packages of {PACKAGES}"
        ) from error
    folder = work.folder / f"{number}-{uuid.uuid4().hex}"
    budget = FetchBudget(work.bytes_a_second)
    pace = Pace(work.seconds, work.fetch_bytes, budget, 1)
    try:
        folder.mkdir(mode=_PRIVATE)
        with ClusterConnection(work.bootstrap, work.settings.opened(), work.seconds) as cluster:
            reader = LogReader(cluster, pace)
            logs = tuple(reader.read_into(folder, each, work.clock) for each in work.parts[number])
    except ClusterUnreachableError as error:
        raise ClusterUnreachableError(f"{error} (on {host}, where executors run)") from error
    except OSError as error:
        why = error.strerror or error
        raise WorkspaceError(
            f"{folder} cannot be written: {why} (on {host}, where executors run)"
        ) from error
    return _Attempt(host, folder, logs, budget.answer_bytes)


def _publish(attempt: _Attempt, log: WantedLog, read: ReadLog, folder: Path) -> None:
    """Give a log that an attempt read its place.

    Raises:
        ClusterUnfitError: What was written is not seen here.
    """
    name = f"{log.topic}-{log.partition.partition}"
    place = attempt.folder / name
    try:
        size = sum(each.stat().st_size for each in place.iterdir())
        if size == read.reading.size:
            place.rename(folder / name)
            return
        why = f"of {read.reading.size} bytes {size} are seen here"
    except OSError as error:
        why = f"it is not seen here ({error.strerror or error})"
    raise ClusterUnfitError(
        f"{place} was written on {attempt.host}, where executors run, and {why}: give a folder "
        "that all machines share"
    )


def _remove(folder: Path) -> None:
    """Remove what attempts left; one whose result was not waited for may write a moment longer.

    Raises:
        OSError: It cannot be removed.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            shutil.rmtree(folder)
        except OSError:
            if not folder.exists():
                return
            if time.monotonic() > until:
                raise
            time.sleep(_BETWEEN)
        else:
            return
