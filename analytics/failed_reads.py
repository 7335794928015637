"""Reads that fail: which are tried again, and what is said in the end.

An error of input or output is no fact about a dump. What passes by itself (a store that throttles,
a connection that was cut) is waited for and then an error, never "the dump lacks this". Only what
the system refuses for good to the process that lists a dump may be told as absent, with its reason.
"""

from __future__ import annotations

import errno
import random
import re
import time
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from analytics.errors import GroupscopeError, InputUnreadableError, ReadFailedError

if TYPE_CHECKING:
    from collections.abc import Callable

Read = TypeVar("Read")

PAUSES: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Seconds between tries, give or take a half: tasks that were refused together come back apart."""

_LONGEST: Final = 30.0
"""Seconds after which no other try begins: who waits for a store that is not there is told so."""

_PASSES: Final = frozenset(
    getattr(errno, name)
    for name in (
        *("EAGAIN", "EBUSY", "EINTR", "EMFILE", "ENFILE", "ETIMEDOUT", "EPIPE"),
        *("ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EHOSTDOWN", "EHOSTUNREACH"),
        *("ENETDOWN", "ENETRESET", "ENETUNREACH", "ENOTCONN"),
    )
    if hasattr(errno, name)
)
_ONCE_MORE: Final = frozenset((errno.EIO, errno.ESTALE))
"""A disk, or a network's that gave up waiting: one more try tells which."""

# What stores say of themselves. Arrow hands on the SDK's words without a number of the system's:
# names of `Aws::S3::S3Errors`, and the status where it knows no name.
_WORDS: Final = re.compile(
    r"SLOW_?DOWN|THROTTL|SERVICE_?UNAVAILABLE|INTERNAL_?(FAILURE|(SERVER_?)?ERROR)"
    r"|REQUEST_?TIME(D_?OUT|OUT)|NETWORK_?CONNECTION|TOO_?MANY_?REQUESTS|RATE_?EXCEEDED"
    r"|reduce your request rate|HTTP (status|response code)[ :]*(429|500|502|503|504)\b"
    r"|curlCode: (7|18|28|52|55|56)\b|connection (was )?(reset|closed)|timed out",
    re.IGNORECASE,
)
_NOTHING_THERE: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG))


def passes(error: OSError) -> bool:
    """Return whether an error is of the moment: of a store, a network, or of too many open files.

    Args:
        error: Of the system, or of Arrow, which gives words where it has no number.
    """
    if error.errno is not None and error.errno not in _ONCE_MORE:
        return error.errno in _PASSES
    return _WORDS.search(str(error)) is not None


def is_nothing_there(error: OSError) -> bool:
    """Return whether the system says that nothing is there."""
    return error.errno in _NOTHING_THERE


def tried_again(read: Callable[[], Read], name: str, position: int | None = None) -> Read:
    """Return what a read gives, tried again with pauses while its error is of the moment.

    Args:
        read: Raises OSError where it fails; another try begins anew.
        name: The file or folder.
        position: The first byte that is read, where that is known.

    Raises:
        ReadFailedError: It failed to the end with an error of the moment.
        InputUnreadableError: The system refuses for good.
    """
    tries, begin = 0, monotonic()
    while True:
        try:
            return read()
        except OSError as error:
            most = len(PAUSES) if passes(error) else int(error.errno in _ONCE_MORE)
            if tries >= most or monotonic() > begin + _LONGEST:
                raise read_error(error, name, position) from error
        time.sleep(PAUSES[tries] * (0.5 + random.random()))  # noqa: S311 - no secret
        tries += 1


def is_of_reading(error: OSError) -> bool:
    """Return whether a disk, a store or a network fails: a damaged file of Parquet is no such.

    Arrow raises the same class for both.
    """
    return passes(error) or error.errno in _ONCE_MORE


def read_error(error: OSError, name: str, position: int | None = None) -> GroupscopeError:
    """Return the error that names a file, where in it the read failed, and why."""
    if passes(error):
        return read_failed(error, name, position)
    return InputUnreadableError(_words(error, name, position))


def read_failed(error: OSError, name: str, position: int | None = None) -> ReadFailedError:
    """Return the same for a read that may succeed another time."""
    return ReadFailedError(
        f"{_words(error, name, position)}: this says nothing about what is in it; try again"
    )


def _words(error: OSError, name: str, position: int | None) -> str:
    where = "" if position is None else f" at byte {position}"
    why = str(error.strerror or error).partition("\n")[0]
    return f"{name}: cannot be read{where} ({why})"


def failed_here(error: GroupscopeError) -> ReadFailedError:
    """Return what is said where one process can open a file and another, or a later one, cannot.

    The file was listed and could be opened then: that it cannot be read here tells nothing of it.
    """
    if isinstance(error, ReadFailedError):
        return error
    return ReadFailedError(
        f"{error}: it was there when the dump was listed, so nothing is concluded from it (is the "
        "dump changing, or not on the disk of every machine?)"
    )


def shrunk(name: str, size: int, listed: int) -> ReadFailedError:
    """Return what is said of a file that has become shorter: of no log that only grows.

    A broker that follows another leader cuts its log off, and a copy elsewhere may be an older one.
    """
    return ReadFailedError(
        f"{name}: cannot be read beyond byte {size}: it had {listed} bytes when it was listed "
        "(does a broker still write to it, or has another machine an older copy?)"
    )
