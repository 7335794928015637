"""INPUTs of the dialect: log directories of data topics, and files of JSON Lines.

Several copies of a data partition become one log: what all that could have it agree on.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from analytics.decode.selection import names_wanted
from analytics.dump.copies.plan import next_offset
from analytics.dump.files.inputs import is_log_directory, recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.dump.files.model import MAX_OFFSET, Note, PartitionCopy
from analytics.dump.files.segments import holds_partition, partition_of
from analytics.dump.files.storage import Entry, expand_glob, has_glob, read_small, storage_of
from analytics.errors import InputNotRecognizedError
from analytics.locations import base_name, join, local_path, parent
from analytics.seeds.checkpoint_delta.control_segments import (
    IDS,
    RECORDS,
    TABLES,
    ChainLog,
    Lost,
    read_copy,
)
from schemas.catalog import CHECKPOINT_DELTA, dialect_types
from schemas.fields import INTEGER_BOUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from schemas.model import Field

# JSON Lines ``{offset, type, value}`` to checkpoints and deltas.
#
# ``type`` is 5 or 6, or the name of the control record; ``value`` has the fields as the seed
# prints them or in camel case. ``topic``, ``partition`` and ``topicId`` may stand in each line;
# without the first two the file's folder is named ``<topic>-<partition>``. A state may be a
# number, or a number with its name behind it, as the seed prints it.

SUFFIXES: Final = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
_HEAD: Final = 1 << 20
_GZIP: Final = 31
"""Zlib's number for "a gzip header, the largest window"."""
_NAMES: Final = {
    name: kind
    for kind, (id_, table) in enumerate(zip(IDS, TABLES, strict=True))
    for name in (id_, str(id_), table.upper())
}


def read_json_lines(path: str, owner: tuple[str, int] | None = None) -> list[ChainLog]:
    """Read a file: a log for each partition that it names.

    What cannot be read is lost, alone where its place is told, else as if it were anywhere.

    Args:
        path: The file.
        owner: Whose the lines are that do not say so; else the folder's name tells.

    Raises:
        InputNotRecognizedError: No line says whose it is and where.
        InputUnreadableError: The system refuses.
    """
    owner = owner or partition_of(base_name(parent(path)))
    found: dict[tuple[str, int], _Lines] = defaultdict(_Lines)
    nowhere: list[Lost] = []
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            said = _object(line)
            place, offset = _place(said, owner), _offset(said)
        except _UnreadableError as error:
            nowhere.append(Lost(0, why=f"{where}: {error}"))
            continue
        found[place].take(said, offset, where)
    if not found:
        why = nowhere[0].why if nowhere else f"{path}: has no line"
        raise InputNotRecognizedError(
            f"{why} (--dialect {CHECKPOINT_DELTA} reads JSON Lines with offset, type and value; "
            f"topic and partition stand in each line or in the folder's name, <topic>-<partition>)"
        )
    return [each.log(place, nowhere) for place, each in sorted(found.items())]


def begins_so(path: str) -> bool:
    """Return whether a file's first line is a control record."""
    head = read_small(path, _HEAD)
    if path.endswith(".gz"):
        try:
            head = zlib.decompressobj(_GZIP).decompress(head, _HEAD)
        except zlib.error:
            return False
    try:
        said = json.loads(head.lstrip().partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and {"offset", "type"} <= said.keys()


@dataclass
class _Lines:
    """The lines of one partition."""

    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)
    topic_id: str | None = None

    def take(self, line: Mapping[str, Any], offset: int, where: str) -> None:
        """Take a line."""
        if isinstance(line.get("topicId"), str):
            self.topic_id = line["topicId"]
        try:
            row = _record(line)
        except _UnreadableError as error:
            self._lose(offset, f"the record at offset {offset} cannot be read: {where}: {error}")
            return
        if row is not None and self.rows.setdefault(offset, row) != row:
            self._lose(offset, f"lines differ about offset {offset}")

    def _lose(self, offset: int, why: str) -> None:
        self.lost.append(Lost(offset, offset + 1, why))

    def log(self, place: tuple[str, int], nowhere: list[Lost]) -> ChainLog:
        """Return the log; what is lost has no record."""
        gone = {each.first_offset for each in self.lost}
        rows = [{"offset": at, **row} for at, row in self.rows.items() if at not in gone]
        table = pa.Table.from_pylist(rows, RECORDS).sort_by("offset")
        return ChainLog(*place, table, self.topic_id, lost=tuple(sorted([*self.lost, *nowhere])))


class _UnreadableError(Exception):
    """A line is no record of the dialect, though it says so."""


def _lines(path: str) -> Iterable[bytes]:
    with storage_of(path).open(path) as file:
        content = file.read()
    return (gzip.decompress(content) if path.endswith(".gz") else content).splitlines()


def _object(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _UnreadableError(f"is not JSON: {error}") from error
    if not isinstance(said, dict):
        raise _UnreadableError("is not an object with offset, type and value")
    return said


def _place(line: Mapping[str, Any], owner: tuple[str, int] | None) -> tuple[str, int]:
    topic, partition = line.get("topic"), line.get("partition")
    if topic is None and partition is None and owner is not None:
        return owner
    if isinstance(topic, str) and type(partition) is int and 0 <= partition < 2**31:
        return topic, partition
    raise _UnreadableError("nothing tells of which topic and partition it is")


def _offset(line: Mapping[str, Any]) -> int:
    offset = line.get("offset")
    if type(offset) is not int or not 0 <= offset < 2**63 - 1:
        raise _UnreadableError(f"its offset is {offset!r}")
    return offset


def _record(line: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a row of `RECORDS` but for its offset; None of other control records."""
    kind = line.get("type")
    if type(kind) is int and kind not in IDS:
        return None
    if not isinstance(kind, int | str) or str(kind) not in _NAMES:
        raise _UnreadableError(f"its type is {kind!r}")
    number = _NAMES[str(kind)]
    value = line.get("value")
    if not isinstance(value, dict):
        raise _UnreadableError("its value is no object")
    fields = dialect_types(CHECKPOINT_DELTA)[TABLES[number]].value.fields
    return {"kind": number, **_struct(value, fields)}


def _struct(value: object, fields: Iterable[Field]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _UnreadableError("a state is no object")
    given = {name[:1].lower() + name[1:]: each for name, each in value.items()}
    found = {}
    for each in fields:
        if each.name not in given:
            raise _UnreadableError(f"it has no {each.name}")
        found[each.column] = _value(given[each.name], each)
    return found


def _value(value: object, kind: Field) -> object:
    if kind.is_array:
        if not isinstance(value, list):
            raise _UnreadableError(f"its {kind.name} are no list")
        return [_struct(each, kind.fields) for each in value]
    if kind.type == "string":
        if isinstance(value, str):
            return value
    else:
        # The seed writes a state as "2 (Acknowledged)".
        if kind.name == "state" and isinstance(value, str):
            number = value.partition(" ")[0]
            value = int(number) if number.isdecimal() else value
        least, most = INTEGER_BOUNDS[kind.type]
        if type(value) is int and least <= value <= most:
            return value
    raise _UnreadableError(f"its {kind.name} is {value!r}, not of type {kind.type}")


LOOKED_FOR: Final = (
    f"--dialect {CHECKPOINT_DELTA} reads control records of data topics (log directories, "
    "partition directories, segments) and JSON Lines with offset, type and value"
)

_Range = tuple[int, int]


@dataclass(frozen=True)
class ChainInput:
    """All that was given of one data partition.

    Attributes:
        topic: The topic's name.
        partition: The partition's number.
        copies: Its directories.
        logs: What was read of it already, from JSON Lines.
    """

    topic: str
    partition: int
    copies: tuple[PartitionCopy, ...] = ()
    logs: tuple[ChainLog, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of segments that are read."""
        return sum(each.size for each in self.copies)

    def read(self) -> ChainLog:
        """Read everything there is of it."""
        return _joined([*self.logs, *(read_copy(each) for each in self.copies)])


def chain_inputs(
    arguments: Sequence[str], topic_partition: str | None = None, topics: Sequence[str] = ()
) -> list[ChainInput]:
    """Tell what is given of which data partition; segments are not read yet.

    Args:
        arguments: Paths, globs, URIs; log directories also as ``NAME=PATH``.
        topic_partition: Whose files are that do not say so.
        topics: Names, globs or patterns of the topics that are wanted; empty is all.

    Raises:
        InputNotRecognizedError: There is nothing that could hold the dialect's records.
        InputUnreadableError: The system refuses.
    """
    lines, others = _told_apart(arguments)
    copies: dict[tuple[str, int], list[PartitionCopy]] = defaultdict(list)
    logs: dict[tuple[str, int], list[ChainLog]] = defaultdict(list)
    if others:
        found = recognize(others, topic_partition)
        if found.raw_rows or found.workspaces:
            wrong = [each.argument for each in found.raw_rows] + list(found.workspaces)
            raise InputNotRecognizedError(f"{wrong[0]}: {LOOKED_FOR}")
        notes: list[Note] = []
        for copy in read_copies(found.disks, next_offset, notes):
            for each in copy.data_partitions:
                copies[each.key].append(each)
    owner = None if topic_partition is None else partition_of(topic_partition)
    for path in lines:
        for log in read_json_lines(path, owner):
            logs[log.topic, log.partition].append(log)
    places = sorted({*copies, *logs})
    if not places:
        raise InputNotRecognizedError(
            f"{arguments[0]}: there is no data partition here. {LOOKED_FOR}"
        )
    wanted = set(names_wanted([topic for topic, _ in places], topics))
    return [
        ChainInput(*each, tuple(copies[each]), tuple(logs[each]))
        for each in places
        if each[0] in wanted
    ]


def _told_apart(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return files of JSON Lines, and what else was given."""
    lines: list[str] = []
    others: list[str] = []
    for text in arguments:
        path = local_path(text)
        is_glob = has_glob(path) and storage_of(path).entry(path) is None
        for each in (expand_glob(path) or [path]) if is_glob else [path]:
            found = _json_lines_at(each)
            lines += found
            others += [] if found else [text]
    return list(dict.fromkeys(lines)), list(dict.fromkeys(others))


def _json_lines_at(path: str) -> list[str]:
    """Return the files of JSON Lines that a path is, or that lie there; none of a log directory."""
    entry = storage_of(path).entry(path)
    if entry is None:
        return []
    if not entry.is_folder:
        return [path] if path.endswith(SUFFIXES) else []
    entries = storage_of(path).list(path)
    if holds_partition(entries) or is_log_directory(path, entries):
        return []
    found = _look_so(path, entries)
    for each in entries:
        if each.is_folder and partition_of(each.name):
            inner = join(path, each.name)
            found += _look_so(inner, storage_of(inner).list(inner))
    return sorted(found)


def _look_so(folder: str, entries: Iterable[Entry]) -> list[str]:
    """Return the files that are lines of control records: a folder may hold others."""
    paths = [join(folder, each.name) for each in entries if not (each.is_folder or each.is_special)]
    return [path for path in paths if path.endswith(SUFFIXES) and begins_so(path)]


def _joined(copies: Sequence[ChainLog]) -> ChainLog:
    """Join the copies of one partition; at least one.

    A copy fills what another lacks. Where one has a record that another one should have and has
    not, or has otherwise, neither is believed: which line survived cannot be told from control
    records alone.
    """
    return reduce(_of_two, copies)


def _of_two(one: ChainLog, other: ChainLog) -> ChainLog:
    differs = _differing(one, other)
    both = pa.concat_tables([one.records, other.records])
    offset, first = np.unique(both["offset"].to_numpy(), return_index=True)
    kept = ~np.isin(offset, differs)
    ends = [each.log_end_offset for each in (one, other) if each.log_end_offset is not None]
    lost = [
        *_unfilled(one, other),
        *_unfilled(other, one),
        *(Lost(at, at + 1, f"copies of the log differ at offset {at}") for at in differs.tolist()),
    ]
    return replace(
        one,
        records=both.take(pa.array(first[kept])),
        topic_id=one.topic_id or other.topic_id,
        log_start_offset=max(one.log_start_offset, other.log_start_offset),
        log_end_offset=max(ends, default=None),
        lost=tuple(sorted(set(lost))),
    )


def _differing(one: ChainLog, other: ChainLog) -> NDArray[np.int64]:
    """Return the offsets at which two copies contradict each other."""
    offsets = [each.records["offset"].to_numpy() for each in (one, other)]
    shared, here, there = np.intersect1d(
        offsets[0], offsets[1], assume_unique=True, return_indices=True
    )
    mine, theirs = one.records.take(pa.array(here)), other.records.take(pa.array(there))
    differs: list[int] = []
    if not mine.equals(theirs):
        rows = zip(shared.tolist(), mine.to_pylist(), theirs.to_pylist(), strict=True)
        differs = [offset for offset, left, right in rows if left != right]
    alone = [
        offset[_covers(copy, offset) & ~np.isin(offset, shared)]
        for offset, copy in zip(offsets, (other, one), strict=True)
    ]
    return np.unique(np.concatenate([np.array(differs, np.int64), *alone]))


def _covers(copy: ChainLog, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether a copy would hold a record at each of the offsets."""
    covered = np.zeros(offsets.size, np.bool_)
    for first, end in _covered(copy):
        covered |= (offsets >= first) & (offsets < end)
    return covered


def _covered(copy: ChainLog) -> list[_Range]:
    """Return the stretches of offsets of which a copy shows everything."""
    end = MAX_OFFSET if copy.log_end_offset is None else copy.log_end_offset
    lost = [(each.first_offset, each.end_offset) for each in copy.lost]
    return _without((copy.log_start_offset, end), lost)


def _unfilled(copy: ChainLog, other: ChainLog) -> list[Lost]:
    """Return what a copy lacks and the other one does not show either."""
    shown = _covered(other)
    return [
        Lost(first, end, each.why)
        for each in copy.lost
        for first, end in _without((each.first_offset, each.end_offset), shown)
    ]


def _without(whole: _Range, parts: Iterable[_Range]) -> list[_Range]:
    """Return what is left of a stretch of offsets without some parts."""
    left, at = [], whole[0]
    for first, end in sorted(parts):
        if first > at:
            left.append((at, min(first, whole[1])))
        at = max(at, end)
        if at >= whole[1]:
            break
    if at < whole[1]:
        left.append((at, whole[1]))
    return [each for each in left if each[0] < each[1]]
