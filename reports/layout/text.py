"""A table as text: aligned columns that fit a page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from reports.columns import WIDTH
from reports.layout.cells import ABSENT, cells
from reports.layout.choice import problems_of
from reports.layout.fitting import GAP, Column, Fit, column_of, fit
from reports.layout.section import Section
from reports.layout.shortened import shortened

MARK = "!"
INDENT = 2
_NARROW = 40
_RED, _PLAIN = "\x1b[31m", "\x1b[0m"
_BREAKS = re.compile(r"(?<=[,;])(?=\S)")


def text_of(section: Section, *, is_wide: bool, is_colored: bool) -> str:
    """Return a table as lines of text.

    Rows in which something went wrong begin with `!`. Where columns do not fit, long names lose
    their middle, sentences go on in the next line, and spare columns are left out, which a last
    line says. Where that is not enough, the sentence of the last column stands below its row; and
    what does not fit even so has a line for each value.
    """
    marks = _marks(section)
    columns = {name: cells(section.rows[name]) for name in section.heads}
    sizes = {name: column_of(name, section.heads[name], each) for name, each in columns.items()}
    room = WIDTH - (INDENT if marks else 0)
    below: str | None = None
    if is_wide:
        widths = {name: _natural(size, columns[name]) for name, size in sizes.items()}
        found: Fit | None = Fit(widths)
    else:
        found = fit(sizes, section.spare, room)
        last = next(reversed(sizes), None)
        if last and sizes[last].is_wrapped and _is_narrow(found, last, sizes[last].widest):
            below = last
            found = fit({n: each for n, each in sizes.items() if n != last}, section.spare, room)
    if found is None:
        return _records(section, columns, marks)
    lines = _lines(found, sizes, columns)
    heads = _joined([sizes[name].head for name in found.widths], found.widths.values())
    if below:
        lines = _with_below(lines, columns[below], room)
        heads = f"{heads}\n{' ' * 2 * INDENT}{sizes[below].head}"
    lines = _marked(heads, lines, marks, is_colored=is_colored)
    if found.left_out:
        named = ", ".join(section.heads[name] for name in found.left_out)
        lines.append(f"left out to fit {WIDTH} columns: {named} (--wide shows all)")
    return "\n".join(lines)


def _is_narrow(found: Fit | None, name: str, widest: int) -> bool:
    """Return whether a sentence has no room beside its row, or becomes a tower of single words."""
    return found is None or found.widths.get(name, 0) < min(widest, _NARROW)


def _marks(section: Section) -> list[bool]:
    """Return which rows are marked; nothing where none is."""
    problems = problems_of(section)
    if problems is None or not pc.any(problems).as_py():
        return []
    marks: list[bool] = problems.to_pylist()
    return marks


def _marked(
    heads: str, lines: Sequence[str], marks: Sequence[bool], *, is_colored: bool
) -> list[str]:
    if not marks:
        return [heads, *lines]
    before, after = (_RED, _PLAIN) if is_colored else ("", "")
    heads, *lines = ("  " + each.replace("\n", "\n  ") for each in (heads, *lines))
    return [
        heads,
        *(
            f"{before}{MARK}{line[len(MARK) :]}{after}" if is_marked else line
            for line, is_marked in zip(lines, marks, strict=True)
        ),
    ]


def _joined(values: Iterable[str], widths: Iterable[int]) -> str:
    padded = (text.ljust(width) for text, width in zip(values, widths, strict=True))
    return (GAP * " ").join(padded).rstrip()


def _with_below(lines: Sequence[str], sentences: pa.ChunkedArray, room: int) -> list[str]:
    indent = " " * 2 * INDENT
    return [
        "\n".join([line, *(indent + each for each in _pieces(sentence, room - len(indent)))])
        if sentence != ABSENT
        else line
        for line, sentence in zip(lines, sentences.to_pylist(), strict=True)
    ]


def _natural(size: Column, column: pa.ChunkedArray) -> int:
    return max(len(size.head), pc.max(pc.utf8_length(column)).as_py() or 0)


def _lines(
    found: Fit, sizes: Mapping[str, Column], columns: Mapping[str, pa.ChunkedArray]
) -> list[str]:
    """Return a line a row; of a row whose sentences are too long several, as one text."""
    shown = {
        name: columns[name] if sizes[name].is_wrapped else shortened(columns[name], width)
        for name, width in found.widths.items()
    }
    names = list(shown)
    padded = [pc.utf8_rpad(shown[name], width=found.widths[name]) for name in names[:-1]]
    # The last one is not padded: no line ends in blanks.
    joined = pc.binary_join_element_wise(*padded, shown[names[-1]], GAP * " ")
    lines: list[str] = joined.to_pylist()
    for row in _rows_too_long(found, sizes, columns):
        values = [str(shown[name][row].as_py()) for name in names]
        lines[row] = _wrapped(values, list(found.widths.values()))
    return lines


def _rows_too_long(
    found: Fit, sizes: Mapping[str, Column], columns: Mapping[str, pa.ChunkedArray]
) -> list[int]:
    rows: set[int] = set()
    for name, width in found.widths.items():
        if sizes[name].is_wrapped:
            too_long = pc.greater(pc.utf8_length(columns[name]), width)
            rows.update(pc.indices_nonzero(too_long).to_pylist())
    return sorted(rows)


def _wrapped(values: Sequence[str], widths: Sequence[int]) -> str:
    pieces = [_pieces(value, width) for value, width in zip(values, widths, strict=True)]
    height = max(map(len, pieces))
    lines = []
    for number in range(height):
        row = [each[number] if number < len(each) else "" for each in pieces]
        lines.append(_joined(row, widths))
    return "\n".join(lines)


def _pieces(value: str, width: int) -> list[str]:
    """Return a value in lines that fit; lists break after their commas."""
    if len(value) <= width:
        return [value]
    broken = value if " " in value else _BREAKS.sub(" ", value)
    lines = textwrap.wrap(broken, width, break_on_hyphens=False) or [value]
    return lines if " " in value else [line.replace(" ", "") for line in lines]


def _records(
    section: Section, columns: Mapping[str, pa.ChunkedArray], marks: Sequence[bool]
) -> str:
    """Return a line for each value: for rows that fit no page."""
    heads = list(section.heads.values())
    wide = max(map(len, heads), default=0)
    room = WIDTH - wide - GAP
    blocks = []
    for number, row in enumerate(
        zip(*(each.to_pylist() for each in columns.values()), strict=True)
    ):
        lines = [MARK] if marks and marks[number] else []
        for head, value in zip(heads, row, strict=True):
            first, *rest = _pieces(value, room)
            lines.append(f"{head.ljust(wide)}{GAP * ' '}{first}")
            lines += [f"{' ' * (wide + GAP)}{each}" for each in rest]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) or (GAP * " ").join(heads)
