"""Folders and files wherever they are: a local disk, or any filesystem that Arrow opens by URI.

Local paths go through the operating system alone; pyarrow is imported for the first URI only, so
that looking at a local dump starts at once.
"""

from __future__ import annotations

import fnmatch
import io
import os
import re
import stat
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, Self, cast

import numpy as np

from analytics.dump.records.raw_records import PADDING
from analytics.errors import InputUnreadableError
from analytics.failed_reads import failed_here, is_nothing_there, shrunk, tried_again
from analytics.locations import is_uri, join, local_path, open_location, uri_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from pyarrow import NativeFile

# Bytes of a segment file at a position, from a local path or any seekable file.

_BLOCK = 1 << 20


class ByteSource:
    """A file read at positions; what is missing where a file shrank reads as zeros.

    Plain reads, no memory map: a file that a broker truncates under a map ends the process.

    Attributes:
        name: For messages.
        size: Bytes when it was opened.
        shrank_to: How many bytes were there, where those were fewer than ``size`` said.
    """

    def __init__(self, file: str | os.PathLike[str] | BinaryIO, *, digest: bool = False) -> None:
        """Open a path or URI, or take an open file, which stays the caller's to close.

        With ``digest`` the bytes that are read in order anyway are summed up for `sha256`.

        Raises:
            InputUnreadableError: The file cannot be opened.
        """
        self.name = str(getattr(file, "name", file)) if not isinstance(file, str) else file
        self._owned = isinstance(file, (str, os.PathLike))
        self._file = _opened(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else file
        self._descriptor = self._file.fileno() if self._owned and not is_uri(self.name) else -1
        self.size = self._file.seek(0, os.SEEK_END)
        self.shrank_to: int | None = None
        self._sum = sha256() if digest else None
        self._summed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self._owned:
            self._file.close()

    def fill(self, buffer: memoryview, position: int) -> None:
        """Read as many bytes as the buffer holds.

        Raises:
            InputUnreadableError: The disk refuses.
            ReadFailedError: A store or a network fails, and goes on to.
        """
        done = 0
        while done < len(buffer):
            at = position + done
            rest = buffer[done:]
            read = tried_again(lambda: self._read_some(rest, at), self.name, at)  # noqa: B023
            if not read:
                self.shrank_to = at
                buffer[done:] = bytes(len(buffer) - done)
                break
            done += read
        if self._sum is not None and position <= self._summed < position + len(buffer):
            self._sum.update(buffer[self._summed - position :])
            self._summed = position + len(buffer)

    def array(self, position: int, size: int) -> NDArray[np.uint8]:
        """Return bytes in a buffer of their own, with `PADDING` zeros after them."""
        data = np.empty(size + PADDING, np.uint8)
        data[size:] = 0
        self.fill(data.data[:size], position)
        return data

    def bytes(self, position: int, size: int) -> bytes:
        """Return bytes."""
        return self.array(position, size)[:size].tobytes()

    def sha256(self) -> str:
        """Return the digest of the whole file, in hexadecimal; it was opened to be summed up."""
        assert self._sum is not None
        block = memoryview(bytearray(_BLOCK))
        while self._summed < self.size:
            self.fill(block[: self.size - self._summed], self._summed)
        return self._sum.hexdigest()

    def _read_some(self, buffer: memoryview, position: int) -> int:
        if self._descriptor >= 0:
            return os.preadv(self._descriptor, [buffer], position)
        self._file.seek(position)
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


class SourceFile(io.RawIOBase):
    """A `ByteSource` as a file that others read: what fails is tried again, or an error of ours."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._at = 0

    @classmethod
    def opened(cls, path: str) -> io.BufferedReader:
        """Open a path or URI.

        Raises:
            ReadFailedError: It cannot be opened here.
        """
        try:
            return io.BufferedReader(cls(ByteSource(local_path(path))), _BLOCK)
        except InputUnreadableError as error:
            raise failed_here(error) from error

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever has a buffer
        """Fill a buffer as far as the file reaches.

        Raises:
            ReadFailedError: It cannot be read here, or has become shorter.
        """
        into = memoryview(buffer).cast("B")[: max(self._source.size - self._at, 0)]
        try:
            self._source.fill(into, self._at)
        except InputUnreadableError as error:
            raise failed_here(error) from error
        if self._source.shrank_to is not None:
            raise shrunk(self._source.name, self._source.shrank_to, self._source.size)
        self._at += len(into)
        return len(into)

    def close(self) -> None:
        """Close the file."""
        self._source.close()
        super().close()


def _opened(path: str) -> BinaryIO:
    if is_uri(path):
        return storage_of(path).open(path)
    return tried_again(lambda: Path(path).open("rb", buffering=0), path)


_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Entry:
    """One name in a folder.

    Attributes:
        name: Without the folder's path.
        is_folder: Links are followed.
        size: Bytes; 0 of a folder.
        modified: Nanoseconds since the epoch.
        is_special: A pipe, a socket or a device: opening one may never come back.
    """

    name: str
    is_folder: bool
    size: int
    modified: int
    is_special: bool = False


class Storage(Protocol):
    """What is needed of a filesystem; paths are the strings that `storage_of` was given."""

    def list(self, folder: str) -> list[Entry]:
        """Return what is in a folder, by name."""

    def entry(self, path: str) -> Entry | None:
        """Return what is at a path, None where there is nothing."""

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading; seekable."""


class LocalStorage:
    """The machine's own filesystem."""

    def list(self, folder: str) -> list[Entry]:
        """Return what is in a folder, by name; links are followed.

        Raises:
            InputUnreadableError: The system refuses.
        """

        def entries() -> list[Entry]:
            with os.scandir(folder) as found:
                return [_local_entry(item.name, item) for item in found]

        return sorted(tried_again(entries, folder), key=lambda entry: entry.name)

    def entry(self, path: str) -> Entry | None:
        """Return what is at a path, None where there is nothing.

        Raises:
            InputUnreadableError: The system refuses to say.
        """
        try:
            # One system call, for thousands of files.
            found = tried_again(lambda: _status(path), path)
        except ValueError:
            # A zero in a name.
            return None
        if found is None:
            return None
        return _entry(os.path.basename(path.rstrip("/")), found)  # noqa: PTH119

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading.

        Raises:
            InputUnreadableError: The system refuses.
        """
        return tried_again(lambda: open(path, "rb"), path)  # noqa: PTH123 - the caller closes it


class ArrowStorage:
    """A filesystem of Arrow's.

    ``prefix`` is what stands before a path in a URI, ``root`` what the filesystem has instead.
    """

    def __init__(
        self,
        filesystem: Any,  # noqa: ANN401 - pyarrow is untyped
        prefix: str,
        root: str = "",
    ) -> None:
        self._filesystem = filesystem
        self._prefix = prefix
        self._root = root

    def list(self, folder: str) -> list[Entry]:
        """Return what is in a folder, by name.

        Raises:
            InputUnreadableError: The filesystem refuses.
        """
        from pyarrow.fs import FileSelector  # noqa: PLC0415

        selected = FileSelector(self._inner(folder))
        infos = tried_again(lambda: self._filesystem.get_file_info(selected), folder)
        return sorted(map(_arrow_entry, infos), key=lambda entry: entry.name)

    def entry(self, path: str) -> Entry | None:
        """Return what is at a path, None where there is nothing.

        Raises:
            InputUnreadableError: The filesystem refuses.
        """
        from pyarrow.fs import FileType  # noqa: PLC0415

        info = tried_again(lambda: self._filesystem.get_file_info(self._inner(path)), path)
        return None if info.type is FileType.NotFound else _arrow_entry(info)

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading.

        Raises:
            InputUnreadableError: The filesystem refuses.
        """
        file = tried_again(lambda: self._filesystem.open_input_file(self._inner(path)), path)
        return cast("BinaryIO", io.BufferedReader(_TriedAgain(file, path), 1 << 16))

    def _inner(self, path: str) -> str:
        uri = uri_of(path)
        return self._root + f"{uri.head}{uri.path}".removeprefix(self._prefix).rstrip("/")


class _TriedAgain(io.RawIOBase):
    """A file of a store, whose reads are tried again: whoever reads it, a few bytes or all.

    The SDK tries again what it knows as throttling; an answer of 503 that is longer than the bytes
    that were asked for is an internal failure to it.
    """

    def __init__(self, file: NativeFile, path: str) -> None:
        self._file = file
        self._path = path

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it can be read from anywhere."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a position."""
        return int(self._file.seek(offset, whence))

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - whatever takes bytes
        """Read into a buffer; return how many bytes.

        Raises:
            ReadFailedError: It fails, and goes on to.
            InputUnreadableError: The store refuses.
        """
        at = self._file.tell()

        def read() -> int:
            self._file.seek(at)
            return int(self._file.readinto(buffer))

        return tried_again(read, self._path, at)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()


_LOCAL = LocalStorage()


def storage_of(path: str) -> Storage:
    """Return the filesystem that a path or URI lies on.

    Raises:
        InputNotRecognizedError: Nothing here opens URIs of that scheme.
        GroupscopeError: The store refuses, or cannot be reached.
    """
    if not is_uri(path):
        return _LOCAL
    uri = uri_of(path)
    return _arrow_storage(uri.scheme, uri.authority, uri.query)


def read_small(path: str, limit: int) -> bytes:
    """Return a file's first ``limit`` bytes.

    Raises:
        InputUnreadableError: The file cannot be read.
    """
    with storage_of(path).open(path) as file:

        def read() -> bytes:
            file.seek(0)
            return file.read(limit)

        return tried_again(read, path, 0)


def refusal(path: str) -> str | None:
    """Return why this process cannot open a file of its own machine; None where it can.

    Of other filesystems None: those of whom a store asks for a key ask with the same one.
    """
    if is_uri(path):
        return None
    try:
        _opened(path).close()
    except InputUnreadableError as error:
        return str(error)
    return None


def has_glob(path: str) -> bool:
    """Whether a path holds a wildcard."""
    uri = uri_of(path) if is_uri(path) else None
    return bool(_GLOB.search(uri.path if uri else path))


def expand_glob(pattern: str) -> list[str]:
    """Return the paths that a pattern of ``*``, ``?`` and ``[...]`` names, sorted.

    A wildcard never crosses a ``/`` and never matches a leading dot.
    """
    head, parts = _glob_parts(pattern)
    return sorted(_expand([head], parts))


def _glob_parts(pattern: str) -> tuple[str, list[str]]:
    if is_uri(pattern):
        uri = uri_of(pattern)
        return f"{uri.head}/{uri.query}", [part for part in uri.path.split("/") if part]
    return "/" if pattern.startswith("/") else "", [part for part in pattern.split("/") if part]


def _expand(folders: list[str], parts: Sequence[str]) -> list[str]:
    for depth, part in enumerate(parts, start=1):
        last = depth == len(parts)
        if has_glob(part):
            folders = [found for folder in folders for found in _matches(folder, part, last=last)]
        else:
            paths = [join(folder, part) for folder in folders]
            folders = [path for path in paths if storage_of(path).entry(path)]
    return folders


def _matches(folder: str, pattern: str, *, last: bool) -> list[str]:
    return [
        join(folder, entry.name)
        for entry in _listed(storage_of(folder), folder or ".")
        if fnmatch.fnmatchcase(entry.name, pattern)
        and (last or entry.is_folder)
        and (pattern.startswith(".") or not entry.name.startswith("."))
    ]


def _listed(storage: Storage, folder: str) -> list[Entry]:
    entry = storage.entry(folder)
    return storage.list(folder) if entry and entry.is_folder else []


@cache
def _arrow_storage(scheme: str, authority: str, query: str) -> ArrowStorage:
    filesystem, root = open_location(f"{scheme}://{authority}/{query}")
    return ArrowStorage(filesystem, f"{scheme}://{authority}", root.rstrip("/"))


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - see `entry`
    except OSError as error:
        if is_nothing_there(error):
            return None
        raise


def _local_entry(name: str, item: os.DirEntry[str]) -> Entry:
    try:
        return _entry(name, item.stat())
    except OSError as error:
        if not (is_nothing_there(error) or isinstance(error, PermissionError)):
            raise
        # A link that leads nowhere, or a file that went away between the two looks.
        return Entry(name, is_folder=False, size=0, modified=0)


def _entry(name: str, status: os.stat_result) -> Entry:
    is_folder, is_file = stat.S_ISDIR(status.st_mode), stat.S_ISREG(status.st_mode)
    return Entry(
        name,
        is_folder,
        status.st_size if is_file else 0,
        status.st_mtime_ns,
        is_special=not is_folder and not is_file,
    )


def _arrow_entry(info: Any) -> Entry:  # noqa: ANN401 - pyarrow is untyped
    from pyarrow.fs import FileType  # noqa: PLC0415

    return Entry(
        info.base_name, info.type is FileType.Directory, info.size or 0, info.mtime_ns or 0
    )
