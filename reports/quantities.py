"""Counts, sizes, lengths of time and sets of numbers in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DURATIONS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
"""Units of time in milliseconds, the largest first."""
_UNITS = ("B", "kB", "MB", "GB", "TB")


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a number and its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size_of(size: int) -> str:
    """Return bytes in the largest unit that fits, by thousands; fewer than none with a sign."""
    if size < 0:
        return f"-{size_of(-size)}"
    amount = float(size)
    for unit in _UNITS[:-1]:
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} {_UNITS[-1]}"


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ``0, 3-5, 9``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def duration(milliseconds: int | None) -> str | None:
    """Return a length of time in the two largest units it has: `2 h 5 min`."""
    if milliseconds is None:
        return None
    if milliseconds < DURATIONS[-1][0]:
        return f"{milliseconds} ms"
    parts = []
    for size, unit in DURATIONS:
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts[:2])
