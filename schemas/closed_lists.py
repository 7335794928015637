"""Closed lists that columns of text take their values from: in a table's file, or in `rules/`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypeGuard

from schemas.errors import SchemaError


@dataclass(frozen=True)
class ClosedList:
    """A list of words of which a column holds one, or null.

    Attributes:
        words: The words; none where another file has them.
        of: Where they are the names of sections of files in `rules/`: "lag.verdicts".
    """

    words: tuple[str, ...] = ()
    of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a list that is none, or has a word twice.

        Raises:
            SchemaError: It has no words, or words of its own and those of another file.
        """
        if bool(self.words) is bool(self.of):
            raise SchemaError("a closed list has words, or names the section that has them")
        if len(set(self.words)) < len(self.words):
            raise SchemaError("a closed list has a word twice")

    @property
    def values(self) -> tuple[str, ...]:
        """The words, in their order.

        Raises:
            SchemaError: There is no such section.
        """
        return self.words or tuple(
            dict.fromkeys(word for place in self.of for word in _names_of_section(place))
        )


def closed_list(document: object) -> ClosedList:
    """Return the closed list that a column declares.

    Args:
        document: Words, or `{"of": "lag.verdicts"}`, or several sections likewise.

    Raises:
        SchemaError: It is neither.
    """
    if _is_words(document):
        return ClosedList(words=tuple(document))
    if isinstance(document, dict) and document.keys() == {"of"}:
        of = document["of"]
        if isinstance(of, str) or _is_words(of):
            return ClosedList(of=(of,) if isinstance(of, str) else tuple(of))
    raise SchemaError('"values" are words, or {"of": "FILE.SECTION"} of rules/')


def _is_words(document: object) -> TypeGuard[list[str]]:
    return isinstance(document, list) and all(isinstance(each, str) for each in document)


@cache
def _names_of_section(place: str) -> tuple[str, ...]:
    name, _, section = place.partition(".")
    file = f"rules/{name}.json"
    resource = files(__package__).joinpath(file)
    document = json.loads(resource.read_text(encoding="utf-8")) if resource.is_file() else {}
    names: Mapping[str, object] = document.get(section) or {}
    words = tuple(each for each in names if each != "about")
    if not words:
        raise SchemaError(f"has no {section!r} to take values from", file=file)
    return words
