"""What an INPUT is: recognised by what lies there, and said.

The forms are those of the command line's contract; an INPUT that is none of them is refused with
what was looked for and what was found.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.dump.files.segments import (
    META_PROPERTIES,
    UNFINISHED_SNAPSHOT,
    dying_state,
    holds_partition,
    is_segment_name,
    parse_properties,
    partition_of,
)
from analytics.dump.files.storage import Entry, expand_glob, has_glob, read_small, storage_of
from analytics.dump.records.raw_rows_files import (
    RawRows,
    rows_in_file,
    rows_in_folder,
    rows_in_table,
)
from analytics.errors import InputNotRecognizedError, InputUnreadableError
from analytics.locations import base_name, join, local_path, parent
from schemas import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# What a folder is: a log directory, a folder of brokers or of one broker's disks, a workspace.

MANIFEST = "manifest.json"
WORKSPACE_MARKER = ".groupscope"

_MOST_NAMED = 8
_LARGEST_MANIFEST = 256 << 20


@dataclass(frozen=True)
class PartitionSource:
    """One partition's directory, or one file of it (``file``; None = all)."""

    directory: str
    topic: str
    partition: int
    file: str | None = None


@dataclass(frozen=True)
class DiskSource:
    """One log directory: all of it (``partitions`` None), or some partitions.

    Attributes:
        path: The log directory; where checkpoints are looked for.
        name: The copy's name where one was given (``NAME=PATH``, or several disks of a folder).
        partitions: Those named; None = all that lie there.
    """

    path: str
    name: str | None = None
    partitions: tuple[PartitionSource, ...] | None = None


def is_log_directory(path: str, entries: Iterable[Entry]) -> bool:
    """Whether a folder is a broker's log directory: it holds partitions, or ``meta.properties``."""
    folders = []
    listed = list(entries)
    if is_unfinished_snapshot(listed):
        return False
    for entry in listed:
        if not entry.is_folder and entry.name == META_PROPERTIES:
            return True
        if entry.is_folder and partition_of(entry.name):
            folders.append(join(path, entry.name))
    return any(holds_partition(storage_of(folder).list(folder)) for folder in folders)


def is_unfinished_snapshot(entries: Iterable[Entry]) -> bool:
    """Whether a snapshot is being written into a folder, or never came to its end."""
    return any(entry.name == UNFINISHED_SNAPSHOT for entry in entries)


def log_directories_in(
    path: str, entries: Iterable[Entry], name: str | None, descriptions: list[str]
) -> list[DiskSource]:
    """Return the log directories among a folder's sub-folders, those of nested disks included."""
    disks: list[DiskSource] = []
    others = []
    for entry in entries:
        inner = join(path, entry.name)
        if not entry.is_folder:
            continue
        listed = storage_of(inner).list(inner)
        if is_log_directory(inner, listed):
            disks.append(DiskSource(inner, name))
        elif nested := _disks_of_one_broker(inner, listed):
            disks += [DiskSource(disk, name or safe_name(entry.name)) for disk in nested]
        else:
            others.append(inner)
    if disks:
        descriptions += [f"{other}: not a log directory; not read" for other in others]
    return disks


def _disks_of_one_broker(path: str, entries: Iterable[Entry]) -> list[str]:
    """Return the log directories in a folder that holds a broker's several disks, else none."""
    inner = [join(path, entry.name) for entry in entries if entry.is_folder]
    disks = [disk for disk in inner if is_log_directory(disk, storage_of(disk).list(disk))]
    nodes = {_node(disk) for disk in disks}
    several = len(disks) > 1 and len(nodes) == 1 and None not in nodes
    return disks if several else []


def _node(disk: str) -> tuple[str | None, str | None] | None:
    path = join(disk, META_PROPERTIES)
    if storage_of(path).entry(path) is None:
        return None
    properties = parse_properties(read_small(path, 1 << 16).decode("utf-8", errors="replace"))
    return properties.get("cluster.id"), properties.get("node.id", properties.get("broker.id"))


def is_workspace(argument: str, path: str, entries: Iterable[Entry]) -> bool:
    """Whether a folder is a finished workspace of ours.

    Raises:
        InputUnreadableError: It is one whose run never finished, or whose manifest is damaged.
    """
    names = {entry.name for entry in entries if not (entry.is_folder or entry.is_special)}
    if MANIFEST in names:
        try:
            manifest = json.loads(read_small(join(path, MANIFEST), _LARGEST_MANIFEST))
        except (ValueError, RecursionError):
            manifest = None
        is_ours = isinstance(manifest, dict) and "groupscope_version" in manifest
        if not is_ours and WORKSPACE_MARKER in names:
            raise InputUnreadableError(
                f"{join(path, MANIFEST)} cannot be read: it is damaged (make the workspace again)"
            )
        return is_ours
    if WORKSPACE_MARKER in names:
        raise InputUnreadableError(
            f"{argument}: a workspace without {MANIFEST}: the run that wrote it never finished. "
            f"Run it again with the same --out"
        )
    return False


def safe_name(name: str) -> str:
    """Return a name that can stand in a path of results and in SQL."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100]
    return "copy" if safe.strip(".") == "" else safe


def what_was_found(path: str, entries: list[Entry]) -> str:
    """Return sentences for a folder that is nothing known: what lies in it, where to look."""
    names = [entry.name + ("/" if entry.is_folder else "") for entry in entries]
    shown = ", ".join(names[:_MOST_NAMED]) + (
        f" and {len(names) - _MOST_NAMED} more" * (len(names) > _MOST_NAMED)
    )
    hint = _deeper(path, entries)
    return f"Found {shown or 'an empty folder'}.{hint}"


def _deeper(path: str, entries: list[Entry]) -> str:
    """Return a hint where the log directories lie one folder further down."""
    for entry in entries:
        inner = join(path, entry.name)
        if entry.is_folder and log_directories_in(inner, storage_of(inner).list(inner), None, []):
            return f" Log directories lie in {inner}: name that one."
    return ""


_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")

FROM_TABLE = "--from-table="
"""How an INPUT begins that names a table: as the option that gives it."""

LOOKED_FOR = (
    "a segment (00000000000000000000.log in a directory named <topic>-<partition>, or with "
    "--topic-partition), a partition directory, a broker's log directory, a folder of those, "
    "archived rows (Parquet, JSON Lines or Avro), or a workspace"
)


@dataclass(frozen=True)
class Inputs:
    """Everything that was given, told apart.

    Attributes:
        arguments: The INPUTs as they were written.
        disks: Log directories.
        raw_rows: Archived rows.
        workspaces: Folders with a finished manifest of ours.
        descriptions: One sentence for each INPUT: what it was taken for.
    """

    arguments: tuple[str, ...]
    disks: tuple[DiskSource, ...] = ()
    raw_rows: tuple[RawRows, ...] = ()
    workspaces: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()


@dataclass
class _Recognized:
    disks: list[DiskSource]
    raw_rows: list[RawRows]
    workspaces: list[str]
    descriptions: list[str]


def recognize(arguments: Sequence[str], topic_partition: str | None = None) -> Inputs:
    """Tell what each INPUT is.

    Args:
        arguments: Paths, globs, URIs, each possibly as ``NAME=PATH``; tables as `FROM_TABLE` and
            their names.
        topic_partition: Whose a segment or directory is that its name does not tell.

    Raises:
        InputNotRecognizedError: One is none of the known forms, or nothing is there.
        InputUnreadableError: The system refuses to read it.
    """
    owner = _owner(topic_partition)
    found = _Recognized([], [], [], [])
    for text in arguments:
        if text.startswith(FROM_TABLE):
            found.raw_rows.append(rows_in_table(text, text.removeprefix(FROM_TABLE), owner))
            found.descriptions.append(f"{text}: archived rows (a table){_of(found.raw_rows[-1])}")
            continue
        name, path = _split_name(text)
        if has_glob(path) and storage_of(path).entry(path) is None:
            _recognize_matches(text, path, name, owner, found)
        else:
            _recognize_one(text, path, name, owner, found)
    return Inputs(
        tuple(arguments),
        tuple(_merged(found.disks)),
        tuple(dict.fromkeys(found.raw_rows)),
        tuple(dict.fromkeys(found.workspaces)),
        tuple(found.descriptions),
    )


def _owner(topic_partition: str | None) -> tuple[str, int] | None:
    if topic_partition is None:
        return None
    owner = partition_of(topic_partition)
    if owner is None:
        raise InputNotRecognizedError(
            f"--topic-partition {topic_partition}: give a topic, a hyphen and a partition's "
            f"number, as in __consumer_offsets-17"
        )
    return owner


def _split_name(text: str) -> tuple[str | None, str]:
    """Return (copy's name or None, path); a path may itself hold a ``=``."""
    name, equals, path = text.partition("=")
    if equals and path and _NAME.fullmatch(name) and storage_of(text).entry(text) is None:
        if name in {".", ".."}:
            raise InputNotRecognizedError(f"{text}: {name} cannot be the name of a copy")
        return name, local_path(path)
    return None, local_path(text)


def _recognize_matches(
    argument: str,
    pattern: str,
    name: str | None,
    owner: tuple[str, int] | None,
    recognized: _Recognized,
) -> None:
    matches = expand_glob(pattern)
    if not matches:
        raise InputNotRecognizedError(f"{argument}: no file or folder matches this pattern")
    refused = []
    for path in matches:
        try:
            _recognize_one(path, path, name, owner, recognized)
        except InputNotRecognizedError as error:
            refused.append(error)
            recognized.descriptions.append(
                f"{path}: matches {argument}, but is no known form of input; not read"
            )
    if len(refused) == len(matches):
        raise InputNotRecognizedError(
            f"{argument}: matches {len(matches)} names, none of them a known form of input. "
            f"The first: {refused[0]}"
        )


def _recognize_one(
    argument: str,
    path: str,
    name: str | None,
    owner: tuple[str, int] | None,
    recognized: _Recognized,
) -> None:
    entry = storage_of(path).entry(path)
    if entry is None:
        raise InputNotRecognizedError(
            f"{argument}: there is no such file or folder. Looked for {LOOKED_FOR}."
        )
    if entry.is_special:
        raise InputNotRecognizedError(
            f"{argument}: a pipe, a socket or a device, which is not read"
        )
    if entry.is_folder:
        _recognize_folder(argument, path, name, owner, recognized)
    else:
        _recognize_file(argument, path, name, owner, recognized)


def _recognize_file(
    argument: str,
    path: str,
    name: str | None,
    owner: tuple[str, int] | None,
    recognized: _Recognized,
) -> None:
    folder, file = parent(path), base_name(path)
    whose = _whose(base_name(folder), owner)
    if is_segment_name(file) and whose:
        disk = folder if whose == owner else parent(folder)
        source = PartitionSource(folder, *whose, file)
        recognized.disks.append(DiskSource(disk, name, (source,)))
        recognized.descriptions.append(f"{argument}: a segment of {whose[0]}-{whose[1]}")
        return
    if is_segment_name(file):
        raise InputNotRecognizedError(
            f"{argument}: a segment, but its folder is not named <topic>-<partition>; say whose it "
            f"is with --topic-partition, as in --topic-partition __consumer_offsets-17"
        )
    rows = rows_in_file(argument, path, owner)
    if rows is None:
        raise InputNotRecognizedError(
            f"{argument}: a file that is neither a segment (twenty digits and .log) nor archived "
            f"rows (Parquet, Avro, or JSON Lines with topic, partition and offset). "
            f"Looked for {LOOKED_FOR}."
        )
    recognized.raw_rows.append(rows)
    recognized.descriptions.append(f"{argument}: archived rows ({rows.format}){_of(rows)}")


def _recognize_folder(
    argument: str,
    path: str,
    name: str | None,
    owner: tuple[str, int] | None,
    recognized: _Recognized,
) -> None:
    entries = storage_of(path).list(path)
    if is_workspace(argument, path, entries):
        recognized.workspaces.append(path)
        recognized.descriptions.append(f"{argument}: a workspace")
        return
    if is_unfinished_snapshot(entries):
        raise InputUnreadableError(
            f"{argument}: a snapshot of a cluster that never came to its end; take it again"
        )
    if holds_partition(entries):
        recognized.disks.append(_partition_folder(argument, path, name, owner))
        recognized.descriptions.append(f"{argument}: a partition directory")
        return
    if is_log_directory(path, entries):
        recognized.disks.append(DiskSource(path, name))
        recognized.descriptions.append(f"{argument}: a broker's log directory")
        return
    if disks := log_directories_in(path, entries, name, recognized.descriptions):
        recognized.disks += disks
        named = ", ".join(base_name(disk.path) for disk in disks)
        recognized.descriptions.append(f"{argument}: a folder of log directories ({named})")
        return
    rows = rows_in_folder(argument, path, owner)
    if rows is None:
        raise InputNotRecognizedError(
            f"{argument}: no log directory, segment, archived rows or workspace here. "
            f"Looked for {LOOKED_FOR}. {what_was_found(path, entries)}"
        )
    recognized.raw_rows.append(rows)
    recognized.descriptions.append(
        f"{argument}: archived rows ({rows.format}, {len(rows.files)} files){_of(rows)}"
    )


def _of(rows: RawRows) -> str:
    return f", of {rows.place[0]}-{rows.place[1]} where they do not say" if rows.place else ""


def _partition_folder(
    argument: str, path: str, name: str | None, owner: tuple[str, int] | None
) -> DiskSource:
    folder = base_name(path)
    whose = _whose(folder, owner)
    if whose is None:
        state = dying_state(folder)
        found = f"its name says {state}" if state else "its name is not <topic>-<partition>"
        raise InputNotRecognizedError(
            f"{argument}: holds files of a partition, but {found}; say whose it is with "
            f"--topic-partition, as in --topic-partition __consumer_offsets-17"
        )
    return DiskSource(parent(path), name, (PartitionSource(path, *whose),))


def _whose(folder: str, owner: tuple[str, int] | None) -> tuple[str, int] | None:
    """Return whose the files of a folder are: its name tells if that is an internal partition's."""
    named = partition_of(folder)
    return named if owner is None or (named and named[0] in INTERNAL_TOPICS) else owner


def _merged(disks: Iterable[DiskSource]) -> list[DiskSource]:
    """Return one source for each log directory; a whole one takes in its parts."""
    merged: dict[tuple[str, str | None], DiskSource] = {}
    for disk in disks:
        key = (disk.path.rstrip("/") or "/", disk.name)
        before = merged.get(key)
        if before is None:
            merged[key] = disk
        elif before.partitions is not None:
            both = None
            if disk.partitions is not None:
                both = tuple(dict.fromkeys(before.partitions + disk.partitions))
            merged[key] = DiskSource(before.path, disk.name, both)
    return list(merged.values())
