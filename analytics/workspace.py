"""The workspace: a folder of tables that is either finished or says that it is not.

A run writes into a staging folder of its own and publishes at the end. ``manifest.json`` is taken
away before the first table is replaced and written after the last, so an interrupted run is never
taken for a finished one.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from analytics.errors import OutputRefusedError, WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MANIFEST = "manifest.json"
LISTING = "input_listing"
"""In a manifest: a digest of names, sizes and times of the files that were read."""
DECODED, DIVERGED = "decoded", "diverged"
DATA_LOGS = "data_logs"
STATE, HISTORY = "state", "history"
EVALUATIONS = "evaluations"
"""Folders of tables: what is decoded, what data topics' files say, what is replayed of what was
decoded, what is evaluated of all."""
FOLDERS = (DECODED, DIVERGED, DATA_LOGS, STATE, HISTORY, EVALUATIONS)
"""All of them: what other records are decoded into takes the place of each."""

_MARKER = ".groupscope"
_PRIVATE = 0o700
"""Names of groups and topics, clients' hosts and settings are in a workspace."""
_STAGING = ".staging-"
_MOVES_FOLDERS = ("local", "hdfs", "subtree", "mock")


@dataclass(frozen=True)
class Part:
    """One Parquet file that a task wrote: where it is and where it belongs.

    ``table`` is the path of the table's folder in the workspace ("decoded/offset_commit").
    """

    table: str
    path: str
    rows: int


class Workspace:
    """A folder, local or on any filesystem that Arrow opens by URI."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.filesystem, self.root = open_location(location)

    def prepare(self) -> Staging:
        """Make the folder a workspace and start a run in it.

        Raises:
            OutputRefusedError: The folder has content that is not ours, or is a file.
            WorkspaceError: The folder cannot be written.
        """
        info = self.filesystem.get_file_info(self.root)
        if info.type is fs.FileType.File:
            message = f"{self.location} is a file; --out needs a folder"
            raise OutputRefusedError(message)
        entries = [] if info.type is fs.FileType.NotFound else self._entries("")
        names = {entry.base_name for entry in entries}
        if names and not names & {MANIFEST, _MARKER}:
            message = (
                f"{self.location} is not empty and is no workspace (it has neither {MANIFEST} nor "
                f"{_MARKER}); choose another --out or empty it"
            )
            raise OutputRefusedError(message)
        try:
            self._create_folder()
            self.write(_MARKER, "A groupscope workspace; manifest.json says what is in it.\n")
        except OSError as error:
            message = f"{self.location} cannot be written: {why_of(error)}"
            raise WorkspaceError(message) from error
        for name in sorted(names):
            if name.startswith(_STAGING):
                self.filesystem.delete_dir(self.path(name))
        return Staging(self, f"{_STAGING}{uuid.uuid4().hex[:12]}")

    def _create_folder(self) -> None:
        """Create the folder so that its owner alone can read it; one that is there stays as it is.

        Raises:
            OSError: It cannot be created.
        """
        if not isinstance(self.filesystem, fs.LocalFileSystem):
            self.filesystem.create_dir(self.root, recursive=True)
        elif not Path(self.root).is_dir():
            Path(self.root).parent.mkdir(parents=True, exist_ok=True)
            Path(self.root).mkdir(mode=_PRIVATE)

    def manifest(self) -> dict[str, Any]:
        """Read the manifest.

        Raises:
            WorkspaceError: There is none: the folder is no workspace, or its run never finished;
                or it is damaged.
        """
        path = self.path(MANIFEST)
        if self.filesystem.get_file_info(path).type is not fs.FileType.File:
            message = f"{self.location} has no {MANIFEST}: no run ever finished in it"
            raise WorkspaceError(message)
        try:
            with self.filesystem.open_input_stream(path) as stream:
                manifest = json.loads(stream.read())
        except (OSError, ValueError) as error:
            message = f"{path} cannot be read: {error} (make the workspace again)"
            raise WorkspaceError(message) from error
        if not isinstance(manifest, dict):
            message = f"{path} is no manifest (make the workspace again)"
            raise WorkspaceError(message)
        return manifest

    def table(self, name: str) -> str:
        """Return the location of a table's folder, as given to ``--out`` and readable by Spark."""
        return f"{self.location.rstrip('/')}/{name}"

    def path(self, name: str) -> str:
        """Return the path of something in the workspace, in its filesystem."""
        return f"{self.root}/{name}" if name else self.root

    def _entries(self, name: str) -> list[fs.FileInfo]:
        return list(self.filesystem.get_file_info(fs.FileSelector(self.path(name))))

    def write(self, name: str, text: str) -> None:
        """Write a small text file."""
        with self.filesystem.open_output_stream(self.path(name)) as stream:
            stream.write(text.encode())

    def remove(self, name: str) -> None:
        """Delete a file or a folder, if it is there."""
        path = self.path(name)
        kind = self.filesystem.get_file_info(path).type
        if kind is fs.FileType.Directory:
            self.filesystem.delete_dir(path)
        elif kind is fs.FileType.File:
            self.filesystem.delete_file(path)


@dataclass(frozen=True)
class Staging:
    """One run's own folder inside the workspace."""

    workspace: Workspace
    name: str

    @property
    def location(self) -> str:
        """Where tasks write their parts; tasks may run on other machines."""
        return self.workspace.table(self.name)

    def publish(
        self, parts: Iterable[Part], replaced: Iterable[str], manifest: Mapping[str, Any]
    ) -> None:
        """Move the parts into their tables and only then write the manifest.

        Args:
            parts: Files of the tasks that succeeded, in table order; what other attempts left
                in the staging folder is deleted.
            replaced: Top-level folders that these parts replace ("decoded", "diverged").
            manifest: What the run did.
        """
        space, filesystem = self.workspace, self.workspace.filesystem
        numbers: dict[str, int] = {}
        tops = set(replaced)
        for part in parts:
            number = numbers.setdefault(part.table, 0)
            numbers[part.table] += 1
            folder = space.path(f"{self.name}/published/{part.table}")
            filesystem.create_dir(folder, recursive=True)
            try:
                filesystem.move(part.path, f"{folder}/part-{number:05d}.parquet")
            except FileNotFoundError as error:
                message = (
                    f"{part.path}: written by a task and not to be seen from here; on a cluster "
                    "--out must be on a filesystem that all its machines share"
                )
                raise WorkspaceError(message) from error
            tops.add(part.table.split("/")[0])
        space.remove(MANIFEST)
        for top in sorted(tops):
            space.remove(top)
            staged = space.path(f"{self.name}/published/{top}")
            if filesystem.get_file_info(staged).type is fs.FileType.Directory:
                _move_folder(filesystem, staged, space.path(top))
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        space.write(f"{self.name}/{MANIFEST}", text + "\n")
        filesystem.move(space.path(f"{self.name}/{MANIFEST}"), space.path(MANIFEST))
        self.discard()

    def discard(self) -> None:
        """Delete what the run left behind."""
        self.workspace.remove(self.name)


def _move_folder(filesystem: fs.FileSystem, source: str, target: str) -> None:
    """Move a folder in one step where the filesystem can, else file by file (object stores)."""
    if filesystem.type_name in _MOVES_FOLDERS:
        filesystem.move(source, target)
        return
    for info in filesystem.get_file_info(fs.FileSelector(source, recursive=True)):
        if info.is_file:
            place = f"{target}/{info.path.removeprefix(source).lstrip('/')}"
            filesystem.create_dir(place.rpartition("/")[0], recursive=True)
            filesystem.move(info.path, place)


def why_of(error: OSError) -> str:
    """Return what the system says, without Arrow's words around it."""
    return os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]


def open_location(location: str) -> tuple[fs.FileSystem, str]:
    """Open a local path or a URI; returns the filesystem and the path in it.

    Raises:
        WorkspaceError: No filesystem answers to the URI's scheme.
    """
    if "://" not in location and not location.startswith("file:"):
        return fs.LocalFileSystem(), str(Path(location).absolute())
    try:
        filesystem, path = fs.FileSystem.from_uri(location)
    except (OSError, ValueError) as error:
        message = f"{location} cannot be opened: {error}"
        raise WorkspaceError(message) from error
    return filesystem, path.rstrip("/")
