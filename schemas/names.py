"""Names: Kafka's internal topics, how its names become ours, and which one somebody meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from schemas.reading import SchemaError

# Kafka's internal topics by name; everything else takes the names from here.

CONSUMER_OFFSETS: Final = "__consumer_offsets"
SHARE_GROUP_STATE: Final = "__share_group_state"
TRANSACTION_STATE: Final = "__transaction_state"
CLUSTER_METADATA: Final = "__cluster_metadata"

INTERNAL_TOPICS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE, CLUSTER_METADATA)
"""The internal topics whose records have schemas; the last is the metadata log."""

COORDINATOR_TOPICS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE)
"""The topics that group, share and transaction coordinators write."""

COMPACTED_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})
"""The topics whose cleanup policy is compact: gaps below the first dirty offset are normal."""


# Which of the names that are known somebody meant, who wrote another.


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the known name that is most like another; None where none is like it."""
    return next(iter(get_close_matches(name, list(names), 1)), None)


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str) -> str:
    """Return a hint for a name that is not known.

    Args:
        name: What somebody wrote.
        candidates: The names there are.
        otherwise: What stands before them all where none is like it ("there are").
    """
    names = list(candidates)
    near = nearest_name(name, names)
    return f"did you mean {near!r}?" if near else f"{otherwise} {', '.join(names)}"


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
