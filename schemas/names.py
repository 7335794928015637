"""How Kafka's names become ours, and what may not be named twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from schemas.errors import SchemaError

LOWER_CAMEL_CASE = re.compile(r"[a-z][a-zA-Z0-9]*")
SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Return the column or table name of a Kafka name: "groupId" gives "group_id"."""
    return _WORD_START.sub("_", name).lower()


def refuse_duplicates(what: str, values: Iterable[object]) -> None:
    """Check that no value comes twice.

    Raises:
        SchemaError: One does; it names them all.
    """
    repeated = [str(value) for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise SchemaError(f"{what} twice: {', '.join(repeated)}")
