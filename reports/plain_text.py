"""Text that fits a page: aligned columns, as Kafka's own tools print them, and sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 120
"""A page's."""
_GAP = "  "
_NARROWEST, _BELOW = 24, 4
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
    """Align rows under their heads; columns of numbers to the right.

    Where they are wider than a page, the last column goes on in lines of its own.
    """
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
    room = WIDTH - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
    if room >= widths[-1]:
        return [_line(line, widths, numeric) for line in (list(heads), *texts)]
    indent = WIDTH - room if room >= _NARROWEST else _BELOW
    lines = [_line(list(heads), widths, numeric)] if room >= _NARROWEST else []
    if not lines:
        lines = [_line(list(heads[:-1]), widths, numeric), f"{' ' * _BELOW}{heads[-1]}"]
    for line in texts:
        first = _line(line[:-1], widths, numeric)
        last = wrapped(line[-1], WIDTH - indent) or [""]
        if room >= _NARROWEST:
            lines.append(f"{first.ljust(indent)}{last.pop(0)}".rstrip())
        else:
            lines.append(first)
        lines += [f"{' ' * indent}{each}" for each in last if each != _ABSENT]
    return lines


def _line(texts: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    return _GAP.join(
        text.rjust(width) if right else text.ljust(width)
        for text, width, right in zip(texts, widths, numeric, strict=False)
    ).rstrip()


def paragraph(text: str) -> list[str]:
    """Return a sentence in lines that fit a page, the first with a dash."""
    first, *rest = wrapped(text, WIDTH - len(_GAP)) or [""]
    return [f"- {first}", *(f"  {each}" for each in rest)]


def wrapped(text: str, width: int) -> list[str]:
    """Return a text in lines; what has no blank, such as a path, stays whole."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


# Sentences beside tables, in lines that fit the page; or in place of a table without rows.


def paragraphs(sentences: Iterable[str]) -> str:
    """Return sentences one below the other; what is longer than a line goes on indented.

    A name in them can do nothing to a terminal.
    """
    return "\n".join(
        textwrap.fill(
            printable(each.replace("\n", " ")),
            WIDTH,
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        for each in sentences
    )


def nothing(sentence: str, said: Mapping[str, Any]) -> str:
    """Return what to say in place of rows.

    Args:
        sentence: That there is nothing.
        said: What the answer says besides: `cannot_tell` has reasons for which there may be
            something all the same.
    """
    reasons = said.get("cannot_tell") or ()
    if not reasons:
        return sentence
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return paragraphs([f"Cannot tell: {reasons[0]}{more}"])
