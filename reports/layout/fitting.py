"""Which columns fit into the width of a page, and how wide each may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.shortened import SHORTEST

GAP = 2
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


@dataclass(frozen=True)
class Column:
    """How wide a column is.

    Attributes:
        head: Its head.
        widest: As wide as its longest value.
        narrowest: What it may be cut down to.
        is_wrapped: Values that are too long go on in the next line; others lose their middle.
        least: What it may be cut down to where nothing else helps.
    """

    head: str
    widest: int
    narrowest: int
    is_wrapped: bool
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


def column_of(name: str, head: str, cells: pa.ChunkedArray) -> Column:
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
    return Column(head, widest, narrowest, is_wrapped=is_wrapped, least=_LEAST_WORDS)


def fit(columns: Mapping[str, Column], spare: Sequence[str], width: int) -> Fit | None:
    """Return the columns that fit, and how wide they are; None where they do not.

    Columns are left out before what rows are looked up by is cut short, and that only where it is
    still too wide.

    Args:
        columns: All that would be shown, in order.
        spare: Those that may be left out, one by one.
        width: Of the page.
    """
    spare = [name for name in spare if name in columns]
    cut = {name: _cut(each) for name, each in columns.items()}
    for sizes, count in product((columns, cut), range(len(spare) + 1)):
        names = [name for name in sizes if name not in spare[:count]]
        room = width - GAP * (len(names) - 1)
        widths = _shared_out([sizes[name] for name in names], room)
        if widths is not None:
            return Fit(dict(zip(names, widths, strict=True)), spare[:count])
    return None


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
