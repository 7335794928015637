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
    byte = data[at]
    after = at + 1
    more = byte > 0x7F
    if not more.any():
        raw = byte.astype(np.int64)
        return (raw >> 1) ^ -(raw & 1), after, None
    raw, after, endless = _longer(data, byte, after, more, longest)
    # An arithmetic shift would copy the sign bit of a 64-bit value.
    half = (raw.view(np.uint64) >> np.uint64(1)).view(np.int64)
    return half ^ -(raw & 1), after, endless


def _longer(
    data: NDArray[np.uint8],
    byte: NDArray[np.uint8],
    after: NDArray[np.int64],
    more: NDArray[np.bool_],
    longest: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_] | None]:
    raw = (byte & 0x7F).astype(np.int64)
    rows: NDArray[np.int64] | slice = slice(None)
    if np.count_nonzero(more) * 4 < more.size:
        rows = np.flatnonzero(more)
    value, place, going = raw[rows], after[rows], more[rows]
    for shift in range(7, 7 * longest, 7):
        byte = data[place]
        # Rows that have ended add nothing and stay where they are.
        value |= np.where(going, byte & 0x7F, np.uint8(0)).astype(np.int64) << shift
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
