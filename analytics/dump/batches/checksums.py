"""Checksums of batches: CRC-32C over a magic 2 batch, CRC-32 over a magic 0 or 1 message."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

import numpy as np
from crc32c import crc32c

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from analytics.dump.files.byte_source import ByteSource

_FROM: Final = (16, 16, 21)
"""Byte of the entry from which the checksum counts, by format number."""
_BLOCK: Final = 1 << 20


def checksums(
    raw: bytearray,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    magic: NDArray[np.int8],
) -> NDArray[np.uint32]:
    """Return the true checksums of entries that lie in a buffer."""
    if (magic == 2).all():
        pairs = zip((starts + _FROM[2]).tolist(), ends.tolist(), strict=True)
        found = [crc32c(raw[start:end]) for start, end in pairs]
    else:
        rows = zip(starts.tolist(), ends.tolist(), magic.tolist(), strict=True)
        found = [_function(kind)(raw[start + _FROM[kind] : end], 0) for start, end, kind in rows]
    return np.array(found, np.uint32)


def checksum_in_file(source: ByteSource, position: int, size: int, magic: int) -> int:
    """Return the true checksum of one entry of any size, read in pieces."""
    function, value = _function(magic), 0
    start, end = position + _FROM[magic], position + size
    block = memoryview(bytearray(min(_BLOCK, max(end - start, 1))))
    while start < end:
        piece = block[: end - start]
        source.fill(piece, start)
        value = function(piece, value)
        start += len(piece)
    return value


def _function(magic: int) -> Callable[[bytearray | memoryview, int], int]:
    return crc32c if magic == 2 else zlib.crc32
