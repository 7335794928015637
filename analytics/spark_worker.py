"""What the Python workers of a command's own Spark are spared: pandas, and looking for garbage.

A worker loads everything anew and lives for one command. PyArrow would have it import pandas, and
PySpark has it look through all objects there are after each task, most of them modules: half a
second, and a sixteenth of one a task.

Workers of a session that is not ours are left alone: they run functions of others afterwards, and
PyArrow, once it has found no pandas, takes pandas' values for plain ones as long as it lives.
"""

from __future__ import annotations

import gc
import os
import re
from functools import wraps
from typing import TYPE_CHECKING, Final, TypeVar

from analytics.libraries_later import release_libraries, withhold_libraries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

Rows = TypeVar("Rows")
Yielded = TypeVar("Yielded")

OWN: Final = "GROUPSCOPE_OWN_WORKERS"
"""Set in the environment of workers that end with the command and run nothing but our functions."""

_ON_THIS_MACHINE: Final = re.compile(r"local(\[.*)?")
"""Masters whose tasks run on the machine of the driver."""


def tasks_run_here(spark: SparkSession) -> bool:
    """Return whether tasks of a session run on the machine of its driver, by its Python."""
    return _ON_THIS_MACHINE.fullmatch(str(spark.conf.get("spark.master", ""))) is not None


def on_worker(run: Callable[[Rows], Iterator[Yielded]]) -> Callable[[Rows], Iterator[Yielded]]:
    """Spare a function on a partition pandas, and its worker the search for garbage after it."""

    @wraps(run)
    def spared(rows: Rows) -> Iterator[Yielded]:
        if OWN not in os.environ:
            yield from run(rows)
            return
        withhold_libraries()
        try:
            yield from run(rows)
        finally:
            release_libraries()
            if not gc.get_freeze_count():
                # What the first task loaded stays: nothing in it will ever be garbage.
                gc.freeze()

    return spared
