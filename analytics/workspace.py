"""The workspace: a folder of tables that is either finished or says that it is not.

A run writes into a staging folder of its own and publishes at the end. ``manifest.json`` is taken
away before the first table is replaced and written after the last, so an interrupted run is never
taken for a finished one.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from analytics.errors import (
    CannotTellError,
    InputNotRecognizedError,
    InputUnreadableError,
    OutputRefusedError,
    WorkspaceError,
)
from analytics.failed_reads import is_of_reading, read_failed, tried_again
from analytics.locations import (
    MOVES_FOLDERS,
    content_of,
    is_uri,
    join,
    make_folder,
    move_folder,
    open_location,
    remove_all_but,
)
from analytics.version import SCHEMA_VERSION, VERSION
from analytics.workspace_lock import sole_writer
from schemas.manifest import fault_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from schemas.manifest import AnyManifest, Manifest

MANIFEST = "manifest.json"
PIECES: Final = "decoded_pieces.json"
"""What decoded tables were made of, for a run that goes on from this one; its SHA-256 is in the
manifest."""
DECODED, DIVERGED = "decoded", "diverged"
BEFORE_SWAPS: Final = "before_swaps"
DATA_LOGS = "data_logs"
STATE, HISTORY = "state", "history"
EVALUATIONS: Final = "evaluations"
"""Folders of tables: what is decoded, what data topics' files say, what is replayed of what was
decoded, what is evaluated of all."""
FOLDERS = (DECODED, DIVERGED, BEFORE_SWAPS, DATA_LOGS, STATE, HISTORY, EVALUATIONS)
"""All of them: what other records are decoded into takes the place of each."""
PAGE, SUMMARY, LINES = "report/index.html", "summary.json", "findings.jsonl"
INCIDENT_PAGE, INCIDENT, RESTORE = "report/incident.html", "incident.json", "restore"
RESTORED = "restore.json"
"""In a folder that `restore` wrote: says which files in it are its own."""
_ANSWERS = (PAGE, SUMMARY, LINES, INCIDENT_PAGE, INCIDENT)
"""Files of answers: they go with the tables that they were made of."""

_MARKER = ".groupscope"
_PRIVATE = 0o700
"""Names of groups and topics, clients' hosts and settings are in a workspace."""
_STAGING = ".staging-"
_ABANDONED = timedelta(days=1)
"""Where file systems know no locks, what a run wrote and is older than this is of no living one."""
_FOLDER = fs.FileType.Directory
_NO_COLUMN = ("No match for FieldRef", "does not exist in schema")


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
            WorkspaceError: The folder cannot be written, or another run writes into it.
        """
        info = self._info("")
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
            with self._sole_writer() as is_alone:
                self.write(_MARKER, "A groupscope workspace; manifest.json says what is in it.\n")
                self._sweep(is_alone=is_alone)
        except OSError as error:
            message = f"{self.location} cannot be written: {why_of(error)}"
            raise WorkspaceError(message) from error
        return Staging(self, f"{_STAGING}{uuid.uuid4().hex[:12]}")

    @contextmanager
    def _sole_writer(self) -> Iterator[bool]:
        """Keep other runs out, where the file system knows locks; say whether that is certain."""
        if not isinstance(self.filesystem, fs.LocalFileSystem):
            yield False
            return
        with sole_writer(self.location, Path(self.path(_MARKER))) as is_alone:
            yield is_alone

    def _sweep(self, *, is_alone: bool) -> None:
        """Delete what runs that were killed left behind; what may be of a living one stays."""
        for entry in self._entries(""):
            if entry.base_name.startswith(_STAGING) and (is_alone or self._is_abandoned(entry)):
                self.filesystem.delete_dir(entry.path)

    def _is_abandoned(self, folder: fs.FileInfo) -> bool:
        """Return whether all in a folder is old; no where the file system does not tell."""
        now = self.filesystem.get_file_info(self.path(_MARKER)).mtime
        inside = self.filesystem.get_file_info(fs.FileSelector(folder.path, recursive=True))
        times = [each.mtime for each in (folder, *inside) if each.mtime is not None]
        return bool(now and times) and max(times) < now - _ABANDONED

    def is_same_as(self, other: Workspace) -> bool:
        """Return whether two are one folder, whatever names lead to it."""
        if isinstance(self.filesystem, fs.LocalFileSystem):
            is_local = isinstance(other.filesystem, fs.LocalFileSystem)
            return is_local and Path(self.root).resolve() == Path(other.root).resolve()
        return self.filesystem.equals(other.filesystem) and self.root == other.root

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

    @property
    def is_there(self) -> bool:
        """Whether there is such a folder, or a file of its name."""
        return self._info("").type is not fs.FileType.NotFound

    @property
    def is_marked(self) -> bool:
        """Whether some run of groupscope wrote here, finished or not."""
        return any(self._info(each).type is fs.FileType.File for each in (_MARKER, MANIFEST))

    def manifest(self) -> Manifest:
        """Read the manifest.

        Raises:
            InputNotRecognizedError: There is no such folder.
            WorkspaceError: There is none: the folder is no workspace, or its run never finished;
                or it is damaged.
            CannotTellError: It is one of a dialect, which has nothing of a dump.
        """
        manifest = self.any_manifest()
        if "dialect" in manifest:
            raise CannotTellError(
                f"{self.location} holds share state of the dialect {manifest['dialect']['name']} "
                "and nothing else of groups: groupscope share shows it"
            )
        return manifest

    def any_manifest(self) -> AnyManifest:
        """Read the manifest, which may be one of a dialect.

        Raises:
            WorkspaceError: There is none, or it is damaged, as in `manifest`.
        """
        path = self.path(MANIFEST)
        if self._info(MANIFEST).type is not fs.FileType.File:
            if not self.is_there:
                raise InputNotRecognizedError(f"{self.location}: there is no such folder")
            message = f"{self.location} has no {MANIFEST}: no run ever finished in it"
            raise WorkspaceError(message)
        try:
            manifest: Any = json.loads(tried_again(lambda: content_of(self.filesystem, path), path))
        except (InputUnreadableError, ValueError) as error:
            message = f"{path} cannot be read: {error} (make the workspace again)"
            raise WorkspaceError(message) from error
        if not isinstance(manifest, dict):
            raise WorkspaceError(f"{path} is no manifest (make the workspace again)")
        version = manifest.get("schema_version")
        if version != SCHEMA_VERSION:
            message = (
                f"{self.location} is a workspace of schema version {version}, written by "
                f"groupscope {manifest.get('groupscope_version')}; groupscope {VERSION} reads "
                f"version {SCHEMA_VERSION}: make it again from the dump, or ask the release that "
                "wrote it"
            )
            raise WorkspaceError(message)
        if (fault := fault_in(manifest)) is not None:
            message = f"{path} is damaged: {fault} (make the workspace again)"
            raise WorkspaceError(message)
        checked = cast("AnyManifest", manifest)
        self._check_files(checked.get("files", {}))
        return checked

    def sizes_in(self, folders: Iterable[str]) -> dict[str, int]:
        """Return how many bytes each file of some folders has, by its path in the workspace."""
        wanted = sorted(set(folders))
        is_store = self.filesystem.type_name not in MOVES_FOLDERS
        # A store lists all there is below a name at once: one request instead of one a folder.
        listed = [""] if is_store and len(wanted) > 1 else wanted
        sizes = {
            each.path.removeprefix(self.root).lstrip("/"): each.size
            for name in listed
            for each in self.filesystem.get_file_info(
                fs.FileSelector(self.path(name), recursive=True, allow_not_found=True)
            )
            if each.is_file
        }
        within = tuple(f"{folder}/" for folder in wanted)
        return {name: size for name, size in sizes.items() if name.startswith(within)}

    def _check_files(self, files: Mapping[str, int]) -> None:
        """Refuse tables of which a file is gone or has another length than its run wrote.

        Raises:
            WorkspaceError: One is not as it was.
        """
        there = self.sizes_in(sorted({name.partition("/")[0] for name in files}))
        for name, size in files.items():
            if there.get(name) == size:
                continue
            is_there = f"has {there[name]} bytes instead of {size}" if name in there else "is gone"
            message = f"{self.path(name)} {is_there} (make the workspace again)"
            raise WorkspaceError(message)

    def table(self, name: str) -> str:
        """Return the location of a table's folder, for whatever reads it, wherever that runs."""
        return join(self.location if is_uri(self.location) else self.root, name)

    def path(self, name: str) -> str:
        """Return the path of something in the workspace, in its filesystem."""
        return f"{self.root}/{name}" if name else self.root

    def _info(self, name: str) -> fs.FileInfo:
        """Say what is there.

        Raises:
            InputUnreadableError: The filesystem refuses to say.
            ReadFailedError: A store cannot be reached.
        """
        path = self.path(name)
        return tried_again(lambda: self.filesystem.get_file_info(path), self.location)

    def _entries(self, name: str) -> list[fs.FileInfo]:
        return list(self.filesystem.get_file_info(fs.FileSelector(self.path(name))))

    def read(self, name: str) -> str | None:
        """Return a small text file; None where there is no such file.

        Raises:
            InputUnreadableError: It cannot be read.
            ReadFailedError: A store cannot be reached.
        """
        path = self.path(name)
        if self._info(name).type is not fs.FileType.File:
            return None
        return tried_again(lambda: content_of(self.filesystem, path), path).decode(
            "utf-8", "replace"
        )

    def write(self, name: str, text: str) -> None:
        """Write a small text file; of JSON, names of files that are no UTF-8 are escaped."""
        with self.filesystem.open_output_stream(self.path(name)) as stream:
            stream.write(text.encode("utf-8", "backslashreplace"))

    def forget_answers(self) -> None:
        """Delete files of answers: what was found is not of the tables that are to be here."""
        for name in _ANSWERS:
            self.remove(name)
        for name in self._restored():
            self.remove(f"{RESTORE}/{name}")
        for folder in (RESTORE, PAGE.partition("/")[0]):
            is_folder = self.filesystem.get_file_info(self.path(folder)).type is _FOLDER
            if is_folder and not self._entries(folder):
                self.remove(folder)

    def _restored(self) -> list[str]:
        """Return the files that `restore` wrote here; others in that folder are a person's."""
        try:
            with self.filesystem.open_input_stream(self.path(f"{RESTORE}/{RESTORED}")) as stream:
                names = json.loads(stream.read())["files"]
        except (OSError, ValueError, KeyError, TypeError):
            return []
        return [RESTORED, *(name for name in map(str, names) if Path(name).name == name)]

    def remove(self, name: str) -> None:
        """Delete a file or a folder, if it is there."""
        path = self.path(name)
        kind = self.filesystem.get_file_info(path).type
        if kind is _FOLDER:
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

    def published(self, name: str) -> str:
        """Return where in the workspace a folder is that `publish` moves to its place."""
        return f"{self.name}/published/{name}"

    def publish(
        self, parts: Iterable[Part], replaced: Iterable[str], manifest: AnyManifest
    ) -> None:
        """Move the parts into their tables and only then write the manifest.

        Args:
            parts: Files of the tasks that succeeded, in table order; what other attempts left
                in the staging folder is deleted.
            replaced: Top-level folders that these parts replace ("decoded", "diverged"). Files of
                answers go with all but evaluations, which are kept beside what they are of.
            manifest: What the run did.
        """
        space, filesystem = self.workspace, self.workspace.filesystem
        every = list(numbered(parts))
        tops = {*replaced, *(place.partition("/")[0] for _, place in every)}
        stay = {path for path, place in every if path == space.path(place)}
        places = [(path, place) for path, place in every if path not in stay]
        # A move is a copy in a store: once is enough for what lies in no folder that is replaced.
        is_once = filesystem.type_name not in MOVES_FOLDERS
        own = f"{space.path(self.name)}/"
        later = {each: None for each in places if is_once and each[0].startswith(own)}
        if later:
            # Before anything is taken away, all is seen.
            self._check_seen([path for path, _ in later])
        for path, place in places:
            if (path, place) not in later:
                make_folder(filesystem, space.path(self.published(place.rpartition("/")[0])))
                with _seen_from_here(path):
                    filesystem.move(path, space.path(self.published(place)))
        space.remove(MANIFEST)
        if "decoded_pieces" not in manifest:
            # It has names of what was here before.
            space.remove(PIECES)
        if tops - {EVALUATIONS}:
            space.forget_answers()
        for top in sorted(tops):
            remove_all_but(filesystem, space.path(top), stay)
            staged = space.path(self.published(top))
            if filesystem.get_file_info(staged).type is _FOLDER:
                move_folder(filesystem, staged, space.path(top))
        for path, place in later:
            filesystem.move(path, space.path(place))
        make_folder(filesystem, space.path(self.name))
        text = json.dumps(self._with_files(manifest), indent=1, ensure_ascii=False)
        space.write(f"{self.name}/{MANIFEST}", text + "\n")
        filesystem.move(space.path(f"{self.name}/{MANIFEST}"), space.path(MANIFEST))
        self.discard()

    def _check_seen(self, paths: Sequence[str]) -> None:
        """Check that what tasks wrote is there, by one list of it.

        Raises:
            WorkspaceError: It is not.
        """
        space = self.workspace
        folder = fs.FileSelector(space.path(self.name), allow_not_found=True, recursive=True)
        there = {each.path for each in space.filesystem.get_file_info(folder) if each.is_file}
        for path in paths:
            if path not in there:
                with _seen_from_here(path):
                    space.filesystem.open_input_file(path).close()

    def _with_files(self, manifest: AnyManifest) -> Mapping[str, object]:
        """Return a manifest that says which files the tables have now, and how long each is.

        A manifest that came from another workspace says which that one has.
        """
        return {**manifest, "files": self.workspace.sizes_in(FOLDERS)}

    def discard(self) -> None:
        """Delete what the run left behind."""
        self.workspace.remove(self.name)


def numbered(parts: Iterable[Part]) -> Iterator[tuple[str, str]]:
    """Yield where each part is, and the file in the workspace that it becomes."""
    numbers: Counter[str] = Counter()
    for part in parts:
        yield part.path, f"{part.table}/part-{numbers[part.table]:05d}.parquet"
        numbers[part.table] += 1


@contextmanager
def _seen_from_here(path: str) -> Iterator[None]:
    """Say of a file that a task wrote, and that is not there, why that may be.

    Raises:
        WorkspaceError: It is not there.
    """
    try:
        yield
    except FileNotFoundError as error:
        message = (
            f"{path}: written by a task and not to be seen from here; on a cluster "
            "--out must be on a filesystem that all its machines share"
        )
        raise WorkspaceError(message) from error


def table_in(
    filesystem: fs.FileSystem,
    folder: str,
    schema: pa.Schema | None = None,
    kind: ds.FileFormat | None = None,
) -> ds.Dataset | None:
    """Return a folder of Parquet files, looked at by one list of it; None where there is none.

    `pyarrow.dataset.dataset` asks a store twice what the folder is before it lists it.

    Args:
        filesystem: Where it is.
        folder: Its path there.
        schema: The columns; None is those of its first file.
        kind: How files are read; None is as Arrow does by default.
    """
    files = ds.FileSystemDatasetFactory(
        filesystem,
        fs.FileSelector(folder, allow_not_found=True, recursive=True),
        kind or ds.ParquetFileFormat(),
    )
    found = files.finish(schema)
    return found if found.files else None


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Say of what cannot be read inside that it is this file or folder of a workspace.

    Raises:
        WorkspaceError: Something in it is damaged, or gone.
        ReadFailedError: A disk, a store or a network fails.
    """
    try:
        yield
    except (pa.ArrowException, OSError, KeyError) as error:
        if isinstance(error, OSError) and is_of_reading(error):
            raise read_failed(error, path) from error
        why = str(error).partition("\n")[0]
        is_column = any(phrase in why for phrase in _NO_COLUMN)
        if isinstance(error, KeyError) and not (is_column or isinstance(error, pa.ArrowException)):
            raise
        if is_column:
            why = "it lacks a column: another version of groupscope wrote it"
        raise WorkspaceError(
            f"{path} cannot be read: {why:.200} (make the workspace again)"
        ) from error


def why_of(error: OSError) -> str:
    """Return what the system says, without Arrow's words around it."""
    return os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]
