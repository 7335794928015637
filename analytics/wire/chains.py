"""Very long arrays in few rows: where each element begins, found without a step per element.

In lock-step an array costs one round per element, which is nothing while many rows share the round
and far too much for one row with a million elements. Here the element is read at *every* byte of a
window at once, which gives each byte's successor, and the chain of elements is then a walk over
that table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analytics.wire.cursor import Cursor, Journal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.wire.fields import Reader

_WINDOW = 1 << 16
_BROKEN = -1


def element_starts(
    cursor: Cursor, row: int, count: int, item: Reader
) -> tuple[NDArray[np.int64], int]:
    """Find where up to ``count`` elements of one row begin, from its position on.

    Returns:
        The starts of the elements that can be read, and the position behind the last of them.
        Fewer than ``count`` starts: the next element breaks a bound.
    """
    position, end = int(cursor.position[row]), int(cursor.end[row])
    starts: list[int] = []
    while len(starts) < count and position < end:
        base = position
        successor = _successors(cursor, base, min(base + _WINDOW, end), end, item)
        while len(starts) < count and position - base < len(successor):
            after = successor[position - base]
            if after == _BROKEN:
                return np.array(starts, np.int64), position
            starts.append(position)
            position = after
    return np.array(starts, np.int64), position


def _successors(cursor: Cursor, first: int, last: int, end: int, item: Reader) -> list[int]:
    """Where an element that began at each byte of a window would end."""
    size = last - first
    everywhere = Cursor(
        cursor.buffer,
        np.arange(first, last, dtype=np.int64),
        np.full(size, end, np.int64),
        np.arange(size, dtype=np.int64),
        Journal.of(size),
    )
    item.read(everywhere)
    successors: list[int] = np.where(everywhere.dead, _BROKEN, everywhere.position).tolist()
    return successors
