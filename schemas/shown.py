"""What people are shown of a table: which columns, under which heads, in which order.

A head is that of Kafka's tools where these have the column. It is written once for each name of a
column (`rules/heads.json`), unless a table has another one, and is the name itself in capitals,
with hyphens, where nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Final

from schemas.names import refuse_duplicates
from schemas.reading import SchemaError

MAIN: Final = ""
"""The view of a table that has no name."""
ALWAYS: Final = 1
"""The rank of what is never left out."""
PAGE: Final = "page"
"""What the names of views begin with that pages show, under heads that are words of a sentence."""
FORMS: Final = frozenset({"duration", "time_left", "percent"})
"""How a derived column is made a text of milliseconds and maybe their bound, or of a share."""
FORMS_OF_PAGE: Final = frozenset(
    {
        *("group", "name", "partition", "time", "number", "decimal", "share", "bytes", "duration"),
        *("amount", "word", "text"),
    }
)
"""How a cell of a page is made: of a group that has a story, another name, a number that is one.

An amount is a number that a report has made text of, with the sign of its bound or why it has none.
"""
SIGNS_OF_BOUNDS: Final = {
    "at_least": ">= ",
    "at_least_about": ">= ~ ",
    "at_latest": "<= ",
    "at_most": "<= ",
    "estimated": "~ ",
    "interpolated": "~ ",
}
"""What stands before a number or a time that is not exact, by the word of its bound."""
_AT_LATEST: Final = "at_latest"
UNITS: Final = frozenset({"ms", "minutes", "bytes", "offset", "records", "share"})
"""What numbers count; a share is of one."""


@dataclass(frozen=True)
class ShownColumn:
    """A column as people see it.

    Attributes:
        name: Its name.
        head: What stands above it.
        rank: 1 is always shown; of others the largest is left out first where there is no room.
        sources: The columns it is derived from, "table.column" in another table; none of a column
            that is in the table.
        form: How it is derived, None where a report makes it of its sources; on a page how each
            cell is made.
        bound: On a page the column that says whether a cell is exact, None where it always is.
    """

    name: str
    head: str
    rank: int = ALWAYS
    sources: tuple[str, ...] = ()
    form: str | None = None
    bound: str | None = None

    def __post_init__(self) -> None:
        """Refuse what could not be shown.

        Raises:
            SchemaError: There is no head, or the rank is below 1.
        """
        if not self.head.strip():
            raise SchemaError("has no head", field=self.name)
        if self.rank < ALWAYS:
            raise SchemaError("a rank is 1 or larger", field=self.name)


@dataclass(frozen=True)
class View:
    """A selection of columns, in order."""

    name: str
    columns: tuple[ShownColumn, ...]

    def __post_init__(self) -> None:
        """Refuse a selection that is ambiguous.

        Raises:
            SchemaError: A column is there twice, a head or form is none of this kind of view, or
                it is not certain what is left out first.
        """
        for each in self.columns:
            (_check_cell if self.name.startswith(PAGE) else _check_text)(each)
        refuse_duplicates("shown column", [each.name for each in self.columns])
        ranks = [each.rank for each in self.columns if each.rank > ALWAYS]
        if len(set(ranks)) < len(ranks):
            raise SchemaError(f'two columns of view "{self.name}" have the same rank')

    @cached_property
    def heads(self) -> Mapping[str, str]:
        """The head of each column by its name, in order."""
        return {each.name: each.head for each in self.columns}

    @cached_property
    def spare(self) -> tuple[str, ...]:
        """The columns that are left out one by one where there is no room, in that order."""
        ranked = sorted(self.columns, key=lambda each: -each.rank)
        return tuple(each.name for each in ranked if each.rank > ALWAYS)

    @cached_property
    def derived(self) -> tuple[ShownColumn, ...]:
        """The columns that the table does not have."""
        return tuple(each for each in self.columns if each.sources)


def _check_text(column: ShownColumn) -> None:
    if column.head != column.head.upper() or " " in column.head:
        raise SchemaError("a head has capitals and no blanks", field=column.name)
    has_sources = 1 <= len(column.sources) <= 2
    if column.form is not None and not (column.form in FORMS and has_sources):
        raise SchemaError(
            f"a form is one of {', '.join(sorted(FORMS))}, of a number and maybe its bound",
            field=column.name,
        )


def _check_cell(column: ShownColumn) -> None:
    if column.form not in FORMS_OF_PAGE:
        raise SchemaError(f"a form is one of {', '.join(sorted(FORMS_OF_PAGE))}", field=column.name)


@cache
def _general_heads() -> Mapping[str, str]:
    text = files(__package__).joinpath("rules/heads.json").read_text(encoding="utf-8")
    heads: Mapping[str, str] = json.loads(text)["heads"]
    return heads


def head_of(name: str) -> str:
    """Return the head of a column for which its table has no other one."""
    return _general_heads().get(name) or name.upper().replace("_", "-")


def signs_of(form: str) -> Mapping[str, str]:
    """Return the signs of a form: since a time at the latest is at least so long a time."""
    since = {_AT_LATEST: SIGNS_OF_BOUNDS["at_least"]} if form == "duration" else {}
    return {**SIGNS_OF_BOUNDS, **since}


def head_on_page(name: str) -> str:
    """Return the head of a column on a page where its view has no other one."""
    return name.replace("_", " ").capitalize()


def check_sources(view: View, names: Sequence[str]) -> None:
    """Refuse a view of columns that its table does not have.

    Raises:
        SchemaError: A column is neither in the table nor derived, or derived from none.
    """
    for each in view.columns:
        for source in each.sources or (each.name,):
            if source not in names and "." not in source:
                raise SchemaError(f'shows "{source}", which is no column', field=each.name)
        if each.bound is not None and each.bound not in names:
            raise SchemaError(f'is bounded by "{each.bound}", which is no column', field=each.name)
        if each.sources and each.name in names:
            raise SchemaError("is derived, and a column of the table", field=each.name)
