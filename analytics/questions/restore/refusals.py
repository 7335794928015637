"""Reasons for which an offset is not given back, each a word and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import polars as pl

INCOMPLETE: Final = "incomplete"
PRESENT_UNKNOWN: Final = "present_unknown"
MOVED_ON: Final = "moved_on"
PENDING_TRANSACTION: Final = "pending_transaction"
TOPIC_ID_CHANGED: Final = "topic_id_changed"
TOPIC_GONE: Final = "topic_gone"
TOPIC_UNKNOWN: Final = "topic_unknown"
BELOW_LOG_START: Final = "below_log_start"
ABOVE_LOG_END: Final = "above_log_end"
DATA_DIVERGED: Final = "data_diverged"
DATA_UNCERTAIN: Final = "data_uncertain"
UNFIT_GROUP: Final = "unfit_group"
SHARE_GROUP: Final = "share_group"
UNFIT_NAME: Final = "unfit_name"

UNSURE: Final = (INCOMPLETE, PRESENT_UNKNOWN, TOPIC_UNKNOWN, DATA_UNCERTAIN)
"""Reasons that say that the dump cannot tell."""

LEGAL_TOPIC: Final = r"^[a-zA-Z0-9._-]{1,249}$"
"""``Topic.validate``; another name would not come through the file."""

AND: Final = "; "
_TIME: Final = "%Y-%m-%dT%H:%M:%S%.3fZ"


class Refusal(NamedTuple):
    """One reason.

    Attributes:
        word: What programs read.
        applies: Whether it applies to a row (null is false).
        sentence: Of a row; the word alone where it is null.
    """

    word: str
    applies: pl.Expr
    sentence: pl.Expr


def with_reasons(rows: pl.DataFrame, refusals: Sequence[Refusal]) -> pl.DataFrame:
    """Add `reason` (words) and `detail` (sentences); null where nothing applies."""
    words = [pl.when(each.applies).then(pl.lit(each.word)) for each in refusals]
    details = [
        pl.when(each.applies).then(each.sentence.fill_null(pl.lit(each.word))) for each in refusals
    ]
    is_refused = pl.any_horizontal(each.applies.fill_null(value=False) for each in refusals)
    return rows.with_columns(
        pl.when(is_refused).then(pl.concat_str(texts, separator=AND, ignore_nulls=True)).alias(name)
        for name, texts in (("reason", words), ("detail", details))
    )


def refusals_of(*, include_live: bool) -> list[Refusal]:
    """Return every reason an offset may be refused for.

    Args:
        include_live: Groups that have moved on since are rewound.
    """
    optional = {MOVED_ON, PRESENT_UNKNOWN} if include_live else set()
    return [each for each in _REFUSALS if each.word not in optional]


_THEN, _NOW = pl.col("untold_then"), pl.col("untold_now")
_OF_KNOWLEDGE: Final = (
    Refusal(INCOMPLETE, _THEN.is_not_null(), pl.format("cannot tell what it was: {}", _THEN)),
    Refusal(
        PRESENT_UNKNOWN,
        _NOW.is_not_null(),
        pl.format("cannot tell whether it has moved on since: {}", _NOW),
    ),
)
_OF_TRANSACTIONS: Final = Refusal(
    PENDING_TRANSACTION, pl.col("pending").is_not_null(), pl.col("pending")
)
REFUSALS_OF_PENDING: Final = (*_OF_KNOWLEDGE, _OF_TRANSACTIONS)
"""Every reason an offset is refused for that was only pending: no row lacks them all."""

_OFFSET, _PRESENT = pl.col("committed_offset"), pl.col("present_offset")
_PRESENT_AT: Final = pl.format(" ({})", pl.col("present_timestamp").dt.strftime(_TIME))
_OF_GROUP: Final = (
    Refusal(
        MOVED_ON,
        _PRESENT > _OFFSET,
        pl.format(
            "the group has since committed {}{}: this would rewind it",
            _PRESENT,
            _PRESENT_AT.fill_null(""),
        ),
    ),
    _OF_TRANSACTIONS,
    Refusal(UNFIT_GROUP, pl.col("unfit").is_not_null(), pl.col("unfit")),
)

_ID_THEN, _ID_NOW = pl.col("topic_id_then"), pl.col("topic_id_now")
_IS_OPEN: Final = pl.any_horizontal("has_several_ids", "is_only_named").fill_null(value=False)
_IS_GONE: Final = pl.col("knows_topics") & _ID_NOW.is_null() & ~_IS_OPEN
_IS_BEYOND: Final = pl.col("partition") >= pl.col("partitions_now")
_OF_TOPIC: Final = (
    Refusal(
        TOPIC_ID_CHANGED,
        _ID_THEN != _ID_NOW,
        pl.format("the topic was created again: its id was {}, and is {}", _ID_THEN, _ID_NOW),
    ),
    Refusal(
        TOPIC_ID_CHANGED,
        pl.col("has_several_ids"),
        pl.lit("the topic was created again: cannot tell which of its ids it has now"),
    ),
    Refusal(
        TOPIC_GONE,
        _IS_GONE | _IS_BEYOND,
        pl.format("there is no partition {}-{} any more", "topic", "partition"),
    ),
    Refusal(
        TOPIC_UNKNOWN,
        pl.col("is_only_named"),
        pl.lit(
            "cannot tell whether the topic is there: only records of groups name it, and the "
            "metadata log, which does not, may begin after it was deleted, or end before it was "
            "made"
        ),
    ),
    Refusal(
        UNFIT_NAME,
        ~pl.col("topic").str.contains(LEGAL_TOPIC),
        pl.format("no topic can have this name: {}", "topic"),
    ),
)

_START: Final = pl.col("log_start_offset").fill_null(0)
_END, _SAME = pl.col("log_end_offset"), pl.col("same_up_to")
_UNCLEAN: Final = pl.col("unclean_at")
_OF_LOG: Final = (
    Refusal(BELOW_LOG_START, _OFFSET < _START, pl.format("the log starts at offset {}", _START)),
    Refusal(ABOVE_LOG_END, _OFFSET > _END, pl.format("the log ends at offset {}", _END)),
    Refusal(
        DATA_DIVERGED,
        _OFFSET > _SAME,
        pl.format("{}: the records before {} are others now", "same_by", _OFFSET),
    ),
    Refusal(
        DATA_UNCERTAIN,
        _SAME.is_null() & _UNCLEAN.is_not_null(),
        pl.format(
            "cannot tell whether the log still is the one it was committed for: an unclean "
            "election at {} may have changed it",
            _UNCLEAN.dt.strftime(_TIME),
        ),
    ),
)
_REFUSALS: Final = (*_OF_KNOWLEDGE, *_OF_GROUP, *_OF_TOPIC, *_OF_LOG)
