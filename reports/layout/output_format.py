"""The format of an answer, and what of its rows is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from reports.plain_text import WIDTH

FORMATS = ("text", "json", "csv", "markdown")


@dataclass(frozen=True)
class Paper:
    """What text is printed on.

    Attributes:
        width: How many columns a line of text may have.
        is_colored: It is a terminal that shows colors.
    """

    width: int = WIDTH
    is_colored: bool = False


_PAPER = Paper()


class OutputFormat(str):
    """One of `FORMATS` by its name, with what was asked for besides.

    It is its name, so that who only wants to know the format compares it with one.

    Attributes:
        table: The only table that is shown; None is all that the format has room for.
        paper: What text is printed on.
        is_wide: Text may be wider: nothing is shortened or left out.
        top: At most so many rows of each table.
        sort: The column, by name or head, that rows are sorted by; `-COLUMN` turns it round.
        only_problems: Only rows that say that something went wrong.
    """

    __slots__ = ("is_wide", "only_problems", "paper", "sort", "table", "top")

    table: str | None
    paper: Paper
    is_wide: bool
    top: int | None
    sort: str | None
    only_problems: bool

    def __new__(
        cls,
        name: str = "text",
        *,
        table: str | None = None,
        paper: Paper = _PAPER,
        is_wide: bool = False,
        top: int | None = None,
        sort: str | None = None,
        only_problems: bool = False,
    ) -> Self:
        """Return a format; without more it shows all rows."""
        made = super().__new__(cls, name)
        made.table = table
        made.paper = paper
        made.is_wide = is_wide
        made.top = top
        made.sort = sort
        made.only_problems = only_problems
        return made

    def with_top(self, top: int) -> Self:
        """Return the same format with at most so many rows of each table."""
        return type(self)(
            str(self),
            table=self.table,
            paper=self.paper,
            is_wide=self.is_wide,
            top=top,
            sort=self.sort,
            only_problems=self.only_problems,
        )

    @property
    def width(self) -> int:
        """How many columns a line of text may have."""
        return self.paper.width

    @property
    def is_for_programs(self) -> bool:
        """Whether programs read it, and not people."""
        return self in ("json", "csv")

    def has(self, table: str) -> bool:
        """Return whether a table is shown."""
        return self.table in (None, table)


def width_of(output_format: str) -> int:
    """Return how many columns a line of text in this format may have."""
    return output_format.width if isinstance(output_format, OutputFormat) else WIDTH


class UnknownColumnError(Exception):
    """No table of the answer has the column that rows are to be sorted by."""
