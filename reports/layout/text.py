"""A table as text: aligned columns that fit a page, or are left out where they do not."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import ABSENT, SHORTEST, cells, shortened
from reports.layout.output_format import Paper
from reports.layout.section import Section, problems_of
from reports.plain_text import wrapped

MARK = "!"
INDENT = 2
_NARROW = 40
_RED, _PLAIN = "\x1b[31m", "\x1b[0m"
_BREAKS = re.compile(r"(?<=[,;])(?=\S)")
_SEPARATORS = re.compile("[,;]")
_LONGEST_LIST = 4
"""A list in text takes so many lines; --wide and formats for programs have it whole."""

_GAP = 2
_NARROWEST_WORDS, _LEAST_WORDS = 24, 16
_WIDEST_NAME = 32
"""One long name among short ones takes no more; where most are long they may be as long."""
_NAMES = {"group", "topic", "host", "client_host", "member", "process", "metadata", "client"}
_LISTS = {"assignment", "assignments", "current_assignment", "target_assignment", "partitions"}
_KEYS, _SHORTEST_KEY = {"group", "group_id", "topic"}, 24
"""What rows are looked up by is cut last."""
_WHOLE = {"setting"}
"""Kafka's own words: cut short they are nobody's."""
_LONGEST_WORD = 24
"""Such as `would_have_lost`; what is longer and has no blank is somebody's name."""
_TIME = r"^\d{4}-\d\d-\d\dT[\d:.]+Z$"


def text_of(section: Section, paper: Paper, *, is_wide: bool) -> str:
    """Return a table as lines of text, a row under the other.

    Rows in which something went wrong begin with `!`. Where columns do not fit, long names lose
    their middle, lists their end, sentences go on in the next line, and the least columns are left
    out, which a last line says. Where the sentence of the last column has no room, it stands below
    its row.
    """
    marks = _marks(section)
    columns = {name: cells(section.rows[name]) for name in section.heads}
    sizes = {name: _column_of(name, section.heads[name], each) for name, each in columns.items()}
    width = paper.width
    room = width - (INDENT if marks else 0)
    below: str | None = None
    if is_wide:
        fit = Fit({name: _natural(size, columns[name]) for name, size in sizes.items()})
    else:
        fit, below = _fit_or_below(sizes, section.spare, room)
    lines = _lines(fit, sizes, columns)
    heads = _joined([sizes[name].head for name in fit.widths], fit.widths.values())
    if below:
        lines = _with_below(lines, columns[below], room)
        heads = f"{heads}\n{' ' * 2 * INDENT}{sizes[below].head}"
    lines = _marked(heads, lines, marks, is_colored=paper.is_colored)
    if fit.left_out:
        named = ", ".join(section.heads[name] for name in fit.left_out)
        lines += wrapped(f"left out to fit {width} columns: {named} (--wide shows all)", width)
    return "\n".join(lines)


def _fit_or_below(
    sizes: Mapping[str, Column], spare: Sequence[str], room: int
) -> tuple[Fit, str | None]:
    """Return the columns that fit, and the last one where it stands below its row instead."""
    fit = _fit(sizes, spare, room)
    last = next(reversed(list(sizes)), None)
    if last and sizes[last].is_wrapped and _is_narrow(fit, last, sizes[last].widest):
        above = {name: each for name, each in sizes.items() if name != last}
        if above:
            return _fit(above, spare, room) or _fewest(above, spare, room), last
    return fit or _fewest(sizes, spare, room), None


def _is_narrow(found: Fit | None, name: str, widest: int) -> bool:
    """Return whether a sentence has no room beside its row, or becomes a tower of single words."""
    return found is None or found.widths.get(name, 0) < min(widest, _NARROW)


def _marks(section: Section) -> list[bool]:
    """Return which rows are marked; nothing where none is."""
    problems = problems_of(section)
    if not pc.any(problems).as_py():
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
    return (_GAP * " ").join(padded).rstrip()


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
    joined = pc.binary_join_element_wise(*padded, shown[names[-1]], _GAP * " ")
    lines: list[str] = joined.to_pylist()
    for row in _rows_too_long(found, sizes, columns):
        pieces = [
            (_list_pieces if sizes[name].is_list else _pieces)(str(shown[name][row].as_py()), width)
            for name, width in found.widths.items()
        ]
        lines[row] = _wrapped(pieces, list(found.widths.values()))
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


def _wrapped(pieces: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
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


def _list_pieces(value: str, width: int) -> list[str]:
    """Return the first items of a list in lines that fit, and how many more there are."""
    lines = _pieces(value, width)
    if len(lines) <= _LONGEST_LIST:
        return lines
    kept = lines[: _LONGEST_LIST - 1]
    rest = value[sum(map(len, kept)) :]
    return [*kept, f"and {len(_SEPARATORS.findall(rest)) + 1:,} more"]


@dataclass(frozen=True)
class Column:
    """How wide a column is.

    Attributes:
        head: Its head.
        widest: As wide as its longest value.
        narrowest: What it may be cut down to.
        is_wrapped: Values that are too long go on in the next line; others lose their middle.
        is_list: They are lists, which lose their end instead of filling many lines.
        least: What it may be cut down to where nothing else helps.
    """

    head: str
    widest: int
    narrowest: int
    is_wrapped: bool
    is_list: bool = False
    least: int = 10**6


@dataclass(frozen=True)
class Fit:
    """What of a table is shown in a page's width.

    Attributes:
        widths: Of each column that is shown, in order.
        left_out: Columns for which there is no room.
    """

    widths: Mapping[str, int]
    left_out: Sequence[str] = ()


def _column_of(name: str, head: str, cells: pa.ChunkedArray) -> Column:
    """Measure a column."""
    lengths = pc.utf8_length(cells)
    widest = max(len(head), pc.max(lengths).as_py() or 0)
    if (
        name in _WHOLE
        or widest <= SHORTEST
        or pc.all(pc.match_substring_regex(cells, rf"{_TIME}|^-$")).as_py()
    ):
        return Column(head, widest, widest, is_wrapped=False)
    if name in _NAMES or name.endswith("_id"):
        usual = median(lengths.to_pylist() or [0])
        widest = max(len(head), min(widest, max(_WIDEST_NAME, round(2 * usual))))
        shortest = min(widest, _SHORTEST_KEY) if name in _KEYS else SHORTEST
        return Column(head, widest, max(len(head), shortest), is_wrapped=False, least=SHORTEST)
    is_wrapped = name in _LISTS or pc.any(pc.match_substring(cells, " ")).as_py() is True
    if not is_wrapped and widest <= _LONGEST_WORD:
        return Column(head, widest, widest, is_wrapped=False)
    narrowest = min(widest, max(len(head), _NARROWEST_WORDS if is_wrapped else SHORTEST))
    return Column(
        head,
        widest,
        narrowest,
        is_wrapped=is_wrapped,
        is_list=name in _LISTS,
        least=_LEAST_WORDS,
    )


def _fit(columns: Mapping[str, Column], spare: Sequence[str], width: int) -> Fit | None:
    """Return the columns that fit, and how wide they are; None where they do not.

    Spare columns are left out before what rows are looked up by is cut short, and that only where
    it is still too wide.

    Args:
        columns: All that would be shown, in order.
        spare: Those that may be left out, one by one.
        width: Of the page.
    """
    spare = [name for name in spare if name in columns]
    cut = {name: _cut(each) for name, each in columns.items()}
    for sizes, count in product((columns, cut), range(len(spare) + 1)):
        names = [name for name in sizes if name not in spare[:count]]
        room = width - _GAP * (len(names) - 1)
        widths = _shared_out([sizes[name] for name in names], room)
        if widths is not None:
            return Fit(dict(zip(names, widths, strict=True)), spare[:count])
    return None


def _fewest(columns: Mapping[str, Column], spare: Sequence[str], width: int) -> Fit:
    """Return as many columns as fit where it is not enough to leave out those that may be.

    The first one stays, as rows are looked up by it; of the others the last goes first.
    """
    spare = [name for name in spare if name in columns]
    first, *others = columns
    order = [
        *spare,
        *(name for name in reversed(others) if name not in spare and name not in _KEYS),
    ]
    order += [name for name in reversed(others) if name in _KEYS and name not in spare]
    for count in range(len(spare), len(order)):
        kept = {name: each for name, each in columns.items() if name not in order[:count]}
        widths = _shared_out(list(kept.values()), width - _GAP * (len(kept) - 1))
        if widths is not None:
            return Fit(dict(zip(kept, widths, strict=True)), order[:count])
    return Fit({first: min(columns[first].widest, width)}, order)


def _cut(column: Column) -> Column:
    """Return a column that may be cut to the least of which something is left."""
    return replace(column, narrowest=min(column.narrowest, max(len(column.head), column.least)))


def _shared_out(columns: Sequence[Column], room: int) -> list[int] | None:
    """Return widths that fill the room, the widest columns giving way first."""
    if sum(each.narrowest for each in columns) > room:
        return None
    most = _level(columns, room)
    return [min(each.widest, max(each.narrowest, most)) for each in columns]


def _level(columns: Iterable[Column], room: int) -> int:
    """Return the greatest width to which columns can be cut so that all fit."""
    columns = list(columns)
    low, high = 0, max((each.widest for each in columns), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(each.widest, max(each.narrowest, middle)) for each in columns) <= room:
            low = middle
        else:
            high = middle - 1
    return low
