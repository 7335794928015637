"""Answers of whole groups, made part by part: here, or in tasks on Spark.

A part gives rows of tables, which nobody else has, and sums, which are put together. Where there
are several parts their rows go into files: no process holds what all of them give.

Pieces of tables, of which the next is made while one is looked at.
"""

from __future__ import annotations

import ctypes
import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final, NamedTuple, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.contracts import arrow_rows, polars_rows, table_of_frame
from analytics.locations import make_folder, open_location, read_staged
from analytics.tables.buckets import GroupBucket
from analytics.tables.parted_table import Order, PartedTable, by_key
from schemas import tables

# Values that are too large to be sent along with tasks, or back: files beside the tables.


def put_value(staging: str, value: object) -> str:
    """Write a value beside the tables, where all machines see it."""
    place = f"{staging}/between-{uuid.uuid4().hex}"
    put_value_at(place, value)
    return place


def put_value_at(place: str, value: object) -> None:
    """Write a value at a place where nothing is."""
    filesystem, path = open_location(place)
    make_folder(filesystem, path.rpartition("/")[0])
    with filesystem.open_output_stream(path) as stream:
        stream.write(pickle.dumps(value))


def get_value(place: str) -> Any:  # noqa: ANN401 - whatever was put there
    """Read a value that `put_value` wrote.

    Raises:
        ReadFailedError: It cannot be read here.
    """
    return pickle.loads(read_staged(place))  # noqa: S301 - a task of ours wrote it


# Memory that nobody holds, and that is not given back by itself.


def release_freed_memory() -> None:
    """Give back what Arrow and the C library keep of freed memory.

    The C library keeps what lies below anything that is still used: of what numpy and the footers
    of files took, as much again as is held.
    """
    pa.default_memory_pool().release_unused()
    if (trim := _malloc_trim()) is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """Return the function of glibc; other C libraries have none."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return trim


_THREADS: Final = 2
"""Much of a part is work of one core."""

_ROW_GROUP: Final = 50_000
_ROW_GROUP_BYTES: Final = 1 << 20
"""What is read of a file at once, where a reader has all files of a table open to merge them."""


@dataclass(frozen=True)
class GroupPart:
    """What is read of some whole groups.

    Attributes:
        read: Gives by name the rows of some groups, all of each.
        groups: Which groups these are: files of what is made of them say it, so that these rows are
            found again. None is all groups, or groups that no number tells.
    """

    read: Callable[[], Mapping[str, pl.DataFrame]]
    groups: GroupBucket | None = None

    def then(self, make: Callable[..., Mapping[str, pl.DataFrame]], *others: Any) -> GroupPart:  # noqa: ANN401
        """Return what gives what a function makes of the rows, which it takes first."""
        return replace(self, read=partial(_then, self.read, make, others))


def _then(
    read: Callable[[], Mapping[str, pl.DataFrame]],
    make: Callable[..., Mapping[str, pl.DataFrame]],
    others: tuple[Any, ...],
) -> Mapping[str, pl.DataFrame]:
    return make(read(), *others)


class PartAnswer(NamedTuple):
    """What is made of some whole groups.

    Attributes:
        tables: Rows by the name of a table, each in its order; of contracts, and others.
        sums: What is put together with that of other parts. It goes through the driver: it does not
            grow with groups.
    """

    tables: Mapping[str, pl.DataFrame]
    sums: Any = None


MakePart = Callable[[Mapping[str, pl.DataFrame]], PartAnswer]
"""Makes the answer of a part of what is read of it; for Spark a function of a module, or a partial
of one."""


class PartAnswers(NamedTuple):
    """What was made of all parts.

    Attributes:
        tables: By name.
        sums: Those of each part, in the order of parts.
    """

    tables: Mapping[str, PartedTable]
    sums: Sequence[Any]


class _PartResult(NamedTuple):
    rows: Mapping[str, pa.Table | str]
    schemas: Mapping[str, pa.Schema]
    sums: Any


RunTasks = Callable[[int, Callable[[int], Any]], Sequence[Any]]
"""Takes how many numbers, and a function that other processes can be sent."""


def in_threads(count: int, run: Callable[[int], Any]) -> list[Any]:
    """Run a function for each number below a count, in this process (`RunTasks`)."""
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(run, range(count)))


@dataclass(frozen=True)
class PartRunner:
    """Where answers are made.

    Attributes:
        folder: The folder for rows of several parts, which all machines see; None holds them.
        run_tasks: Runs a function for each number below a count, each in a task of its own; None
            makes all parts here.
    """

    folder: str | None = None
    run_tasks: RunTasks | None = None

    def __reduce__(self) -> tuple[type[PartRunner], tuple[()]]:
        """A task that is sent a state makes all of what it is asked itself."""
        return PartRunner, ()

    def run(
        self, make: MakePart, parts: Sequence[GroupPart], orders: Mapping[str, Order] | None = None
    ) -> PartAnswers:
        """Make the answers of all parts.

        Args:
            make: Makes one.
            parts: At least one.
            orders: By name the order of tables, where it is not that of the contract's key.
        """
        folder = self.folder if len(parts) > 1 else None
        if folder is not None:
            # What laying out has left: the next answer shall not stand on top of it.
            release_freed_memory()
        work = _PartWork(make, parts, folder)
        if folder is not None and self.run_tasks is not None:
            results = self.run_tasks(len(parts), partial(_run_part, put_value(folder, work)))
        elif len(parts) == 1:
            results = [work.run(0)]
        else:
            results = in_threads(len(parts), work.run)
        wanted = orders or {}
        found = {
            name: PartedTable(
                schema,
                [each.rows[name] for each in results if name in each.rows],
                wanted[name] if name in wanted else by_key(name),
            )
            for name, schema in results[0].schemas.items()
        }
        return PartAnswers(found, [each.sums for each in results])


@dataclass(frozen=True)
class _PartWork:
    make: MakePart
    parts: Sequence[GroupPart]
    folder: str | None

    def run(self, number: int) -> _PartResult:
        """Make the answer of one part."""
        part = self.parts[number]
        answer = self.make(part.read())
        found = {
            name: table_of_frame(name, rows) if name in tables() else arrow_rows(rows)
            for name, rows in answer.tables.items()
        }
        schemas = {name: rows.schema for name, rows in found.items()}
        if self.folder is None:
            return _PartResult(found, schemas, answer.sums)
        written = {
            name: _write(self.folder, name, rows, part.groups)
            for name, rows in found.items()
            if rows.num_rows
        }
        return _PartResult(written, schemas, answer.sums)


def _run_part(place: str, number: int) -> _PartResult:
    work: _PartWork = get_value(place)
    return work.run(number)


def _write(folder: str, name: str, rows: pa.Table, groups: GroupBucket | None) -> str:
    """Write rows of a part; return where. Each attempt has a file of its own."""
    location = f"{folder}/{name}-{uuid.uuid4().hex}.parquet"
    filesystem, path = open_location(location)
    make_folder(filesystem, path.rpartition("/")[0])
    long = max(_ROW_GROUP_BYTES * rows.num_rows // max(rows.nbytes, 1), 1)
    with pq.ParquetWriter(path, rows.schema, filesystem=filesystem) as file:
        file.write_table(rows, row_group_size=min(long, _ROW_GROUP))
        if groups is not None and "group_id" in rows.column_names:
            file.add_key_value_metadata(groups.label_of(polars_rows(rows.select(["group_id"]))))
    return location


Piece = TypeVar("Piece")

_NO_MORE: Final = object()


def one_ahead(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield pieces in their order; one more than is taken is made meanwhile, in a thread.

    What making them raises is raised where that piece would come. Who takes no more of them, and
    closes the iterator, waits for the one that is being made.
    """
    rest = iter(pieces)
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, rest, _NO_MORE)
        while (piece := coming.result()) is not _NO_MORE:
            coming = maker.submit(next, rest, _NO_MORE)
            yield piece  # type: ignore[misc]
