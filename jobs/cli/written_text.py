"""Files of text and bytes that are there whole or not at all, on a disk or in a store."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from analytics.errors import InputUnreadableError, OutputRefusedError, ReadFailedError
from analytics.failed_reads import tried_again
from analytics.locations import is_uri, local_path, make_folder, open_location

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

Done = TypeVar("Done")

_DEVICES: Final = ("/dev", "/proc")
_ONE_PUT: Final = 8 << 20
"""Bytes that a store is sent at once: it has all of them, or none."""
_PUTS_WHOLE: Final = ("s3", "gcs", "abfs")


def write_text(location: str, text: str) -> str:
    """Write a file and its folder; return where it is.

    A text that is not empty ends with a line's end. What UTF-8 cannot hold is written as an escape.
    A device, or a pipe, is written to as it is.

    Raises:
        OSError: It cannot be written on this machine.
        OutputRefusedError: A store refuses.
        ReadFailedError: A store cannot be reached.
    """
    return write_pieces(location, [text.rstrip("\n") + "\n" if text else ""])


def write_pieces(location: str, pieces: Iterable[str]) -> str:
    """Write a file of any size and its folder, as its pieces come; return where it is.

    What UTF-8 cannot hold is written as an escape. A device, or a pipe, is written to as it is. A
    link in the place of the file is replaced, not followed.

    Raises:
        OSError: It cannot be written on this machine.
        OutputRefusedError: A store refuses.
        ReadFailedError: A store cannot be reached.
    """
    content = (each.encode("utf-8", errors="backslashreplace") for each in pieces)
    path = None if is_uri(location) else Path(local_path(location))
    if path is not None and _is_device(path):
        with path.open("wb") as device:
            device.writelines(content)
    else:
        StagedFile(location, content).publish()
    return location


class StagedFile:
    """What is to take the place of a file, already written.

    On a disk it is a file beside it with a name that nobody can guess, so that no link can be
    waiting there. For a store it waits on this machine, until all of it can be sent.
    """

    def __init__(self, location: str, content: Iterable[bytes]) -> None:
        self._location = location
        if is_uri(location):
            descriptor, name = tempfile.mkstemp(prefix="groupscope-", suffix=".part")
            os.close(descriptor)
            self._path = Path(name)
        else:
            place = Path(local_path(location))
            place.parent.mkdir(parents=True, exist_ok=True)
            self._path = place.with_name(f".{uuid.uuid4().hex}.part")
        try:
            with self._path.open("wb" if is_uri(location) else "xb") as file:
                file.writelines(content)
        except BaseException:
            # Also where the person interrupts: nothing half-written may stay.
            self.discard()
            raise

    def publish(self) -> None:
        """Put it into its place in one step; what was there is gone.

        Raises:
            OSError: It cannot be put there on this machine.
            OutputRefusedError: A store refuses.
            ReadFailedError: A store cannot be reached.
        """
        try:
            if is_uri(self._location):
                of_store(self._location, self._send)
            else:
                self._path.replace(local_path(self._location))
        finally:
            self.discard()

    def discard(self) -> None:
        """Delete it, where it is not in its place."""
        self._path.unlink(missing_ok=True)

    def _send(self, filesystem: FileSystem, path: str) -> None:
        if filesystem.type_name in _PUTS_WHOLE and self._path.stat().st_size <= _ONE_PUT:
            with filesystem.open_output_stream(path, compression=None) as stream:
                stream.write(self._path.read_bytes())
            return
        folder, _, _ = path.rpartition("/")
        if filesystem.type_name not in _PUTS_WHOLE:
            make_folder(filesystem, folder)
        # A stream that is left before its end is taken for whole by stores.
        staged = f"{folder}/.{uuid.uuid4().hex}.part"
        try:
            with (
                self._path.open("rb") as file,
                filesystem.open_output_stream(staged, compression=None) as stream,
            ):
                shutil.copyfileobj(file, stream, _ONE_PUT)
            if filesystem.type_name not in _PUTS_WHOLE:
                _delete(filesystem, path)
            filesystem.move(staged, path)
        except BaseException:
            _delete(filesystem, staged)
            raise


def of_store(location: str, does: Callable[[FileSystem, str], Done]) -> Done:
    """Do something in a store, again where it fails for the moment.

    Raises:
        OutputRefusedError: The store refuses.
        ReadFailedError: It cannot be reached.
    """
    filesystem, path = open_location(location)
    try:
        return tried_again(lambda: does(filesystem, path), location)
    except (InputUnreadableError, ReadFailedError) as error:
        why = str(error.__cause__).partition("\n")[0]
        words = f"{location} cannot be written: {why}"
        if isinstance(error, ReadFailedError):
            raise ReadFailedError(f"{words}: try again") from error
        raise OutputRefusedError(words) from error


def remove_file(location: str) -> None:
    """Delete a file, if it is there.

    Raises:
        OSError: It cannot be deleted on this machine.
        OutputRefusedError: A store refuses.
        ReadFailedError: A store cannot be reached.
    """
    if is_uri(location):
        of_store(location, _delete)
    else:
        Path(local_path(location)).unlink(missing_ok=True)


def _delete(filesystem: FileSystem, path: str) -> None:
    if filesystem.get_file_info(path).is_file:
        filesystem.delete_file(path)


def _is_device(path: Path) -> bool:
    """Return whether a path is a device, a pipe or a socket, or a name for what is open."""
    absolute = path.absolute()
    if any(absolute.is_relative_to(each) for each in _DEVICES):
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
