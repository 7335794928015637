"""Rows of tables on their way into charts: names short and told apart, times as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from reports.charts.look import LONGEST_LABEL
from reports.page.model import Figure
from reports.page.texts import moment, names_cut

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
