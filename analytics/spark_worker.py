"""What Spark's Python workers are spared: a library they do not need, and looking for garbage.

A worker loads everything anew and lives for one command. PyArrow would have it import pandas, and
PySpark has it look through all objects there are after each task, most of them modules: half a
second, and a sixteenth of one a task.
"""

from __future__ import annotations

import gc
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

from analytics.libraries_later import release_libraries, withhold_libraries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Rows = TypeVar("Rows")
Yielded = TypeVar("Yielded")


def on_worker(run: Callable[[Rows], Iterator[Yielded]]) -> Callable[[Rows], Iterator[Yielded]]:
    """Spare a function on a partition pandas, and its worker the search for garbage after it."""

    @wraps(run)
    def spared(rows: Rows) -> Iterator[Yielded]:
        withhold_libraries()
        try:
            yield from run(rows)
        finally:
            release_libraries()
            if not gc.get_freeze_count():
                # What the first task loaded stays: nothing in it will ever be garbage.
                gc.freeze()

    return spared
