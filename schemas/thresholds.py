"""Thresholds of the questions: the numbers in `rules/`, and a team's own in their place.

A rules file has sections; one that holds numbers beside its `about` holds thresholds. A threshold
is called by its section and its name there: `minutes` of `stalled` is `stalled_minutes`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from schemas.errors import SchemaError

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
        for section, said in _sections(rules_document(question))
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


def rules_document(question: str, overrides: GivenThresholds = NONE_GIVEN) -> dict[str, Any]:
    """Return the rules file of a question, with a team's own thresholds in place of ours.

    Raises:
        SchemaError: A threshold is not what it has to be.
    """
    document: dict[str, Any] = json.loads(_text(_FILES[question]))
    if not overrides:
        return document
    checked(question, overrides)
    for name, each in thresholds(question).items():
        if name in overrides:
            kind = type(each.value)
            document[each.section][each.key] = kind(overrides[name])
    return document


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath(f"rules/{name}.json").read_text(encoding="utf-8")


def _sections(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, said in document.items():
        if isinstance(said, dict) and not any(isinstance(each, dict) for each in said.values()):
            yield name, said


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
