"""Varints of record fields, one per row: base 128, least significant first, zigzag (ByteUtils)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

VARINT: Final = 5
"""Bytes of the longest varint of 32 bits."""
VARLONG: Final = 10
"""Bytes of the longest of 64 bits."""


def read_varints(
    data: NDArray[np.uint8], at: NDArray[np.int64], longest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_] | None]:
    """Read one signed varint per row.

    Args:
        data: The buffer; it goes on ``longest`` bytes after each position.
        at: Where each varint begins.
        longest: `VARINT` or `VARLONG`.

    Returns:
        The values, the positions after them, and which rows never end within ``longest`` bytes
        (None where none).
    """
    first = data.take(at)
    after = at + 1
    more = first >> 7
    if not more.any():
        return _signed(first, np.int8), after, None
    second = data.take(after)
    if (more & (second >> 7)).any():
        raw, after, endless = _longer(data, first, after, longest)
        return _signed(raw, np.int64), after, endless
    raw = (second * more).astype(np.uint16)
    raw <<= 7
    raw |= first & 0x7F
    after += more
    return _signed(raw, np.int16), after, None


def _signed(raw: NDArray[np.unsignedinteger], signed: type[np.signedinteger]) -> NDArray[np.int64]:
    """Undo the zigzag in as few bytes as the values have; narrow columns are fast ones."""
    return ((raw >> 1).view(signed) ^ -(raw & 1).view(signed)).astype(np.int64, copy=False)


def _longer(
    data: NDArray[np.uint8], first: NDArray[np.uint8], after: NDArray[np.int64], longest: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.bool_] | None]:
    more = first > 0x7F
    raw = (first & 0x7F).astype(np.uint64)
    rows: NDArray[np.int64] | slice = slice(None)
    if np.count_nonzero(more) * 4 < more.size:
        rows = np.flatnonzero(more)
    value, place, going = raw[rows], after[rows], more[rows]
    for shift in range(7, 7 * longest, 7):
        byte = data[place]
        # Rows that have ended add nothing and stay where they are.
        value |= np.where(going, byte & 0x7F, np.uint8(0)).astype(np.uint64) << np.uint64(shift)
        place += going
        going = going & (byte > 0x7F)
        if not going.any():
            break
    raw[rows], after[rows] = value, place
    if not going.any():
        return raw, after, None
    endless = np.zeros(raw.size, np.bool_)
    endless[rows] = going
    return raw, after, endless
