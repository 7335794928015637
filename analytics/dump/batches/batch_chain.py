"""Where the batches of a stretch of a file begin, one after the other (``FileLogInputStream``).

`header_walk` follows the chain through a whole file in a second, before a compiler would be loaded;
this walk is for those who read what lies between the headers too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.batches.headers import LOG_OVERHEAD, SMALLEST
from analytics.wire.compiled import BYTES, compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.wire.compiled import Bytes

_SIZE_AT: Final = 8
LEAST_SIZE: Final = int(SMALLEST[0]) - LOG_OVERHEAD
"""What the smallest entry of any format gives as its size."""
_AT_ONCE: Final = 1 << 16


def chain_starts(data: NDArray[np.uint8], limit: int) -> NDArray[np.int64]:
    """Return where entries begin if every size is right, from the first byte on.

    Args:
        data: Bytes of a file, with more than `LOG_OVERHEAD` of any bytes after ``limit``.
        limit: Entries that begin here or later are not looked for.
    """
    parts, at = [np.empty(0, np.int64)], 0
    while at < limit:
        starts = np.empty(min(_AT_ONCE, (limit - at) // int(SMALLEST[0]) + 1), np.int64)
        found, at = follow_chain(starts.size, data, at, limit, starts)
        parts.append(starts[:found])
    return np.concatenate(parts)


@compiled(f"UniTuple(int64, 2)({BYTES}, int64, int64, int64[::1])")
def follow_chain(data: Bytes, at: int, limit: int, starts: NDArray[np.int64]) -> tuple[int, int]:
    """Fill in where entries begin, from ``at`` on; return how many, and where to go on."""
    for found in range(starts.size):
        starts[found] = at
        size = 0
        for place in range(at + _SIZE_AT, at + LOG_OVERHEAD):
            size = size << 8 | data[place]
        # A size too small for any entry leads nowhere: the chain breaks where it stands.
        at = limit if size < LEAST_SIZE else at + LOG_OVERHEAD + size
        if at >= limit:
            return found + 1, limit
    return starts.size, at


def size_fields(data: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return what would be the size of an entry that begins at each position."""
    return np.ndarray((data.size - LOG_OVERHEAD + 1,), ">u4", data, _SIZE_AT, strides=(1,))
