"""The loops that number the partitions of groups: a table of slots, found by what they hold.

A partition of a group is three numbers: of its group's name, of its topic's, and its own. They are
numbered in the order in which they are seen first. A slot holds a number + 1, or 0 where it is
free; what is not in its slot is in the next free one after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.wire.compiled import compiled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analytics.wire.compiled import Numbers as Given

    Numbers = NDArray[np.int64]

GROUP, TOPIC, PARTITION = range(3)
"""What is told of each commit, and kept of each partition of a group."""
PARTS: Final = 3

_SPREAD: Final = 7919
_BITS: Final = (1 << 31) - 1
_FIRST, _SECOND = 0x5BD1E995, 0x27D4EB2D
"""Odd numbers with bits all over: neighbours do not lie beside each other in the slots, where they
would make long runs to look through. No product needs more than 64 bits."""


def _slot_of(parts: Given, at: int, slots: Numbers) -> int:
    """Return the first slot to look into; there are a power of two of them."""
    mixed = (parts[at + GROUP] * _SPREAD + parts[at + TOPIC]) * _SPREAD + parts[at + PARTITION]
    mixed = ((mixed ^ (mixed >> 31)) & _BITS) * _FIRST
    mixed = ((mixed ^ (mixed >> 15)) & _BITS) * _SECOND
    return (mixed ^ (mixed >> 13)) & (len(slots) - 1)


_READ: Final = "Array(int64, 1, 'C', readonly=True)"


@compiled(f"int64({_READ}, int64, int64[::1], int64[::1], int64[::1])", _slot_of)
def number_keys(parts: Given, known: int, kept: Numbers, slots: Numbers, numbers: Numbers) -> int:
    """Number partitions of groups, in order; return how many are known then.

    Args:
        parts: `PARTS` numbers for each commit.
        known: How many are known already.
        kept: `PARTS` numbers for each that is known: must have room for one more each commit.
        slots: Twice as many as may be known then, a power of two; changed.
        numbers: Where the number of each commit's partition goes.
    """
    for row in range(len(parts) // PARTS):
        at = row * PARTS
        slot = _slot_of(parts, at, slots)
        while True:
            number = slots[slot] - 1
            if number < 0:
                number = known
                known += 1
                slots[slot] = known
                for part in range(PARTS):
                    kept[number * PARTS + part] = parts[at + part]
                break
            of = number * PARTS
            if (
                kept[of + PARTITION] == parts[at + PARTITION]
                and kept[of + GROUP] == parts[at + GROUP]
                and kept[of + TOPIC] == parts[at + TOPIC]
            ):
                break
            slot = (slot + 1) & (len(slots) - 1)
        numbers[row] = number
    return known


@compiled(f"int64({_READ}, int64[::1])", _slot_of)
def fill_slots(kept: Given, slots: Numbers) -> int:
    """Give each known partition a slot among new ones, which are free; return how many."""
    count = len(kept) // PARTS
    for number in range(count):
        slot = _slot_of(kept, number * PARTS, slots)
        while slots[slot] > 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = number + 1
    return count
