"""A finding in words: values of rows put into a sentence, and into a command."""

from __future__ import annotations

import shlex
import string
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

Phrasing = Mapping[str, Callable[[Any], Any]]
"""How numbers are said that are no plain ones: `bytes`, and `duration` of milliseconds."""

_NOT_KNOWN = "not known"


class WordedValue(NamedTuple):
    """A value, and how it is said: by a name of `Phrasing`, or as it is."""

    value: Any
    how: str | None = None


def worded(sentence: str, values: Mapping[str, WordedValue], phrasing: Phrasing) -> str:
    """Return a sentence with the values of its names.

    Args:
        sentence: With names in braces; `{offsets:offset}` is a number and its noun.
        values: By name.
        phrasing: How numbers are said that are no plain ones.
    """
    return _Sentence(phrasing).vformat(sentence, (), values)


class _Sentence(string.Formatter):
    """Puts values into sentences; what follows a colon is the noun of a number."""

    def __init__(self, phrasing: Phrasing) -> None:
        self._says = phrasing

    def format_field(self, value: WordedValue, format_spec: str) -> str:
        if not format_spec:
            return _text(value, self._says)
        if value.value is None:
            return f"an unknown number of {format_spec}s"
        return f"{value.value:,} {format_spec}{'' if value.value == 1 else 's'}"


def worded_command(
    command: str, values: Mapping[str, WordedValue], arguments: Mapping[str, str]
) -> str:
    """Return a command in which no value can do more than be an argument.

    Args:
        command: With names in braces.
        values: Values by name.
        arguments: By name what is quoted for a shell already.
    """
    quoted = {
        name: shlex.quote(each.value) if isinstance(each.value, str) else _plain(each.value)
        for name, each in values.items()
    }
    return command.format_map({**quoted, **arguments})


def _text(worded: WordedValue, phrasing: Phrasing) -> str:
    value, how = worded
    if value is None:
        return _NOT_KNOWN
    if how is not None and how in phrasing:
        return str(phrasing[how](value))
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else _plain(value)


def _plain(value: Any) -> str:  # noqa: ANN401 - a cell
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)
