"""The wording of a gap: a template that is filled with its place and its parameters.

`{name}` is filled in as it is. `{name:# offset|# offsets}` is the first form for one and the
second for any other number, with the number in place of `#`; a count is only ever written so. What
stands in `[...]` is left out where a name in it has no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from schemas.errors import SchemaError

NUMBER: Final = "#"
"""Stands for the number in the forms of a count."""
_PART: Final = re.compile(r"\{([a-z][a-z0-9_]*)(?::([^{}|\[\]]*)\|([^{}|\[\]]*))?\}|\[|\]|[{}]")
_SUBJECTS: Final = ("{group_id}: ", "[{group_id}: ]")


@dataclass(frozen=True)
class Filled:
    """A place in a template for a value.

    Attributes:
        name: Of the value.
        forms: Of a count: what is written of one, and of any other number; else None.
    """

    name: str
    forms: tuple[str, str] | None = None


Piece = str | Filled


@dataclass(frozen=True)
class Clause:
    """A run of text and values; one that is optional is left out where a value lacks."""

    pieces: tuple[Piece, ...]
    is_optional: bool

    @property
    def values(self) -> tuple[Filled, ...]:
        """The places for values in it."""
        return tuple(each for each in self.pieces if isinstance(each, Filled))


@dataclass(frozen=True)
class Template:
    """The words of a gap, as they are written in its file.

    Attributes:
        text: What is written there.
    """

    text: str

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """The template in order.

        Raises:
            SchemaError: A bracket or a brace has no other.
        """
        return tuple(_clauses(self.text))

    @property
    def values(self) -> tuple[Filled, ...]:
        """All places for values."""
        return tuple(value for each in self.clauses for value in each.values)

    @property
    def without_group(self) -> Template:
        """The same without the group that it is about, where it begins with that one."""
        for subject in _SUBJECTS:
            if self.text.startswith(subject):
                return Template(self.text.removeprefix(subject))
        return self

    def filled(self, values: Mapping[str, str | int | None]) -> str:
        """Return the words.

        Args:
            values: By name: of a count the number, of all others their text; None where there is
                none.

        Raises:
            KeyError: A value lacks that is not optional.
        """
        return "".join(_written(each, values) for each in self.clauses)


def _written(clause: Clause, values: Mapping[str, str | int | None]) -> str:
    if clause.is_optional and any(values.get(each.name) is None for each in clause.values):
        return ""
    return "".join(
        each if isinstance(each, str) else written_value(each, values[each.name])
        for each in clause.pieces
    )


def written_value(place: Filled, value: str | int | None) -> str:
    """Return what stands for a value in a template.

    Raises:
        KeyError: There is no value.
    """
    if value is None:
        raise KeyError(place.name)
    if place.forms is None:
        return str(value)
    one, many = place.forms
    return (one if value == 1 else many).replace(NUMBER, f"{value:,}")


def _clauses(text: str) -> Iterator[Clause]:
    pieces: list[Piece] = []
    is_optional, end = False, 0
    for part in _PART.finditer(text):
        pieces += [text[end : part.start()]] if part.start() > end else []
        end = part.end()
        if part[0] in "{}" or part[0] == ("[" if is_optional else "]"):
            raise SchemaError(f'"{part[0]}" at {part.start()} has no other', field="words")
        if part[0] in "[]":
            if pieces:
                yield Clause(tuple(pieces), is_optional)
            pieces, is_optional = [], part[0] == "["
        else:
            pieces.append(Filled(part[1], None if part[2] is None else (part[2], part[3])))
    if is_optional:
        raise SchemaError('"[" is never closed', field="words")
    pieces += [text[end:]] if end < len(text) else []
    if pieces:
        yield Clause(tuple(pieces), is_optional=False)
