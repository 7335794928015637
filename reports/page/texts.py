"""Texts of a dump as a page may show them: ids, metadata, client ids and hosts are hostile.

Ids of parts of the page are made of them, and stay the same from audit to audit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from reports.layout.cells import shortened
from reports.plain_text import duration, size_of

ABSENT: Final = "-"
LONGEST_NAME: Final = 48
LONGEST_SENTENCE: Final = 600


def harmless(text: str) -> str:
    """Return a text in which everything that does not print is written out by its number."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_HOW: Final[Mapping[str, Callable[[Any], str]]] = {
    "number": lambda value: f"{value:,}",
    "decimal": lambda value: f"{value:,.2f}".rstrip("0").rstrip("."),
    "share": lambda value: f"{value:.1%}",
    "bytes": size_of,
    "duration": lambda value: str(duration(value)),
    "word": lambda value: harmless(str(value).replace("_", " ")),
}


def names_cut(names: list[str], width: int = LONGEST_NAME) -> list[str]:
    """Return harmless names without their middle where they are long, still told apart."""
    texts = pa.chunked_array([pa.array([harmless(each) for each in names], pa.string())])
    cut: list[str] = shortened(texts, width).to_pylist()
    return cut


def name_cut(name: str, width: int = LONGEST_NAME) -> str:
    """Return one harmless name without its middle where it is long."""
    return names_cut([name], width)[0]


def moment(value: datetime) -> str:
    """Return a time as it is printed everywhere: UTC, milliseconds, Z."""
    text = value.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def cell_text(value: Any, kind: str) -> str:  # noqa: ANN401 - a cell of any type
    """Return a cell as text.

    Args:
        value: Of a table.
        kind: number, decimal, share, bytes, duration (of milliseconds), word (`lost_records` is
            `lost records`), or text.
    """
    if value is None or value in ("", []):
        return ABSENT
    how = _HOW.get(kind)
    return _as_text(value) if how is None else how(value)


def _as_text(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, list):
        return harmless(", ".join(map(str, value)))
    return harmless(str(value))


def group_anchor(group: str) -> str:
    """Return the id of the story of a group."""
    return f"group-{_digest(group)}"


def topic_anchor(topic: str) -> str:
    """Return the id of the view of a topic."""
    return f"topic-{_digest(topic)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def rule_anchor(rule: str) -> str:
    """Return the id of the findings of a rule."""
    return f"rule-{rule}"
