"""What the system refused, in one line: a file, room on a disk, memory.

An error in Arrow, in a worker of Spark or in the JVM says so in its own words only, and not which
file it was; what it says comes from the system all the same.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from typing import Final

_TEMPORARY = "--out or the folder of temporary files (TMPDIR, spark.local.dir)"
_KILLED = "something killed it, often the system for want of memory"
_DAMAGED = "a file of the workspace is damaged: decode and replay the dump again"
_ADVICE: Mapping[str, str] = {
    os.strerror(errno.ENOSPC): f"make room for {_TEMPORARY}",
    os.strerror(errno.EDQUOT): f"make room for {_TEMPORARY}",
    os.strerror(errno.EROFS): f"{_TEMPORARY} cannot be written to",
    "CANNOT_READ_FILE_FOOTER": _DAMAGED,
    "FAILED_READ_FILE": _DAMAGED,
    "is not a Parquet file": _DAMAGED,
    "Java heap space": "give Spark more memory: --conf spark.driver.memory=4g",
    "GC overhead limit exceeded": "give Spark more memory: --conf spark.driver.memory=4g",
    **dict.fromkeys(
        (
            "Python worker exited unexpectedly",
            "Python worker failed to connect back",
            "EOFException occurred while reading the port number from pyspark.daemon",
        ),
        f"{_KILLED}; fewer workers need less: --master 'local[1]'",
    ),
    "ExecutorLostFailure": f"an executor was lost: {_KILLED}",
}
_LOST: Final = (
    "the connection to Spark was lost: its JVM ended before the work was done, often because the "
    "system had no memory left for it (--conf spark.driver.memory=2g takes less) or because "
    "someone stopped it"
)
_LOST_WORDS: Final = (
    "Answer from Java side is empty",
    "Error while sending or receiving",
    "Error while receiving",
    "An error occurred while trying to connect to the Java server",
    "SparkContext was shut down",
    "Cannot call methods on a stopped SparkContext",
)


def refusal(error: Exception) -> str | None:
    """Return the line, None where the error is none of the system's."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    words = str(error)
    for phrase, advice in _ADVICE.items():
        if phrase in words:
            return f"{phrase}: {advice}"
    return _LOST if _is_of_lost_connection(error) else None


def _is_of_lost_connection(error: BaseException) -> bool:
    """Return whether Spark's JVM is gone; what is closed after that fails, too."""
    if "py4j" not in sys.modules:
        return False
    if isinstance(error, ConnectionRefusedError | ConnectionResetError):
        return True
    words = str(error)
    if any(phrase in words for phrase in _LOST_WORDS):
        return True
    before = error.__cause__ or error.__context__
    return before is not None and _is_of_lost_connection(before)
