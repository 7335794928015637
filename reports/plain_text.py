"""Text that fits a page: aligned columns, as Kafka's own tools print them, and sentences.

Counts, sizes, lengths of time and sets of numbers in words.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


WIDTH = 120
"""How many columns a line has where nothing says how wide the page is."""
_GAP = "  "
_NARROWEST, _BELOW = 24, 4
_ABSENT = "-"
_COMMAND_LAST = re.compile(r": (groupscope [a-z]+ .*)$")


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


@dataclass(frozen=True)
class Aligned:
    """Rows under their heads, columns of numbers to the right.

    Where they are wider than the page, the last column goes on in lines of its own; where that is
    not enough, columns before it are left out, which a last line says.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Bullet:
    """A sentence that begins with a dash."""

    text: str


Block = str | Aligned | Bullet
"""What a text is made of: a line, a table, a sentence of a list."""


def lines_of(blocks: Iterable[Block], width: int) -> list[str]:
    """Return lines that have no more columns than the page."""
    return [line for each in blocks for line in _laid_out(each, width)]


def _laid_out(block: Block, width: int) -> list[str]:
    match block:
        case Aligned(heads=heads, rows=rows):
            return columns(heads, rows, width, "--format json has all")
        case Bullet(text=text):
            return paragraph(text, width)
    return hanging(block, width)


def columns(
    heads: Sequence[str], rows: Iterable[Sequence[object]], width: int, all_are: str
) -> list[str]:
    """Return the lines of `Aligned`; `all_are` says where columns are that are left out."""
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
    kept = _kept_columns(widths, width)
    lines = _aligned(
        [[line[place] for place in kept] for line in (list(heads), *texts)],
        [widths[place] for place in kept],
        [numeric[place] for place in kept],
        width,
    )
    if len(kept) < len(widths):
        left_out = ", ".join(head for place, head in enumerate(heads) if place not in kept)
        lines += wrapped(f"left out to fit {width} columns: {left_out} ({all_are})", width)
    return lines


def _kept_columns(widths: Sequence[int], width: int) -> list[int]:
    """Return the places of the columns that fit; the first and the last are never left out."""
    kept = list(range(len(widths)))
    while len(kept) > 2:
        before = [widths[place] for place in kept[:-1]]
        if sum(before) + len(_GAP) * (len(before) - 1) <= width:
            break
        del kept[-2]
    return kept


def _aligned(
    texts: Sequence[Sequence[str]], widths: Sequence[int], numeric: Sequence[bool], width: int
) -> list[str]:
    heads, *rows = texts
    room = width - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
    if room >= widths[-1]:
        return [_line(line, widths, numeric) for line in texts]
    indent = width - room if room >= _NARROWEST else _BELOW
    lines = [_line(heads, widths, numeric)] if room >= _NARROWEST else []
    if not lines:
        lines = [_line(heads[:-1], widths, numeric), f"{' ' * _BELOW}{heads[-1]}"]
    for line in rows:
        first = _line(line[:-1], widths, numeric)
        last = wrapped(line[-1], width - indent) or [""]
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


def paragraph(text: str, width: int) -> list[str]:
    """Return a sentence in lines that fit the page, the first with a dash."""
    first, *rest = wrapped(text, width - len(_GAP)) or [""]
    return [f"- {first}", *(f"  {each}" for each in rest)]


def wrapped(text: str, width: int) -> list[str]:
    """Return a text in lines; what has no blank, such as a path, stays whole."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def hanging(text: str, width: int) -> list[str]:
    """Return a line as it is where it fits the page; else what is too long goes on further in.

    What has no blank, such as a path, stays whole.
    """
    if len(text) <= width:
        return [text]
    indent = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text,
        width,
        subsequent_indent=f"{indent}{_GAP}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def message_lines(message: str, width: int | None) -> list[str]:
    """Return a message in lines that fit the page.

    A command that ends it stays whole, in a line of its own, since a shell is to take it.

    Args:
        message: One line.
        width: How many columns a line has; None where a message is a line, however long.
    """
    if width is None or len(message) <= width:
        return [message]
    command = _COMMAND_LAST.search(message)
    if command is None:
        return hanging(message, width)
    return [*hanging(f"{message[: command.start()]}:", width), f"{_GAP}{command[1]}"]


# Sentences beside tables, in lines that fit the page; or in place of a table without rows.


def paragraphs(sentences: Iterable[str], width: int) -> str:
    """Return sentences one below the other; what is longer than a line goes on indented.

    A name in them can do nothing to a terminal.
    """
    return "\n".join(
        textwrap.fill(
            printable(each.replace("\n", " ")),
            width,
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        for each in sentences
    )


def nothing(sentence: str, said: Mapping[str, Any], width: int) -> str:
    """Return what to say in place of rows.

    Args:
        sentence: That there is nothing.
        width: How many columns a line has.
        said: What the answer says besides: `cannot_tell` has reasons for which there may be
            something all the same.
    """
    reasons = said.get("cannot_tell") or ()
    if not reasons:
        return sentence
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return paragraphs([f"Cannot tell: {reasons[0]}{more}"], width)


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
