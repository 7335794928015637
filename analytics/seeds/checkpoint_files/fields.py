"""Fields of documents that others wrote: there and of the right kind, or named as wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from analytics.epoch_times import LAST_MS
from analytics.side_files import MOST, MOST_INT, bad, plain_text

Document = Mapping[str, Any]


def whole(document: Document, field: str, where: str, *, least: int = 0, most: int = MOST) -> int:
    """Return a whole number that has to be there.

    Raises:
        InputNotRecognizedError: It is not, or is none.
    """
    found = whole_or_none(document, field, where, least=least, most=most)
    if found is None:
        raise bad(where, field, None, "a whole number")
    return found


def whole_or_none(
    document: Document, field: str, where: str, *, least: int = 0, most: int = MOST
) -> int | None:
    """Return a whole number, None where there is none.

    Raises:
        InputNotRecognizedError: It is something else.
    """
    value = document.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise bad(where, field, value, f"a whole number from {least} to {most}")
    return value


def partition_of(document: Document, where: str) -> tuple[str, int]:
    """Return `topic` and `partition`, which have to be there.

    Raises:
        InputNotRecognizedError: One is not, or is none.
    """
    return text(document, "topic", where), whole(document, "partition", where, most=MOST_INT)


def text(document: Document, field: str, where: str) -> str:
    """Return a text that has to be there.

    Raises:
        InputNotRecognizedError: It is not, or is none.
    """
    value = document.get(field)
    if not isinstance(value, str):
        raise bad(where, field, value, "a name")
    return plain_text(value, field, where)


def text_or_none(document: Document, field: str, where: str) -> str | None:
    """Return a text, None where there is none.

    Raises:
        InputNotRecognizedError: It is something else.
    """
    return None if document.get(field) is None else text(document, field, where)


def texts(document: Document, field: str, where: str) -> tuple[str, ...]:
    """Return a list of names that has to be there.

    Raises:
        InputNotRecognizedError: It is not, or is none.
    """
    value = document.get(field)
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise bad(where, field, value, "a list of names")
    return tuple(value)


def listed(document: Document, field: str, where: str) -> list[Document]:
    """Return a list of objects that has to be there.

    Raises:
        InputNotRecognizedError: It is not, or is none.
    """
    value = document.get(field)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise bad(where, field, value, "a list of objects")
    return value


def time_or_none(document: Document, field: str, where: str) -> int | None:
    """Return a time in epoch milliseconds: a number of them, ISO 8601, or a time already.

    Raises:
        InputNotRecognizedError: It is something else.
    """
    value = document.get(field)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise bad(where, field, value, "epoch milliseconds or ISO 8601") from None
    if isinstance(value, datetime):
        value = value if value.tzinfo else value.replace(tzinfo=UTC)
        return round(value.timestamp() * 1000)
    return whole_or_none(document, field, where, most=LAST_MS)


def by_partition(
    value: Any,  # noqa: ANN401 - as the file has it
    field: str,
    where: str,
    *,
    least: int = 0,
) -> dict[int, int]:
    """Return offsets by partition, of an object with partitions as names: ``{"0": 123}``.

    Raises:
        InputNotRecognizedError: It is something else.
    """
    wanted = 'an object of offsets by partition, as in {"0": 123}'
    if not isinstance(value, dict):
        raise bad(where, field, value, wanted)
    found = {}
    for name, offset in value.items():
        if not re.fullmatch(r"[0-9]{1,9}", str(name)):
            raise bad(where, f"{field}.{name}", offset, wanted)
        found[int(name)] = whole(value, name, f"{where}, {field}", least=least)
    return found
