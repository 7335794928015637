"""Bytes of a segment file at a position, from a local path or any seekable file."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import numpy as np

from analytics.dump.files.storage import is_uri, storage_of
from analytics.dump.records.raw_records import PADDING
from analytics.errors import InputUnreadableError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 1 << 20


class ByteSource:
    """A file read at positions; what is missing where a file shrank reads as zeros.

    Plain reads, no memory map: a file that a broker truncates under a map ends the process.

    Attributes:
        name: For messages.
        size: Bytes when it was opened.
        shrank: Fewer bytes were there than ``size`` said.
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
        self.shrank = False
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
        """
        done = 0
        try:
            while done < len(buffer):
                read = self._read_some(buffer[done:], position + done)
                if not read:
                    self.shrank = True
                    buffer[done:] = bytes(len(buffer) - done)
                    break
                done += read
        except OSError as error:
            raise InputUnreadableError(
                f"{self.name}: cannot be read at byte {position + done} ({error.strerror or error})"
            ) from error
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


def _opened(path: str) -> BinaryIO:
    if is_uri(path):
        return storage_of(path).open(path)
    try:
        return Path(path).open("rb", buffering=0)
    except OSError as error:
        raise InputUnreadableError(f"{path}: cannot be read ({error.strerror})") from error
