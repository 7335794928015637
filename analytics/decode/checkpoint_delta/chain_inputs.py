"""INPUTs of the dialect: log directories of data topics, and files of JSON Lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from analytics.decode.checkpoint_delta.chain_records import ChainLog
from analytics.decode.checkpoint_delta.control_segments import read_copy
from analytics.decode.checkpoint_delta.joined_copies import joined
from analytics.decode.checkpoint_delta.json_lines import SUFFIXES, begins_so, read_json_lines
from analytics.decode.selection import names_wanted
from analytics.dump.copies.plan import next_offset
from analytics.dump.files.folders import is_log_directory
from analytics.dump.files.inputs import recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.dump.files.model import Note, PartitionCopy
from analytics.dump.files.segments import holds_partition, partition_of
from analytics.dump.files.storage import Entry, expand_glob, has_glob, join, local_path, storage_of
from analytics.errors import InputNotRecognizedError
from schemas.dialects import CHECKPOINT_DELTA

LOOKED_FOR: Final = (
    f"--dialect {CHECKPOINT_DELTA} reads control records of data topics (log directories, "
    "partition directories, segments) and JSON Lines with offset, type and value"
)


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
        return joined([*self.logs, *(read_copy(each) for each in self.copies)])


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
