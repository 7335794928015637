"""What a folder is: a log directory, a folder of brokers or of one broker's disks, a workspace."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.dump.files.checkpoints import META_PROPERTIES, parse_properties
from analytics.dump.files.segments import holds_partition, partition_of
from analytics.dump.files.storage import Entry, join, read_small, storage_of
from analytics.errors import InputUnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    for entry in entries:
        if not entry.is_folder and entry.name == META_PROPERTIES:
            return True
        if entry.is_folder and partition_of(entry.name):
            folders.append(join(path, entry.name))
    return any(holds_partition(storage_of(folder).list(folder)) for folder in folders)


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
