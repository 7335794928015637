"""Whole groups of tables of any size, some at a time: memory is bounded by what is held together.

Files of a large workspace say of which groups their rows are (`GroupBucket`), so that what was made
of the same groups is read together, wherever it is asked for. Other rows are laid out by a hash of
the group in a temporary folder: a file is read once, whatever the number of parts.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl
from pyarrow import fs

from analytics.engine.part_runs import GroupPart, one_ahead
from analytics.engine.record_layout import lay_out, run_task
from analytics.errors import WorkspaceError
from analytics.locations import open_location
from analytics.replayed.group_rows import (
    GROUP,
    GroupFile,
    GroupFiles,
    GroupRows,
    StoredGroups,
    TaskRows,
    whole,
)
from analytics.replayed.records import RecordGroups
from analytics.tables.buckets import Bucket, BucketFiles, GroupBucket, rows_of_bucket
from analytics.tables.record_keys import spread
from analytics.workspace import reading
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from analytics.engine.part_runs import RunTasks
    from analytics.tables.stored_tables import StoredTables

_WRITTEN_BYTES: Final = 16 << 20
_MOST_PARTS: Final = 400
"""So many parts are made at most of rows that are laid out, or of those of a bucket."""
_SOME_MORE: Final = 2
"""Buckets with so many times the rows are still read as they are."""
_MOST_READS: Final = 8
"""So many times a file is read at most, each time for some of its groups."""
_LAID_OUT: Final = 3
"""Rows that are laid out are read, written and read again."""


GroupSource = GroupRows | GroupFiles | RecordGroups | TaskRows
"""What rows of groups are read of."""


class RowsByTable(Mapping[str, pl.DataFrame]):
    """Rows of some groups by the name of their table; a table is read when it is asked for."""

    def __init__(self, reads: Mapping[str, Callable[[], pl.DataFrame]]) -> None:
        self._reads = reads
        self._held: dict[str, pl.DataFrame] = {}

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self._held:
            self._held[name] = self._reads[name]()
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._reads)

    def __len__(self) -> int:
        return len(self._reads)

    def let_go(self) -> None:
        """Hold nothing any longer: a table is read anew when it is asked for again."""
        self._held.clear()


@contextmanager
def stored_parts(
    tables: StoredTables,
    needed: Mapping[str, Sequence[str]],
    at_once: int,
    beside: str | None = None,
) -> Iterator[Sequence[GroupPart]]:
    """Give tables in parts of whole groups, as `whole_group_parts` does.

    Args:
        tables: As far as groups are wanted.
        needed: By name of a table with groups, the columns that are read, `group_id` among them.
        at_once: How many rows a part has, about.
        beside: As `group_parts` takes it.
    """
    sources = {name: StoredGroups(tables, name, columns) for name, columns in needed.items()}
    with whole_group_parts(sources, at_once, beside) as parts:
        yield parts


@contextmanager
def whole_group_parts(
    sources: Mapping[str, GroupSource],
    at_once: int,
    beside: str | None = None,
    count: int = 0,
    run_tasks: RunTasks | None = None,
) -> Iterator[Sequence[GroupPart]]:
    """Give rows of groups in parts: by files that say whose rows they have; others are laid out.

    Args:
        sources: By name.
        at_once: How many rows a part has, about; one group may have more.
        beside: As `group_parts` takes it.
        count: How many rows those have that are in no files.
        run_tasks: Lays records out, and `TaskRows`, beside; None does it here.

    Yields:
        The parts, as long as what was laid out of them is there; several can be sent to other
        processes.
    """
    in_files = {
        name: source.matched() if isinstance(source, StoredGroups) else source
        for name, source in sources.items()
        if not isinstance(source, GroupRows | RecordGroups | TaskRows)
    }
    sources = {name: in_files.get(name, source) for name, source in sources.items()}
    files = {name: list(source.by_file()) for name, source in in_files.items()}
    rows = count + sum(source.num_rows(files[name]) for name, source in in_files.items())
    if rows <= at_once:
        yield [GroupPart(partial(_rows_of_all, sources))]
        return
    division = _division([each for some in files.values() for each in some], rows, at_once)
    buckets, parts = division.buckets, division.parts
    by_bucket = [_files_of_bucket(files, number, buckets) for number in range(buckets)]
    records = {name: each for name, each in sources.items() if isinstance(each, RecordGroups)}
    of_tasks = {name: each for name, each in sources.items() if isinstance(each, TaskRows)}
    laying = run_tasks if beside is not None and (records or of_tasks) else None
    others = {
        name: _others(source, files, name, buckets)
        for name, source in sources.items()
        if laying is None or name not in (*records, *of_tasks)
    }
    laid_out = {name: each for name, each in others.items() if each is not None}
    empty = {name: whole(each.none_of_them()) for name, each in in_files.items()}
    reads: dict[str, _TableRead | _RecordRead] = {}
    with _folder(beside) if laid_out or laying else nullcontext("") as folder:
        empty |= {name: _laid_out(folder, name, each, parts) for name, each in laid_out.items()}
        if laying is None:
            of_no_group = {name: each for name, each in records.items() if each.group is None}
            reads |= {name: _RecordRead(each) for name, each in of_no_group.items()}
        else:
            if records:
                reads |= _laid_records(records, parts, folder, laying)
            for name, rows_of in of_tasks.items():
                nothing, attempts = rows_of.lay_out(folder, name, parts, laying)
                reads[name] = _TableRead(nothing, folder, attempts=attempts)
        yield [
            _part(
                {
                    name: reads[name]
                    if name in reads
                    else _TableRead(
                        empty[name],
                        folder if name in laid_out else None,
                        by_bucket[number % buckets].get(name),
                        parts > buckets,
                    )
                    for name in sources
                },
                GroupBucket(number, parts),
            )
            for number in range(parts)
        ]


def _rows_of_all(sources: Mapping[str, GroupSource]) -> RowsByTable:
    return RowsByTable({name: partial(whole, each) for name, each in sources.items()})


class _Division(NamedTuple):
    """How rows are divided.

    Attributes:
        too_many: How many more rows a part has than are held together.
        cost: How many rows are read and written.
        buckets: By how many buckets files are read.
        parts: In how many parts all rows are: each is of a bucket, or of a part of one where that
            has many rows.
    """

    too_many: int
    cost: int
    buckets: int
    parts: int


def _division(files: Sequence[GroupFile], rows: int, at_once: int) -> _Division:
    """Return the division that holds no more rows than are wanted, and reads the fewest."""
    labels = {each.groups.parts for each in files if each.groups is not None}
    if not labels:
        parts = parts_for(rows, at_once)
        return _Division(0, rows * _LAID_OUT, parts, parts)
    return min(_divided(files, buckets, rows, at_once) for buckets in labels)


def _divided(files: Sequence[GroupFile], buckets: int, rows: int, at_once: int) -> _Division:
    """Return the division by a number of buckets; files that do not say theirs are laid out."""
    of_bucket: Counter[int] = Counter()
    elsewhere = max(rows - sum(each.rows for each in files), 0)
    for each in files:
        if each.groups is not None and each.groups.is_within(buckets):
            of_bucket[each.groups.part % buckets] += each.rows
        else:
            elsewhere += each.rows
    # Of all rows of the files those may be few that are wanted.
    share = min(rows / max(of_bucket.total() + elsewhere, 1), 1)
    most = int(max(of_bucket.values(), default=0) * share) + elsewhere // buckets
    needed = 1 if most <= _SOME_MORE * at_once else -(-most // at_once)
    reads = min(needed, _MOST_READS, max(_MOST_PARTS // buckets, 1))
    too_many = max(-(-most // reads) - _SOME_MORE * at_once, 0)
    cost = of_bucket.total() * reads + elsewhere * _LAID_OUT
    return _Division(too_many, cost, buckets, buckets * reads)


def _files_of_bucket(
    files: Mapping[str, Sequence[GroupFile]], number: int, buckets: int
) -> dict[str, GroupFiles]:
    """Return by name what reads the files that have rows of a bucket's groups alone."""
    found: dict[str, GroupFiles] = {}
    for name, some in files.items():
        its = [
            each.source
            for each in some
            if each.groups is not None
            and each.groups.is_within(buckets)
            and each.groups.part % buckets == number
        ]
        if its:
            found[name] = its[0].together(its[1:])
    return found


def _others(
    source: GroupSource,
    files: Mapping[str, Sequence[GroupFile]],
    name: str,
    buckets: int,
) -> GroupRows | None:
    """Return the rows of which no file says whose they are; None where there is none."""
    if isinstance(source, GroupRows):
        return source
    if isinstance(source, RecordGroups | TaskRows):
        if source.group is None:
            return None
        return GroupRows(source.pieces(), source.group, source.left_out)
    its = [
        each.source
        for each in files[name]
        if each.groups is None or not each.groups.is_within(buckets)
    ]
    if not its:
        return None
    others = its[0].together(its[1:])
    return GroupRows(others.pieces(), pl.col(GROUP), source.left_out)


def parts_for(rows: int, at_once: int) -> int:
    """Return into how many parts rows are laid out, so that no more are held than are wanted."""
    return min(max(-(-rows // at_once), 1), _MOST_PARTS)


@contextmanager
def parts_of_both(
    states: tuple[StoredTables, StoredTables],
    needed: Mapping[str, Sequence[str]],
    conditions: Mapping[str, pc.Expression],
    at_once: int,
    beside: str | None = None,
) -> Iterator[Sequence[GroupPart]]:
    """Give rows of two states of the same groups, in parts, in memory where there are few.

    Args:
        states: The first and the second.
        needed: By name of a table with groups, the columns that are read of both.
        conditions: By name, which of its rows are read where not all are.
        at_once: How many rows a part has, about.
        beside: As `group_parts` takes it.

    Yields:
        What gives the rows of some groups, all of each in both states, as ``from_<name>`` and
        ``to_<name>``; as long as their folder is there.
    """
    of_state = dict(zip(("from", "to"), states, strict=True))
    sources = {
        f"{word}_{name}": StoredGroups(tables, name, columns, conditions.get(name))
        for word, tables in of_state.items()
        for name, columns in needed.items()
    }
    with whole_group_parts(sources, at_once, beside) as parts:
        yield parts


# Rows that are laid out.


@contextmanager
def group_parts(
    tables: Mapping[str, GroupRows], parts: int, beside: str | None = None
) -> Iterator[Sequence[GroupPart]]:
    """Give rows that are alike, in whatever `group` is, in parts; in memory where there is one.

    Args:
        tables: By name. They are read when this is entered, or of one part when that is asked for.
        parts: How many.
        beside: The folder in which rows are laid out where other machines read them, too; None
            lays them out on this one.

    Yields:
        The parts, as long as their folder is there; several can be sent to other processes.
    """
    if parts == 1:
        yield [GroupPart(partial(_rows_of_all, tables))]
        return
    with _folder(beside) as folder:
        empty = {name: _laid_out(folder, name, rows, parts) for name, rows in tables.items()}
        reads = {name: _TableRead(nothing, folder) for name, nothing in empty.items()}
        # What rows are alike in need not be their group: nobody shall take it for that.
        yield [replace(_part(reads, GroupBucket(n, parts)), groups=None) for n in range(parts)]


@contextmanager
def _folder(beside: str | None) -> Iterator[str]:
    """Hand over a folder of its own that is removed at the end."""
    if beside is None:
        with TemporaryDirectory(prefix="groupscope-", ignore_cleanup_errors=True) as folder:
            yield folder
        return
    folder = f"{beside}/groups-{uuid.uuid4().hex}"
    filesystem, path = open_location(folder)
    filesystem.create_dir(path, recursive=True)
    try:
        yield folder
    finally:
        filesystem.delete_dir(path)


def _laid_out(folder: str, name: str, rows: GroupRows, parts: int) -> pl.DataFrame:
    """Lay out a table, and return it without rows."""
    number = spread(rows.group) % parts
    with BucketFiles(folder, name) as files:
        for piece in one_ahead(_larger(rows.pieces)):
            laid = piece.drop(rows.left_out)
            files.add(laid, pl.lit(piece.select(number).to_series()))
    return laid.clear()


def _larger(pieces: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield rows many together, at least once: each write has its cost in every part."""
    held: list[pl.DataFrame] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += int(piece.estimated_size())
        if size >= _WRITTEN_BYTES:
            yield pl.concat(held)
            held, size = [piece.clear()], 0
    yield pl.concat(held)


@dataclass(frozen=True)
class _TableRead:
    """How the rows of a table in a part are read.

    Attributes:
        nothing: The table without rows.
        folder: Where rows were laid out; None where none were.
        files: Those that have rows of the part; None where there are none.
        has_others: Whether they have rows of other parts, too.
        attempts: What names of files in the folder end with that count; None counts all.
    """

    nothing: pl.DataFrame
    folder: str | None
    files: GroupFiles | None = None
    has_others: bool = False
    attempts: frozenset[str] | None = None

    def rows(self, name: str, groups: GroupBucket) -> pl.DataFrame:
        """Return the rows of some groups."""
        found = [self.nothing]
        if self.folder is not None:
            _check_folder(self.folder)
            found += rows_of_bucket(self.folder, groups.part, name, self.attempts)
        if self.files is not None:
            wanted = [groups.has(pl.col(GROUP))] if self.has_others else []
            left_out = self.files.left_out
            found += [each.filter(*wanted).drop(left_out) for each in self.files.pieces()]
        return pl.concat(found)


_Reads = Mapping[str, "_TableRead | _RecordRead"]


@dataclass(frozen=True)
class _RecordRead:
    """How records of a part are read.

    Attributes:
        source: What of them is.
        place: The folder in which they were laid out; None reads all, for each part.
        attempts: What names of files there end with that count.
    """

    source: RecordGroups
    place: str | None = None
    attempts: frozenset[str] = frozenset()

    def rows(self, _: str, groups: GroupBucket) -> pl.DataFrame:
        """Return the records of some groups."""
        if self.place is None:
            return whole(self.source)
        _check_folder(self.place)
        laid = rows_of_bucket(self.place, groups.part, self.source.name, self.attempts)
        return self.source.of_decoded(laid).drop(self.source.left_out)


def _laid_records(
    sources: Mapping[str, RecordGroups], parts: int, folder: str, run_tasks: RunTasks
) -> dict[str, _RecordRead]:
    """Lay out the records of all sources, which are of the same `Records`, in tasks."""
    into = [Bucket(CONSUMER_OFFSETS, is_rest=True, part=part, parts=parts) for part in range(parts)]

    def run(place: str, count: int) -> Sequence[Any]:
        return run_tasks(count, partial(run_task, place))

    cut = next(iter(sources.values())).records.cut
    of_groups = {each.name for each in sources.values() if each.group is not None}
    laid = lay_out(run, cut, into, folder, of_groups)
    return {name: _RecordRead(each, laid.place, laid.attempts) for name, each in sources.items()}


def _check_folder(folder: str) -> None:
    """Raise where rows were laid out and are gone: a bucket of which there are none has no files.

    Raises:
        WorkspaceError: The folder is not there.
    """
    filesystem, path = open_location(folder)
    with reading(path):
        if filesystem.get_file_info(path).type is fs.FileType.NotFound:
            raise WorkspaceError(f"{folder} is gone: parts are read while it is there")


def _part(reads: _Reads, groups: GroupBucket) -> GroupPart:
    return GroupPart(partial(_rows_of_part, reads, groups), groups)


def _rows_of_part(reads: _Reads, groups: GroupBucket) -> RowsByTable:
    return RowsByTable({name: partial(each.rows, name, groups) for name, each in reads.items()})
