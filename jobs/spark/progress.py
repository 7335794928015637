"""How far Spark's work is: one line on a terminal, from what Spark's own tracker says."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jobs.cli.console import Console

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

SECONDS_BETWEEN_LOOKS = 0.2
_TO_END_OF_LINE = "\x1b[K"


@contextmanager
def progress(spark: SparkSession, console: Console, label: str) -> Iterator[None]:
    """Show how many tasks of the work done inside are finished; nothing where none is wanted."""
    if not console.draws_progress:
        yield
        return
    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    watcher = threading.Thread(target=_watch, args=(tracker, label, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(tracker: StatusTracker, label: str, done: threading.Event) -> None:
    """Rewrite one line until the work is done, and take it away.

    Spark finds out on the way how many tasks there are: nobody knows how much is still to come.
    """
    stages: set[int] = set()
    began = time.monotonic()
    is_done = False
    while not is_done:
        is_done = done.wait(SECONDS_BETWEEN_LOOKS)
        stages.update(tracker.getActiveStageIds())
        finished, running = _counts(tracker, stages)
        line = line_of(label, finished, running, time.monotonic() - began)
        _rewrite(line)
    _rewrite("")


def _rewrite(line: str) -> None:
    sys.stderr.write(f"\r{line}{_TO_END_OF_LINE}")
    sys.stderr.flush()


def line_of(label: str, finished: int, running: int, seconds: float) -> str:
    """Return what is known: tasks that are done, those under way, and the time it took so far."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{label}: {finished:,} tasks done, {running:,} running  {minutes}:{rest:02d}"


def _counts(tracker: StatusTracker, stages: set[int]) -> tuple[int, int]:
    """Return how many tasks of the stages are finished, and how many are under way."""
    infos = [info for info in map(tracker.getStageInfo, stages) if info is not None]
    return sum(info.numCompletedTasks for info in infos), sum(info.numActiveTasks for info in infos)
