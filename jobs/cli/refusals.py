"""What the system refused, in one line: a file, room on a disk, memory.

An error in Arrow, in a worker of Spark or in the JVM says so in its own words only, and not which
file it was; what it says comes from the system all the same.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

_TEMPORARY = "--out or the folder of temporary files (TMPDIR, spark.local.dir)"
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
}


def refusal(error: Exception) -> str | None:
    """Return the line, None where the error is none of the system's."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    words = str(error)
    for phrase, advice in _ADVICE.items():
        if phrase in words:
            return f"{phrase}: {advice}"
    return None
