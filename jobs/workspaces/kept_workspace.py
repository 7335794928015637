"""A workspace given as `--out` that already holds what INPUTs would be decoded to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from analytics.dump.files.storage import join, storage_of
from analytics.errors import WorkspaceError
from analytics.tables.decoded_records import has_records
from analytics.version import VERSION
from analytics.workspace import LISTING, MANIFEST, Workspace

if TYPE_CHECKING:
    from analytics.dump.files.inputs import Inputs

_BELOW_LOG_START = "keep_below_log_start"


def input_listing(inputs: Inputs) -> str | None:
    """Return a digest that differs as soon as a file below INPUTs is new, gone or changed.

    Returns:
        None where a file system does not tell when files changed.
    """
    digest = sha256()
    rows = (file for each in inputs.raw_rows for file in each.files)
    for path in (*(disk.path for disk in inputs.disks), *rows):
        for name, size, modified in _files(path):
            if not modified:
                return None
            digest.update(f"{name}\0{size}\0{modified}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def kept_workspace(out: str, inputs: Inputs, options: Mapping[str, Any]) -> Workspace | None:
    """Return the workspace `out` where INPUTs were decoded into it and are what they were.

    Args:
        out: As given; it may be no workspace at all.
        inputs: What INPUTs are.
        options: Of decoding, with `keep_below_log_start`.
    """
    space = Workspace(out)
    if space.filesystem.get_file_info(space.path(MANIFEST)).type is not fs.FileType.File:
        return None
    try:
        manifest = space.manifest()
    except WorkspaceError:
        # Damaged, or of another release: it is made again.
        return None
    is_same = (
        manifest.get("groupscope_version") == VERSION
        and manifest.get("created_from") == list(inputs.arguments)
        and _are_options_of(manifest.get("options", {}), options)
        and manifest.get(LISTING) is not None
        and manifest[LISTING] == input_listing(inputs)
        and has_records(space)
    )
    return space if is_same else None


def _are_options_of(decoded: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Return whether decoding anew would leave out nothing else, and no more."""
    # Records below the log start that nobody needs do no harm.
    if options.get(_BELOW_LOG_START) and not decoded.get(_BELOW_LOG_START):
        return False
    return all(
        _plain(value) == _plain(options.get(name))
        for name, value in decoded.items()
        if name != _BELOW_LOG_START
    )


def _plain(value: object) -> object:
    """Return an option's value so that those that mean the same are equal."""
    if isinstance(value, list | tuple):
        return sorted(map(str, value)) or None
    return value or None


def _files(path: str) -> Iterable[tuple[str, int, int]]:
    storage = storage_of(path)
    entry = storage.entry(path)
    if entry is None or not entry.is_folder:
        yield path, entry.size if entry else 0, entry.modified if entry else 0
        return
    for each in sorted(storage.list(path), key=lambda each: each.name):
        if each.is_folder:
            yield from _files(join(path, each.name))
        else:
            yield join(path, each.name), each.size, each.modified
