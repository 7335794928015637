"""Events of groups and their members: born, converted, each epoch, emptied, removed."""

from __future__ import annotations

import polars as pl

from analytics.replay.groups.group_records import ASSIGNMENT_EPOCH, CLASSIC, GROUP, GROUP_KEY
from analytics.replay.history.events.event_frames import event_rows, with_word, words
from analytics.replay.history.groups.membership_changes import (
    ASSIGNMENT_CHANGED,
    FENCED,
    JOINED,
    LEFT,
    RESTARTED,
    SUBSCRIPTION_CHANGED,
)
from analytics.replay.history.neighbours import LAST, LIFE, ROW, at, last_before
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import born_from, lost_until
from schemas import CONSUMER_OFFSETS

OF_CHANGE = {
    JOINED: "member_joined",
    LEFT: "member_left",
    RESTARTED: "member_restarted",
    FENCED: "member_fenced",
    SUBSCRIPTION_CHANGED: "subscription_changed",
    ASSIGNMENT_CHANGED: "assignment",
}
_FEW = 12
_OF_STEP = (
    *(ROW, LAST, LIFE, *GROUP_KEY),
    *("offset", "timestamp", "position", "batch", "is_tombstone", "family", "role", "epoch"),
    *("starts", "is_epoch", "takes_over"),
)
_OF_EPOCH = (
    "member_count",
    "members_joined",
    "members_left",
    "partitions_assigned",
    "partitions_moved",
    "missing_before",
    "missing_is_compacted",
)


def group_life_events(
    steps: pl.DataFrame, epochs: pl.DataFrame, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return created, converted, generation, epoch, assignment, emptied and deleted.

    A life whose first record compaction or a loss may have taken was not created, nor made of a
    simple group, where the first one that is left lies: there is no such event.

    Args:
        steps: Of `group_incarnations`.
        epochs: Of `group_epochs`.
        coverage: What the dump holds.
    """
    gone = pl.col("is_tombstone")
    removal = (pl.col("role") == GROUP) & gone
    assigned = (pl.col("role") == ASSIGNMENT_EPOCH) & ~gone
    following = pl.when(pl.col(ROW) < pl.col(LAST))
    told = (
        steps.select(*_OF_STEP, last_before(pl.col("ends")).alias("ended"))
        .with_columns(
            at("ended", "batch").alias("ended_batch"),
            at("ended", "family").alias("ended_family"),
            following.then(
                pl.when(pl.col("starts").shift(-1)).then(pl.col("batch").shift(-1))
            ).alias("reborn"),
            removal.alias("removal"),
            assigned.alias("assigned"),
        )
        .filter(pl.col("starts") | pl.col("is_epoch") | pl.col("removal") | pl.col("assigned"))
    )
    facts = epochs.select(
        pl.col("began").alias(ROW), pl.col("epoch").alias("epoch_told"), *_OF_EPOCH
    )
    begins = pl.col("missing_is_compacted").alias("begins_unseen")
    lives = epochs.select(LIFE, begins).unique(LIFE, keep="first", maintain_order=True)
    rows = (
        told.join(facts, on=ROW, how="left")
        .join(lives, on=LIFE, how="left")
        .with_columns(_is_birth(coverage).alias("is_birth"))
        .unnest("position")
        .rename({"offset": "record_offset", "timestamp": "at"})
    )
    return pl.concat(_happened(rows))


def _is_birth(coverage: Coverage) -> pl.Expr:
    """Return whether the first record of a life that is left is sure to be the first of all.

    Generations are stored again, the first as well; behind its own tombstone none is missing.
    """
    follows = (pl.col("ended_family") == CLASSIC).fill_null(value=False)
    follows &= lost_until(coverage) == 0
    is_classic = pl.col("family") == CLASSIC
    seen = pl.when(is_classic).then(follows).otherwise(~pl.col("begins_unseen"))
    return seen.fill_null(value=False) | (pl.col("offset") >= born_from(coverage))


def _happened(rows: pl.DataFrame) -> list[pl.DataFrame]:
    family, epoch, starts = pl.col("family"), pl.col("epoch_told"), pl.col("starts")
    taken, batch = pl.col("takes_over"), pl.col("batch")
    converts = starts & (taken.is_not_null() | (pl.col("ended_batch") == batch))
    # What a tombstone found is not known where records of its group may have been before it.
    unseen = taken.is_not_null() & pl.col("begins_unseen").fill_null(value=False)
    converts = converts.fill_null(value=False) & ~unseen
    # The end of one life and the beginning of the next in one batch are a conversion.
    gone = pl.col("removal") & ~pl.col("reborn").eq_missing(batch)
    word = pl.when(family == CLASSIC).then(pl.lit("generation")).otherwise(pl.lit("epoch"))
    missing = pl.col("missing_before")
    counted = words(
        pl.col("member_count"),
        " members",
        with_word(", joined ", pl.col("members_joined")),
        with_word(", left ", pl.col("members_left")),
        with_word(", partitions ", pl.col("partitions_assigned")),
        with_word(", moved ", pl.col("partitions_moved")),
        pl.when(missing > 0).then(with_word("; ", missing, " before it left no record")),
        pl.when("missing_is_compacted").then(pl.lit("; what was before it is compacted")),
    )
    born = starts & ~converts & pl.col("is_birth")
    emptied = (pl.col("member_count") == 0) & (pl.col("members_left") > 0)
    came_from = pl.coalesce(taken, "ended_family")
    nothing = pl.lit(None, pl.String)
    events = (
        (converts, pl.lit("converted"), words(came_from, " to ", family), nothing),
        (born, pl.lit("created"), family, nothing),
        (epoch.is_not_null(), word, counted, epoch),
        (
            pl.col("assigned"),
            pl.lit("assignment"),
            words("targets of epoch ", pl.col("epoch")),
            nothing,
        ),
        (emptied, pl.lit("emptied"), pl.lit("the last member left"), nothing),
        (gone, pl.lit("deleted"), words("as a ", family, " group"), nothing),
    )
    return [
        event_rows(
            rows.filter(when).with_columns(
                event.alias("event"), detail.alias("detail"), subject.alias("subject")
            ),
            CONSUMER_OFFSETS,
        )
        for when, event, detail, subject in events
    ]


def member_events(changes: pl.DataFrame) -> pl.DataFrame:
    """Return what happened to members.

    Args:
        changes: The table `membership_changes`.
    """
    may_be_earlier = pl.lit("here or earlier: what was before is compacted")
    detail = words(
        with_word("was ", pl.col("previous_member_id")),
        with_word("instance ", pl.col("group_instance_id")),
        with_word("client ", pl.col("client_id"), " at ", pl.col("client_host")),
        _list("gained"),
        _list("lost"),
        pl.when("before_is_compacted").then(may_be_earlier),
        between="; ",
    )
    event = pl.col("change").replace_strict(OF_CHANGE, default=None, return_dtype=pl.String)
    subject = pl.col("member_id").alias("subject")
    return event_rows(
        changes.with_columns(event.alias("event"), subject, detail.alias("detail")),
        CONSUMER_OFFSETS,
    )


def _list(name: str) -> pl.Expr:
    """Return what is in a list: all of it, or a few and how many more."""
    size = pl.col(name).list.len().cast(pl.Int64)
    few = pl.col(name).list.head(_FEW).list.join(", ")
    rest = pl.when(size > _FEW).then(with_word(" and ", size - _FEW, " more"))
    return pl.when(size > 0).then(words(f"{name} ", few, rest))
