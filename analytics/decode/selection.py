"""Which records are wanted: groups and topics by name, ``glob*`` or ``/regex/``.

A name may look like a pattern: where something is called ``/re/``, that is meant by ``/re/``.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import numpy as np

from analytics.wire.columns import string_array

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.wire.columns import Binary, Group

Name = TypeVar("Name", str, str | None)

_GROUP_FIELDS = ("group", "group_id")
_TOPIC_FIELDS = ("topic",)


def pattern(text: str) -> re.Pattern[str]:
    """Compile a name, ``glob*`` or ``/regex/``; a regex must match the whole name.

    Raises:
        ValueError: The regex is not one.
    """
    if _is_regex(text):
        try:
            return re.compile(text[1:-1], re.DOTALL)
        except re.error as error:
            message = f"{text} is no regular expression: {error}"
            raise ValueError(message) from error
    if _is_glob(text):
        return re.compile(fnmatch.translate(text), re.DOTALL)
    return re.compile(re.escape(text), re.DOTALL)


def as_regex(text: str) -> str:
    """Return a glob or a regex as a ``/regex/`` that no name is equal to."""
    if _is_regex(text):
        return f"/(?:{text[1:-1]})/"
    if "[" in text:
        return f"/{fnmatch.translate(text)}/"
    escaped = re.escape(text).replace(r"\*", ".*").replace(r"\?", ".")
    return f"/{escaped}/"


def is_name(text: str) -> bool:
    """Return whether a text names one thing exactly, rather than by a pattern."""
    return not (_is_regex(text) or _is_glob(text))


def _is_regex(text: str) -> bool:
    return len(text) > 1 and text.startswith("/") and text.endswith("/")


def _is_glob(text: str) -> bool:
    return any(each in text for each in "*?[")


OF_NAMES: Final = ("groups", "exclude_groups", "data_topics")
"""The options that a selection is made of, in the order of its fields."""


@dataclass(frozen=True)
class Selection:
    """Patterns of the groups and topics that are wanted; empty is all."""

    groups: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> Self:
        """Return what options of a command select; one that is not there selects all."""
        return cls(*(tuple(options.get(name, ())) for name in OF_NAMES))

    @property
    def options(self) -> dict[str, tuple[str, ...]]:
        """The options that select it, but for those that leave nothing out."""
        patterns = (self.groups, self.exclude_groups, self.topics)
        return {name: some for name, some in zip(OF_NAMES, patterns, strict=True) if some}

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.groups or self.exclude_groups or self.topics)

    def selects(self, key: Group) -> NDArray[np.bool_]:
        """Which keys are wanted; keys that name no group, or no topic, always are."""
        wanted = np.ones(key.size, np.bool_)
        for name in _GROUP_FIELDS:
            if name in key.columns and (self.groups or self.exclude_groups):
                wanted &= _matches(key.columns[name], self.groups, self.exclude_groups)  # type: ignore[arg-type]
        for name in _TOPIC_FIELDS:
            if name in key.columns and self.topics:
                wanted &= _matches(key.columns[name], self.topics, ())  # type: ignore[arg-type]
        return wanted


def names_wanted(
    names: Iterable[Name],
    include: Sequence[str],
    exclude: Sequence[str] = (),
    there: Collection[str] | None = None,
) -> list[Name]:
    """Return the names that match a pattern, or any where there is none, and none to exclude.

    Args:
        names: To choose from. None, where there is no name or it is not known, matches nothing.
        include: Names and patterns.
        exclude: Likewise.
        there: All the names there are: what one of them is called is that one, and no pattern. None
            where these are not known: then it is both.
    """
    including = [_NameOrPattern(each, there or ()) for each in include]
    excluding = [_NameOrPattern(each, there or ()) for each in exclude]
    return [
        name
        for name in names
        if (not including or any(each.matches(name) for each in including))
        and not any(each.matches(name) for each in excluding)
    ]


class _NameOrPattern:
    """A name or a pattern."""

    def __init__(self, text: str, there: Collection[str]) -> None:
        self.name = text
        self.pattern = None if text in there else pattern(text)

    def matches(self, name: str | None) -> bool:
        if name is None:
            return False
        if name == self.name:
            return True
        return self.pattern is not None and self.pattern.fullmatch(name) is not None


def _matches(column: Binary, include: Sequence[str], exclude: Sequence[str]) -> NDArray[np.bool_]:
    """Match each distinct name once."""
    names = string_array(column).dictionary_encode()
    distinct = names.dictionary.to_pylist()
    wanted = set(names_wanted(distinct, include, exclude))
    verdicts = np.array([name in wanted for name in distinct], np.bool_)
    chosen: NDArray[np.bool_] = verdicts[names.indices.to_numpy()]
    return chosen
