"""Thresholds of the questions: the numbers in `rules/`, and a team's own in their place.

A rules file has sections; one that holds numbers beside its `about` holds thresholds. A threshold
is called by its section and its name there: `minutes` of `stalled` is `stalled_minutes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar

from schemas.errors import SchemaError
from schemas.reading import document, read_as

_FILES: Final = MappingProxyType(
    {
        "expiration": "expiration_rules",
        "balance": "balance",
        "rebalances": "rebalances",
        "lag": "lag",
        "share": "share",
        "region": "region",
        "usage": "usage",
    }
)
QUESTIONS: Final = tuple(_FILES)
"""What `rules:` of a settings file may have thresholds for."""

_SHARE: Final = "_share"
_T = TypeVar("_T")

GivenThresholds = Mapping[str, Any]
"""A team's own thresholds, by name."""
NONE_GIVEN: Final[GivenThresholds] = MappingProxyType({})


@dataclass(frozen=True)
class Threshold:
    """A number that decides.

    Attributes:
        section: Of the rules file,
        key: and its name there.
        value: As shipped.
        about: What the section says of it.
    """

    section: str
    key: str
    value: float
    about: str


def thresholds(question: str) -> dict[str, Threshold]:
    """Return the thresholds of a question by name, in the order of its file."""
    return {
        f"{section}_{key}".replace("-", "_"): Threshold(section, key, value, said.get("about", ""))
        for section, said in _sections(document(_path(question)))
        for key, value in said.items()
        if _is_number(value)
    }


def checked(question: str, overrides: GivenThresholds) -> None:
    """Check a team's own thresholds.

    Raises:
        SchemaError: One is none of the question's, or not a number that it may have.
    """
    known = thresholds(question)
    for name, value in overrides.items():
        if name not in known:
            raise SchemaError(f"{question} has no threshold {name!r}; it has {', '.join(known)}")
        if not _is_number(value) or not math.isfinite(value) or value < 0:
            raise SchemaError(f"{question}: {name} is {value!r}, which is not a number from 0 on")
        if isinstance(known[name].value, int) and value != int(value):
            raise SchemaError(f"{question}: {name} is {value!r}; it must be a whole number")
        if name.endswith(_SHARE) and value > 1:
            raise SchemaError(f"{question}: {name} is {value!r}; a share is at most 1")


def rules_of(kind: type[_T], question: str, overrides: GivenThresholds = NONE_GIVEN) -> _T:
    """Return the rules file of a question, with a team's own thresholds in place of ours.

    Args:
        kind: The file's shape.
        question: One of `QUESTIONS`.
        overrides: The team's own thresholds.

    Raises:
        SchemaError: A threshold is not what it has to be, or the file is not of that shape.
    """
    return read_as(kind, rules_document(question, overrides), _path(question))


def rules_document(question: str, overrides: GivenThresholds = NONE_GIVEN) -> dict[str, Any]:
    """Return the content of a rules file; arguments and errors as in `rules_of`."""
    content: dict[str, Any] = document(_path(question))
    if overrides:
        checked(question, overrides)
        for name, each in thresholds(question).items():
            if name in overrides:
                content[each.section][each.key] = type(each.value)(overrides[name])
    return content


def _path(question: str) -> str:
    return f"rules/{_FILES[question]}.json"


def _sections(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, said in content.items():
        if isinstance(said, dict) and not any(isinstance(each, dict) for each in said.values()):
            yield name, said


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
