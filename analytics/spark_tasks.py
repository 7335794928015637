"""Tasks on Spark: numbers are handed out, and what each gave comes back.

By DataFrames, which Spark Connect and clusters that others manage know, too; RDDs they do not.

What the Python workers of a command's own Spark are spared: pandas, and looking for garbage.

A worker loads everything anew and lives for one command. PyArrow would have it import pandas, and
PySpark has it look through all objects there are after each task, most of them modules: half a
second, and a sixteenth of one a task.

Workers of a session that is not ours are left alone: they run functions of others afterwards, and
PyArrow, once it has found no pandas, takes pandas' values for plain ones as long as it lives.
"""

from __future__ import annotations

import gc
import os
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from analytics import errors
from analytics.errors import GroupscopeError, InputUnreadableError
from analytics.failed_reads import failed_here
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


_SCHEMA: Final = pa.schema([("number", pa.int64()), ("report", pa.binary())])
_AS_SPARK: Final = "number long, report binary"
_OWN_ERROR: Final = re.compile(rf"^{re.escape(errors.__name__)}\.(\w+): (.*)$", re.MULTILINE)
"""The last line of a traceback of Python's, for an error of ours."""
_FILE: Final = re.compile(r"\[FAILED_READ_FILE\.(\w+)\].*? reading file (\S+?)\.?(?=\s)", re.DOTALL)
"""What Spark says where one of its own readers fails."""
_FAILURES: Final = re.compile(
    r"FileNotFoundException|Permission denied|Input/output error|Stale file handle"
)
_CAUSE: Final = re.compile(r"^Caused by: ([\w.$]+)(?:: (.*))?$", re.MULTILINE)
_OF_NETWORK: Final = re.compile(
    r"(java\.net|java\.nio\.(?:channels|file)|javax\.net|io\.netty|org\.apache\.hadoop|org\.apache\.http"
    r"|software\.amazon|com\.amazonaws|com\.google|com\.azure|com\.microsoft)\."
)
_OF_CONTENTS: Final = re.compile(r"FAILED_TO_UNCOMPRESS|can not read class")
"""What readers of Parquet say in exceptions of `java.io`."""
Result = TypeVar("Result")


def run_tasks(spark: SparkSession, count: int, run: Callable[[int], Result]) -> list[Result]:
    """Run a function for each number below `count`, each in a task of its own.

    Args:
        spark: The session.
        count: How many tasks.
        run: Is sent to workers. What it returns has to be small: it goes through the driver.

    Returns:
        What it returned, of the attempts that succeeded, in the order of numbers.

    Raises:
        GroupscopeError: One of ours, as a task raised it each time that Spark tried it.
    """
    if not count:
        return []

    @on_worker
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                row = {"number": number, "report": pickle.dumps(run(number))}
                yield pa.RecordBatch.from_pylist([row], schema=_SCHEMA)

    numbers = spark.range(0, count, 1, count)
    with own_errors():
        rows = numbers.mapInArrow(task, _AS_SPARK).collect()
    reports: dict[int, Any] = {row["number"]: pickle.loads(row["report"]) for row in rows}  # noqa: S301 - our own tasks'
    return [reports[number] for number in range(count)]


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise what a task raised of ours as what it is: Spark hands on the words of a traceback.

    Raises:
        GroupscopeError: As a task raised it.
        ReadFailedError: Spark could not open or read a file where a task ran.
        InputUnreadableError: Spark could read a file and not make rows of it.
    """
    try:
        yield
    except Exception as error:
        own = _own_error(str(error))
        if own is None:
            raise
        raise own from error


def _own_error(words: str) -> GroupscopeError | None:
    for name, message in reversed(_OWN_ERROR.findall(words)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, GroupscopeError):
            return kind(message)
    unread = _FILE.search(words)
    if unread is None:
        return None
    why = "it is not there" if unread[1] == "FILE_NOT_EXIST" else _failure_in(words)
    if why is None:
        return InputUnreadableError(f"{unread[2]}: cannot be read: it is damaged")
    return failed_here(InputUnreadableError(f"{unread[2]}: cannot be read ({why})"))


def _failure_in(words: str) -> str | None:
    """Return what failed where Spark could not read a file; None where its contents are at fault.

    Whoever reads a format throws exceptions of its own, or of `java.lang`, at what is damaged.
    """
    if failure := _FAILURES.search(words):
        return failure[0]
    causes = _CAUSE.findall(words)
    if not causes:
        return "Spark does not say why"
    network = [name for name, _ in causes if _OF_NETWORK.match(name)]
    root, text = causes[-1]
    if not network and (not root.startswith("java.io.") or _OF_CONTENTS.search(text)):
        return None
    return str((network or [root])[-1]).rpartition(".")[2]
