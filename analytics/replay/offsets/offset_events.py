"""Events of committed offsets: rewound, lost, expired, deleted; and of transactions of offsets.

Takes rows of whole groups, of any number of partitions; gives rows of `group_events`.
"""

from __future__ import annotations

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.events.group_life_events import (
    event_rows,
    first_word,
    with_word,
    words,
)
from analytics.replay.log.record_position import POSITION
from analytics.replay.offsets.effective_commits import ABORT, COMMIT
from analytics.replay.offsets.offset_changes import DELETE, TRANSACTION_ABORT
from analytics.replay.offsets.offset_history import LOST_BY_ELECTION, MEMBER, UNKNOWN
from schemas import CONSUMER_OFFSETS

EXPIRATION = "expiration"
_TRANSACTION = (*GROUP_KEY, "producer_id", "end_offset")


def events_of_offsets(history: pl.DataFrame) -> pl.DataFrame:
    """Return offset_rewound, offset_lost, expired and offsets_deleted.

    Args:
        history: The table `offset_history`.
    """
    deleted, cause, before = pl.col("event") == DELETE, pl.col("cause"), pl.col("previous_offset")
    back = (pl.col("event") != TRANSACTION_ABORT) & (pl.col("advance") < 0)
    event = first_word(
        {
            "expired": deleted & (cause == EXPIRATION),
            "offsets_deleted": deleted,
            "offset_lost": back & (cause == LOST_BY_ELECTION),
            "offset_rewound": back,
        }
    )
    told = history.filter(deleted | back).with_columns(
        event.alias("event"), deleted.alias("is_deleted")
    )
    moved = (
        pl.when("is_deleted")
        .then(with_word("was ", before))
        .otherwise(words("from ", before, " to ", pl.col("committed_offset")))
    )
    why = words(
        cause.str.replace_all("_", " ", literal=True), " (", pl.col("confidence"), " confidence)"
    )
    writer = pl.when(~pl.col("is_deleted")).then(_can_have_committed())
    placed = told.with_columns(
        pl.col("effective_offset").alias("record_offset"),
        pl.col("effective_timestamp").alias("at"),
        words(pl.col("topic"), pl.col("partition"), between="-").alias("subject"),
        words(moved, why, writer, between="; ").alias("detail"),
    )
    return event_rows(placed, CONSUMER_OFFSETS)


def _can_have_committed() -> pl.Expr:
    """Return who can have committed: no record says which of a group's members it was.

    Members alone commit outside transactions while there are some (``validateOffsetCommit``).
    """
    members, owner, who = pl.col("group_members"), pl.col("member_id"), pl.col("origin")
    only = words("by its only member", with_word(" ", owner))
    several = words("by any of its ", members, " members")
    by_member = (
        pl.when(members == 1)
        .then(only)
        .when(members > 1)
        .then(several)
        .otherwise(pl.lit("by any of its members"))
    )
    by = (
        pl.when(who == MEMBER)
        .then(by_member)
        .when(who == UNKNOWN)
        .then(pl.lit("by whom is not known"))
    )
    is_named = (who == MEMBER) & (members == 1)
    owned = pl.when(~is_named.fill_null(value=False)).then(owner + pl.lit(" owned it"))
    said = words(by, owned, between=", ")
    return pl.when(said != "").then(said)


def transaction_events(ended: pl.DataFrame, markers: pl.DataFrame) -> pl.DataFrame:
    """Return transaction_opened, transaction_committed and transaction_aborted, once a group.

    Args:
        ended: Of `ended_commits`.
        markers: `MARKERS`.
    """
    first = ("record_offset", "committed_at", *POSITION)
    opened = (
        ended.filter("waits")
        .sort("record_offset")
        .group_by(*_TRANSACTION, "outcome", maintain_order=True)
        .agg(
            *(pl.col(name).first() for name in first),
            pl.struct("topic", "partition").n_unique().alias("offsets"),
        )
    ).rename({"committed_at": "at"})
    places = markers.select(
        "coordinator_partition",
        "end_offset",
        pl.col("end_offset").alias("record_offset"),
        pl.col("end_at").alias("at"),
        *POSITION,
    ).unique(["coordinator_partition", "end_offset"])
    done = opened.select(*_TRANSACTION, "outcome", "offsets").join(
        places, on=["coordinator_partition", "end_offset"]
    )
    event = first_word(
        {
            "transaction_committed": pl.col("outcome") == COMMIT,
            "transaction_aborted": pl.col("outcome") == ABORT,
        }
    )
    steps = pl.concat(
        [
            opened.with_columns(pl.lit("transaction_opened").alias("event")),
            done.with_columns(event.alias("event")),
        ],
        how="diagonal",
    )
    noun = pl.when(pl.col("offsets") == 1).then(pl.lit(" offset")).otherwise(pl.lit(" offsets"))
    told = steps.with_columns(
        words("producer ", pl.col("producer_id")).alias("subject"),
        words(pl.col("offsets"), noun).alias("detail"),
    )
    return event_rows(told, CONSUMER_OFFSETS)
