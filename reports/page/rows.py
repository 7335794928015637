"""Rows of a workspace's tables in a page: as its tables, in its charts, with marks of doubt.

Texts of a dump as a page may show them: ids, metadata, client ids and hosts are hostile.

Ids of parts of the page are made of them, and stay the same from audit to audit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.charts.look import LONGEST_LABEL
from reports.layout.cells import shortened
from reports.page.model import Cell, Figure, Grid
from reports.plain_text import duration, size_of
from schemas import table
from schemas.shown import PAGE, signs_of

ABSENT: Final = "-"
LONGEST_NAME: Final = 48
LONGEST_SENTENCE: Final = 600


def harmless(text: str) -> str:
    """Return a text in which everything that does not print is written out by its number."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_HOW: Final[Mapping[str, Callable[[Any], str]]] = {
    "number": lambda value: f"{value:,}",
    "decimal": lambda value: f"{value:,.2f}".rstrip("0").rstrip("."),
    "share": lambda value: f"{value:.1%}",
    "bytes": size_of,
    "duration": lambda value: str(duration(value)),
    "word": lambda value: harmless(str(value).replace("_", " ")),
}


def names_cut(names: list[str], width: int = LONGEST_NAME) -> list[str]:
    """Return harmless names without their middle where they are long, still told apart."""
    texts = pa.chunked_array([pa.array([harmless(each) for each in names], pa.string())])
    cut: list[str] = shortened(texts, width).to_pylist()
    return cut


def name_cut(name: str, width: int = LONGEST_NAME) -> str:
    """Return one harmless name without its middle where it is long."""
    return names_cut([name], width)[0]


def moment(value: datetime) -> str:
    """Return a time as it is printed everywhere: UTC, milliseconds, Z."""
    text = value.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def cell_text(value: Any, kind: str) -> str:  # noqa: ANN401 - a cell of any type
    """Return a cell as text.

    Args:
        value: Of a table.
        kind: number, decimal, share, bytes, duration (of milliseconds), word (`lost_records` is
            `lost records`), or text.
    """
    if value is None or value in ("", []):
        return ABSENT
    how = _HOW.get(kind)
    return _as_text(value) if how is None else how(value)


def _as_text(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, list):
        return harmless(", ".join(map(str, value)))
    return harmless(str(value))


def group_anchor(group: str) -> str:
    """Return the id of the story of a group."""
    return f"group-{_digest(group)}"


def topic_anchor(topic: str) -> str:
    """Return the id of the view of a topic."""
    return f"topic-{_digest(topic)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def rule_anchor(rule: str) -> str:
    """Return the id of the findings of a rule."""
    return f"rule-{rule}"


# Rows of tables on their way into charts: names short and told apart, times as text.

Row = Mapping[str, Any]


def labels(names: Iterable[str]) -> dict[str, str]:
    """Return each name as short as a chart has room for, told apart."""
    known = list(dict.fromkeys(names))
    made: dict[str, str] = {}
    taken: set[str] = set()
    for name, short in zip(known, names_cut(known, LONGEST_LABEL), strict=True):
        form, number = short, 2
        while form in taken:
            form, number = f"{short} ({number})", number + 1
        taken.add(form)
        made[name] = form
    return made


def place(row: Row) -> str:
    """Return a partition's name."""
    return f"{row['topic']}-{row['partition']}"


def at(value: datetime) -> str:
    """Return a time as a chart takes it."""
    return moment(value)


def dicts(rows: pa.Table, *columns: str) -> list[dict[str, Any]]:
    """Return some columns as one dictionary a row."""
    found: list[dict[str, Any]] = rows.select(list(columns)).to_pylist()
    return found


def figure(
    anchor: str,
    title: str,
    says: str,
    rows: Sequence[Row],
    draw: Callable[[Sequence[Row], str], str],
) -> tuple[Figure, ...]:
    """Return a chart of rows; nothing where there are none."""
    return (Figure(anchor, title, says, draw(rows, anchor)),) if rows else ()


# Marks of rows that a dump does not show whole: in a table of the page, and below a chart.

HEAD: Final = "Cannot tell"
_COMPLETE: Final = "complete"
_WORDS: Final = ("missing", "incomplete_because")
"""Columns that say what is lacking; `missing` is a number of generations in `group_churn`."""
_LONGEST: Final = 160


def doubts(rows: pa.Table) -> list[Cell]:
    """Return a mark for each row with what is lacking; none where all rows are whole.

    Args:
        rows: Of a table that has `complete`, and what is lacking in words; one that has no
            `complete` gets no marks, nor does a row of which that is null: it is of what is gone.
    """
    if not _has_doubt(rows):
        return []
    return [
        _mark(why) if is_whole is False else Cell(ABSENT)
        for is_whole, why in zip(rows[_COMPLETE].to_pylist(), _words(rows), strict=True)
    ]


def doubt_said(rows: pa.Table) -> str:
    """Return what is said below a chart of these rows; nothing where all are whole."""
    if not _has_doubt(rows):
        return ""
    lacking = rows.filter(pc.invert(rows[_COMPLETE]))
    whys = [each for each in _words(lacking) if each is not None]
    why = f": {name_cut(harmless(whys[0]), _LONGEST)}" if whys else ""
    return f" Cannot tell whether {lacking.num_rows:,} of {rows.num_rows:,} rows are so{why}."


def _has_doubt(rows: pa.Table) -> bool:
    if _COMPLETE not in rows.column_names or not rows.num_rows:
        return False
    return bool(pc.any(pc.invert(rows[_COMPLETE])).as_py())


def _words(rows: pa.Table) -> list[str | None]:
    """Return what is lacking of each row, in words; None where no column has any."""
    for name in _WORDS:
        if name in rows.column_names and pa.types.is_string(rows.schema.field(name).type):
            words: list[str | None] = rows[name].to_pylist()
            return words
    return [None] * rows.num_rows


def _mark(why: str | None) -> Cell:
    text = "cannot tell" if why is None else f"cannot tell: {harmless(why)}"
    short = name_cut(text, _LONGEST)
    return Cell(short, whole="" if short == text else text, tone="warning")


NUMBERS: Final = ("number", "decimal", "share", "bytes", "duration", "amount")
"""Kinds of columns that stand right-aligned."""
_NEVER: Final = "never"
_LONGEST_TEXT: Final = 160
_LONGEST_WORD: Final = 40
"""What is longer, and has blanks, goes on in the next line."""


@dataclass(frozen=True)
class Shown:
    """How a column is shown.

    Attributes:
        name: The column.
        head: Its head.
        kind: As `texts.said` has it; or name, group (a name that leads to its story), partition
            (a number that is a name), amount (a number that is text already), time, text.
        tones: The tone of words.
        bound: The column that says whether a value is exact; None where each is.
    """

    name: str
    head: str
    kind: str = "text"
    tones: Mapping[str, str] | None = None
    bound: str | None = None


def columns_of(
    of: str, view: str = PAGE, tones: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[Shown, ...]:
    """Return the columns of a table that a page shows, as its contract has them.

    Args:
        of: The table, by the name of its contract.
        view: The view, whose name begins with "page".
        tones: The tone of words, by column.

    Raises:
        KeyError: There is no such table or view.
    """
    return tuple(
        Shown(each.name, each.head, each.form or "text", (tones or {}).get(each.name), each.bound)
        for each in table(of).view(view).columns
    )


def read_of(columns: Iterable[Shown]) -> list[str]:
    """Return the names of columns that are read to show some, each once."""
    names = (name for each in columns for name in (each.name, each.bound) if name is not None)
    return list(dict.fromkeys(names))


def text_of(row: Row, column: Shown) -> str:
    """Return a cell as text, with the sign of its bound.

    Args:
        row: Has the column, and that which says whether it is exact.
        column: The column.
    """
    bound = None if column.bound is None else row[column.bound]
    return _signed(Cell(cell_text(row[column.name], column.kind)), bound, column.kind).text


def _signed(cell: Cell, bound: Any, kind: str) -> Cell:  # noqa: ANN401 - a cell of any type
    """Return a cell with what stands before a value that is not exact.

    Args:
        cell: The cell as if it were.
        bound: A word; whether it may have been earlier; the instant before which it was not; None.
        kind: As `Shown` has it.
    """
    if cell.text == ABSENT:
        return replace(cell, text=_NEVER) if bound == _NEVER else cell
    is_earlier = bound is True or isinstance(bound, datetime)
    sign = signs_of(kind).get("at_latest" if is_earlier else bound, "")
    return replace(cell, text=f"{sign}{cell.text}", whole=cell.whole and f"{sign}{cell.whole}")


def grid_of(
    anchor: str,
    caption: str,
    rows: pa.Table,
    columns: Sequence[Shown],
    *,
    top: int,
    source: str,
    stories: frozenset[str] = frozenset(),
) -> Grid:
    """Return the first rows of a table; those that the dump does not show whole carry a mark.

    Args:
        anchor: Its id on the page.
        caption: What it shows.
        rows: In the order they are shown, with what `read_of` names of the columns that it has.
        columns: Those that are shown; but for the first, one without any value is left out.
        top: At most so many rows.
        source: Where in the workspace all rows are ("evaluations/lag").
        stories: Groups that have a story to lead to.
    """
    begins = rows.slice(0, top)
    there = [each for each in columns if _says_something(begins, each)]
    first = begins.select(read_of(there))
    cells = [_cells(first, each, stories) for each in there]
    heads = [each.head for each in there]
    marks = doubts(begins)
    if marks:
        heads.append(HEAD)
        cells.append(marks)
    return Grid(
        anchor=anchor,
        caption=caption,
        heads=tuple(heads),
        rows=tuple(zip(*cells, strict=True)),
        numbers=frozenset(n for n, each in enumerate(there) if each.kind in NUMBERS),
        sentences=frozenset(
            n
            for n, column in enumerate(cells)
            if any(len(each.text) > _LONGEST_WORD and " " in each.text for each in column)
        ),
        more=_more(rows.num_rows - first.num_rows, source),
    )


def of_so_many(grid: Grid, count: int, source: str) -> Grid:
    """Return a grid that was made of the first rows of a table, of which there are so many."""
    return replace(grid, more=_more(count - len(grid.rows), source))


def _more(count: int, source: str) -> str:
    return f"{count:,} more in {source}" if count else ""


def _says_something(rows: pa.Table, column: Shown) -> bool:
    if column.name not in rows.column_names:
        return False
    is_key = column.kind in ("group", "name")
    return is_key or rows[column.name].null_count < rows.num_rows


def _cells(rows: pa.Table, column: Shown, stories: frozenset[str]) -> list[Cell]:
    cells = _exact_cells(rows[column.name].to_pylist(), column, stories)
    if column.bound is None:
        return cells
    bounds = rows[column.bound].to_pylist()
    return [_signed(cell, bound, column.kind) for cell, bound in zip(cells, bounds, strict=True)]


def _exact_cells(values: list[Any], column: Shown, stories: frozenset[str]) -> list[Cell]:
    match column.kind:
        case "group" | "name":
            return _names(values, stories if column.kind == "group" else frozenset())
        case "time":
            return [_time(each) for each in values]
        case "partition":
            return [Cell(ABSENT if each is None else str(each)) for each in values]
    tones = column.tones or {}
    return [_cell(each, column.kind, tones.get) for each in values]


def _names(values: list[Any], stories: frozenset[str]) -> list[Cell]:
    cut = names_cut([ABSENT if each is None else str(each) for each in values])
    return [
        Cell(ABSENT)
        if each in (None, "")
        else Cell(
            short,
            whole="" if short == harmless(each) else harmless(each),
            href=f"#{group_anchor(each)}" if each in stories else "",
        )
        for each, short in zip(values, cut, strict=True)
    ]


def name_cell(name: str, *, href: str = "") -> Cell:
    """Return one name."""
    short, whole = name_cut(name), harmless(name)
    return Cell(short, "" if short == whole else whole, href)


def _time(value: datetime | None) -> Cell:
    return Cell(ABSENT) if value is None else Cell(moment(value))


def _cell(value: Any, kind: str, tone: Callable[[str], str | None]) -> Cell:  # noqa: ANN401
    text = cell_text(value, kind)
    found = tone(value) if isinstance(value, str) else None
    if len(text) > _LONGEST_TEXT:
        return Cell(name_cut(text, _LONGEST_TEXT), whole=text, tone=found or "")
    return Cell(text, tone=found or "")
