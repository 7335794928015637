"""A progress bar for Spark's work: drawn on a terminal, from what Spark's own tracker says."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from jobs.console import Console

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

SECONDS_BETWEEN_LOOKS = 0.2


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
    stages: set[int] = set()
    with click.progressbar(
        length=1, label=label, file=sys.stderr, show_pos=True, show_percent=False, width=30
    ) as bar:
        while True:
            last_look = done.wait(SECONDS_BETWEEN_LOOKS)
            stages.update(tracker.getActiveStageIds())
            tasks, finished = _counts(tracker, stages)
            if tasks:
                bar.length = tasks
                bar.update(finished - bar.pos)
            if last_look:
                return


def _counts(tracker: StatusTracker, stages: set[int]) -> tuple[int, int]:
    """Return how many tasks the stages have, and how many of them are finished."""
    infos = [info for info in map(tracker.getStageInfo, stages) if info is not None]
    return sum(info.numTasks for info in infos), sum(info.numCompletedTasks for info in infos)
