"""The codes of verdicts, from worst to best; what they mean says `schemas/rules/timeline.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from analytics.contracts import contract_schema
from schemas.evaluation_rules import timeline_verdicts

LOST = "lost_by_election"
LOST_BY_GROWTH = "lost_by_partition_count"
LOST_WITH_TOPIC = "lost_with_offsets_topic"
TOPIC_DELETED = "topic_deleted"
RECREATED = "topic_recreated"
EXPIRED = "expired"
GROUP_DELETED = "group_deleted"
OFFSET_DELETED = "offset_deleted"
REWOUND = "rewound_by_member"
RESET_WHILE_EMPTY = "committed_while_empty"
BELOW_ZERO = "offset_below_zero"
BELOW_LOG_START = "below_log_start"
WITHOUT_GROUP = "kept_without_group"
CANNOT_TELL = "cannot_tell"
PENDING = "pending"
NEVER_COMMITTED = "never_committed"
NO_LOSS = "no_loss_found"
"""From its `since` on the history of the offset has no gap, and nothing went back."""

WORST_FIRST: Final = tuple(timeline_verdicts())

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


def verdicts_on(
    rows: pl.DataFrame,
    verdict: str | pl.Expr,
    rung: str,
    **columns: Any,  # noqa: ANN401 - values of columns
) -> pl.DataFrame:
    """Return a verdict for each row: `VERDICTS`; what is not given is null.

    Args:
        rows: Has `PLACE`, or of a verdict on whole groups `group_id`.
        verdict: A code, or an expression of the rows' columns.
        rung: The step that decided.
        **columns: Other columns, as a value or an expression of the rows' columns.
    """
    given: dict[str, Any] = {name: pl.col(name) for name in PLACE if name in rows.columns}
    given |= {"verdict": verdict, "rung": rung, **columns}
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


def verdict_row(
    place: Place | GroupPlace,
    verdict: str,
    rung: str,
    **columns: Any,  # noqa: ANN401 - values of columns
) -> Verdict:
    """Return a row with all columns of `VERDICTS`; what is not given is null."""
    row = dict.fromkeys(VERDICTS) | dict(zip(PLACE, place, strict=True)) | columns
    return row | {"verdict": verdict, "rung": rung}


def badness(verdict: pl.Expr) -> pl.Expr:
    """Return the place of verdicts among all, the worst lowest."""
    places = {each: number for number, each in enumerate(WORST_FIRST)}
    return verdict.replace_strict(places, return_dtype=pl.Int8)
