"""Text files that are there whole or not at all."""

from __future__ import annotations

import stat
import uuid
from collections.abc import Iterable
from pathlib import Path

_DEVICES = ("/dev", "/proc")


def write_text(path: Path, text: str) -> Path:
    """Write a file and its folder; return the path.

    A text that is not empty ends with a line's end. What UTF-8 cannot hold is written as an escape.
    A device, or a pipe, is written to as it is.
    """
    text = text.rstrip("\n") + "\n" if text else ""
    replace_file(path, text.encode("utf-8", errors="backslashreplace"))
    return path


def write_pieces(path: Path, pieces: Iterable[str]) -> Path:
    """Write a file of any size and its folder, as its pieces come; return the path.

    What UTF-8 cannot hold is written as an escape. A device, or a pipe, is written to as it is.
    """
    _replace(path, (each.encode("utf-8", errors="backslashreplace") for each in pieces))
    return path


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in the place of another in one step; its folder is created where it is missing.

    A link in the place of the file is replaced, not followed.
    """
    _replace(path, [content])


def _replace(path: Path, content: Iterable[bytes]) -> None:
    if _is_device(path):
        with path.open("wb") as device:
            device.writelines(content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = _staged(path, content)
    try:
        staged.replace(path)
    except OSError:
        staged.unlink(missing_ok=True)
        raise


def staged_file(path: Path, content: bytes) -> Path:
    """Write what is to take the place of a file into a new one beside it; return its path.

    Nobody can guess its name, so that no link can be waiting there.
    """
    return _staged(path, [content])


def _staged(path: Path, content: Iterable[bytes]) -> Path:
    staged = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with staged.open("xb") as file:
            file.writelines(content)
    except BaseException:
        # Also where the person interrupts: nothing half-written may stay.
        staged.unlink(missing_ok=True)
        raise
    return staged


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
