"""A finding in words: values of rows put into a sentence, and into a command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

_SIZES = ("B", "kB", "MB", "GB", "TB")
_SPANS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
_NOT_KNOWN = "not known"


class Said(NamedTuple):
    """A value, and how it is said: bytes, duration (of milliseconds), or as it is."""

    value: Any
    how: str | None = None


def worded(sentence: str, said: Mapping[str, Said]) -> str:
    """Return a sentence with the values of its names."""
    return sentence.format_map({name: _text(each) for name, each in said.items()})


def worded_command(command: str, said: Mapping[str, Said]) -> str:
    """Return a command in which no value can do more than be an argument."""
    return command.format_map(
        {
            name: shlex.quote(each.value) if isinstance(each.value, str) else _plain(each.value)
            for name, each in said.items()
        }
    )


def _plain(value: Any) -> str:  # noqa: ANN401 - a cell
    return _time(value) if isinstance(value, datetime) else str(value)


def _text(said: Said) -> str:
    value, how = said
    if value is None:
        return _NOT_KNOWN
    if isinstance(value, datetime):
        return _time(value)
    if how == "bytes":
        return _bytes(value)
    if how == "duration":
        return _duration(value)
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    if isinstance(value, int) and how != "plain":
        return f"{value:,}"
    return str(value)


def _time(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _bytes(size: float) -> str:
    for unit in _SIZES[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_SIZES[-1]}"


def _duration(milliseconds: int) -> str:
    for size, unit in _SPANS:
        if milliseconds >= size:
            return f"{milliseconds // size:,} {unit}"
    return f"{milliseconds} ms"
