"""The format of an answer, and what of its rows is shown."""

from __future__ import annotations

from typing import Self

FORMATS = ("text", "json", "csv", "markdown")


class OutputFormat(str):
    """One of `FORMATS` by its name, with what was asked for besides.

    It is its name, so that who only wants to know the format compares it with one.

    Attributes:
        table: The only table that is shown; None is all that the format has room for.
        is_wide: Text may be wider than `layout.text.WIDTH`: nothing is shortened or left out.
        top: At most so many rows of each table.
        sort: The column, by name or head, that rows are sorted by; `-COLUMN` turns it round.
        only_problems: Only rows that say that something went wrong.
        is_colored: Text goes to a terminal that shows colors.
    """

    __slots__ = ("is_colored", "is_wide", "only_problems", "sort", "table", "top")

    table: str | None
    is_wide: bool
    top: int | None
    sort: str | None
    only_problems: bool
    is_colored: bool

    def __new__(
        cls,
        name: str = "text",
        *,
        table: str | None = None,
        is_wide: bool = False,
        top: int | None = None,
        sort: str | None = None,
        only_problems: bool = False,
        is_colored: bool = False,
    ) -> Self:
        """Return a format; without more it shows all rows."""
        made = super().__new__(cls, name)
        made.table = table
        made.is_wide = is_wide
        made.top = top
        made.sort = sort
        made.only_problems = only_problems
        made.is_colored = is_colored
        return made

    @property
    def is_for_programs(self) -> bool:
        """Whether programs read it, and not people."""
        return self in ("json", "csv")

    def has(self, table: str) -> bool:
        """Return whether a table is shown."""
        return self.table in (None, table)


class UnknownColumnError(Exception):
    """No table of the answer has the column that rows are to be sorted by."""
