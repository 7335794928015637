"""Rows as aligned columns, the way Kafka's own tools print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_GAP = "  "
_ABSENT = "-"


def cell(value: object) -> str:
    """One value as text: numbers with thousands separators, null as a hyphen, no line breaks."""
    if value is None or value == "":
        return _ABSENT
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return printable(str(value))


def printable(text: str) -> str:
    """Return text that a terminal only shows: names of groups and files are hostile input."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def columns(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Align rows under their heads; columns of numbers to the right."""
    rows = [tuple(row) for row in rows]
    texts = [[cell(value) for value in row] for row in rows]
    numeric = [
        bool(rows) and all(isinstance(row[place], int | None) for row in rows)
        for place in range(len(heads))
    ]
    widths = [
        max(len(text) for text in (head, *(row[place] for row in texts)))
        for place, head in enumerate(heads)
    ]
    return [
        _GAP.join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in (list(heads), *texts)
    ]
