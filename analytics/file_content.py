"""Small files, read whole, wherever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.errors import InputUnreadableError, ReadFailedError
from analytics.failed_reads import tried_again
from analytics.locations import open_location

if TYPE_CHECKING:
    from pyarrow import fs


def content_of(filesystem: fs.FileSystem, path: str) -> bytes:
    """Return the bytes of a file, as they are stored; whoever asks tries again."""
    with filesystem.open_input_stream(path, compression=None) as stream:
        content: bytes = stream.read()
        return content


def read_staged(location: str) -> bytes:
    """Return what another task, or the process that hands them out, wrote for this one.

    Raises:
        ReadFailedError: It cannot be read here.
    """
    filesystem, path = open_location(location)
    try:
        return tried_again(lambda: content_of(filesystem, path), location)
    except InputUnreadableError as error:
        raise ReadFailedError(
            f"{error}: it was written for this task, so every machine has to see that folder"
        ) from error
