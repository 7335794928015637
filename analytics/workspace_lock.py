"""One run at a time writes into a workspace: a lock on a file in it, held until the command ends.

A lock goes with its process, however that ends. On file systems of other machines there is none.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from analytics.errors import WorkspaceError

_BUSY: Final = frozenset({errno.EWOULDBLOCK, errno.EACCES})


class WorkspaceLocks:
    """The locks that a command holds."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], int] = {}

    def take(self, descriptor: int) -> bool:
        """Lock an open file until `release`; return whether it is locked only now.

        Raises:
            BlockingIOError: Another process has it.
        """
        status = os.fstat(descriptor)
        place = status.st_dev, status.st_ino
        if place in self._held:
            os.close(descriptor)
            return False
        try:
            is_locked = _lock(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            raise
        self._held[place] = descriptor
        return is_locked

    def release(self) -> None:
        """Give all of them back."""
        while self._held:
            _, descriptor = self._held.popitem()
            os.close(descriptor)


_OF_COMMAND: ContextVar[WorkspaceLocks | None] = ContextVar("locks of the command", default=None)


@contextmanager
def locks_of_command() -> Iterator[None]:
    """Hold what is locked within until the end."""
    locks = WorkspaceLocks()
    token = _OF_COMMAND.set(locks)
    try:
        yield
    finally:
        _OF_COMMAND.reset(token)
        locks.release()


@contextmanager
def sole_writer(location: str, file: Path) -> Iterator[bool]:
    """Lock a workspace; where no command holds its locks to its end, only for what is within.

    Args:
        location: The workspace as the person named it.
        file: The file that is locked; it is created where it is missing.

    Yields:
        Whether this run has just become the only one: what lies there half-written is of no run
        that lives.

    Raises:
        WorkspaceError: Another run writes into it.
        OSError: The file cannot be created.
    """
    kept = _OF_COMMAND.get()
    locks = WorkspaceLocks() if kept is None else kept
    try:
        is_new = locks.take(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
    except BlockingIOError as error:
        message = (
            f"{location} is in use by another groupscope run: wait until that ends, or choose "
            "another --out"
        )
        raise WorkspaceError(message) from error
    try:
        yield is_new
    finally:
        if kept is None:
            locks.release()


def _lock(descriptor: int) -> bool:
    """Lock a file; return whether its file system knows locks.

    Raises:
        BlockingIOError: Another process has it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            raise BlockingIOError(error.errno, error.strerror) from error
        return False
    return True
