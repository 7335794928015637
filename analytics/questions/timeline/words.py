"""The words of verdicts, from worst to best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from analytics.contracts import contract_schema

LOST = "lost by an election"
LOST_BY_GROWTH = "lost by a new partition count"
LOST_WITH_TOPIC = "lost with a deleted offsets topic"
TOPIC_DELETED = "topic deleted"
RECREATED = "topic re-created under another id"
EXPIRED = "expired"
GROUP_DELETED = "group deleted"
OFFSET_DELETED = "offset deleted"
REWOUND = "rewound by a member"
RESET_WHILE_EMPTY = "committed while the group was Empty"
BELOW_ZERO = "an offset below 0 was committed"
BELOW_LOG_START = "below the log start"
WITHOUT_GROUP = "kept without its group"
"""Its transaction committed after the group was removed: nobody is told of it until a group of that
name is there again."""
CANNOT_TELL = "cannot tell"
PENDING = "pending in a transaction"
NEVER_COMMITTED = "never committed"
NO_LOSS_SINCE = "no loss found since"
"""The time follows: from then on the history of the offset has no gap, and nothing went back."""

WORST_FIRST = (
    *(LOST, LOST_BY_GROWTH, LOST_WITH_TOPIC, TOPIC_DELETED, RECREATED, EXPIRED, GROUP_DELETED),
    *(OFFSET_DELETED, REWOUND, RESET_WHILE_EMPTY, BELOW_ZERO, BELOW_LOG_START, WITHOUT_GROUP),
    *(CANNOT_TELL, PENDING, NEVER_COMMITTED, NO_LOSS_SINCE),
)

OF_CAUSE = {
    "expiration": EXPIRED,
    "group_deleted": GROUP_DELETED,
    "offsets_deleted": OFFSET_DELETED,
    "topic_deleted": TOPIC_DELETED,
    "topic_recreated": RECREATED,
    "committed_while_empty": RESET_WHILE_EMPTY,
    "rewound_by_member": REWOUND,
    "lost_by_election": REWOUND,
    "unknown": CANNOT_TELL,
}
"""The verdict on each cause in `offset_history`. What that table calls lost by an election is a
member that committed an earlier offset after its topic had lost records."""

HIGH, MEDIUM, LOW = "high", "medium", "low"

Row = Mapping[str, Any]
Verdict = dict[str, Any]
Place = tuple[str, str, int]
"""Group, topic and partition."""

GroupPlace = tuple[str, None, None]
"""Of a verdict on a whole group."""

PLACE = ("group_id", "topic", "partition")
OFFSET_VERDICTS: Final = "offset_verdicts"
VERDICTS: Final = contract_schema(OFFSET_VERDICTS)
"""Columns of frames of verdicts."""


def verdicts_on(rows: pl.DataFrame, verdict: str | pl.Expr, **columns: Any) -> pl.DataFrame:  # noqa: ANN401
    """Return a verdict for each row: `VERDICTS`; what is not given is null.

    Args:
        rows: Has `PLACE`, or of a verdict on whole groups `group_id`.
        verdict: A word, or an expression of the rows' columns.
        **columns: Other columns, as a value or an expression of the rows' columns.
    """
    given: dict[str, Any] = {name: pl.col(name) for name in PLACE if name in rows.columns}
    given |= {"verdict": verdict, **columns}
    unknown = given.keys() - VERDICTS.keys()
    if unknown:
        raise TypeError(f"verdicts have no {', '.join(sorted(unknown))}")
    return rows.select(
        (each if isinstance(each := given.get(name), pl.Expr) else pl.lit(each))
        .cast(kind)
        .alias(name)
        for name, kind in VERDICTS.items()
    )


def record_at(offset: str, partition: str = "coordinator_partition") -> pl.Expr:
    """Return where a record is, by the columns of its offset and its internal partition."""
    return pl.format("__consumer_offsets-{}@{}", pl.col(partition), pl.col(offset))


def verdict_row(place: Place | GroupPlace, verdict: str, **said: Any) -> Verdict:  # noqa: ANN401 - columns
    """Return a row with all columns of `VERDICTS`; what is not said is null."""
    row = dict.fromkeys(VERDICTS) | dict(zip(PLACE, place, strict=True)) | said
    return row | {"verdict": verdict}


def badness(verdict: pl.Expr) -> pl.Expr:
    """Return the place of verdicts among all, the worst lowest."""
    word = pl.when(verdict.str.starts_with(NO_LOSS_SINCE)).then(pl.lit(NO_LOSS_SINCE))
    places = {each: number for number, each in enumerate(WORST_FIRST)}
    return word.otherwise(verdict).replace_strict(places, return_dtype=pl.Int8)
