"""Checksums over stretches of files."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _hashlib import HASH

    from analytics.dump.files.storage import ByteSource

_BLOCK: Final = 1 << 20


def add_bytes(sums: HASH, source: ByteSource, start: int, end: int) -> None:
    """Go on with a checksum over the bytes of a file from ``start`` to before ``end``."""
    block = memoryview(bytearray(_BLOCK))
    while start < end:
        piece = block[: end - start]
        source.fill(piece, start)
        sums.update(piece)
        start += len(piece)


def digest_between(source: ByteSource, start: int, end: int) -> str:
    """Return the SHA-256 of the bytes of a file from ``start`` to before ``end``."""
    sums = sha256()
    add_bytes(sums, source, start, end)
    return sums.hexdigest()
