"""Events of groups and their members: born, converted, each epoch, emptied, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame, contract_schema
from analytics.replay.groups.group_records import ASSIGNMENT_EPOCH, CLASSIC, GROUP, GROUP_KEY
from analytics.replay.history.membership_changes import (
    ASSIGNMENT_CHANGED,
    FENCED,
    JOINED,
    LEFT,
    RESTARTED,
    SUBSCRIPTION_CHANGED,
)
from analytics.replay.log.losses import (
    WHOLE,
    Coverage,
    born_from,
    lost_until,
    uncompacted_from,
    with_missing,
)
from analytics.replay.log.spans import LAST, LIFE, ROW, at, last_before
from analytics.replay.offsets.offset_history import DELETE, UNKNOWN
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Mapping

# Why a group was deleted: what took its last offsets in the same act took the group, too.
#
# DeleteGroups, the cleanup and the deletion of a topic write the group's own tombstone with those
# of its offsets (``OffsetMetadataManager``, ``GroupMetadataManager.maybeDeleteGroup``), at one
# time. A group whose tombstone is alone had no offset to say why: who deleted it is not known.

DELETED: Final = "deleted"
_ACT: Final = (*GROUP_KEY, "at")
_SEVERAL: Final = f"{UNKNOWN} (its offsets went for several reasons)"
_LEFT_OUT: Final = "offsets of other topics, which may tell why it went, were left out by --topic"
_MAY_BE_TAKEN: Final = "the tombstones of its offsets, which tell why it went, may be gone"


def with_causes_of_endings(
    events: pl.DataFrame, history: pl.DataFrame, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Say in the detail of `deleted` by what, as of the offsets that went in the same act.

    Args:
        events: Of groups, rows of `group_events`.
        history: The table `offset_history` of the same groups.
        coverage: What the dump holds.

    Returns:
        The same rows. Where no offset went at that time, or two of them for two reasons, the cause
        is unknown; `missing` says what the dump lacks that might tell it.
    """
    of_acts = (
        history.filter((pl.col("event") == DELETE) & pl.col("effective_timestamp").is_not_null())
        .select(
            *GROUP_KEY,
            pl.col("effective_timestamp").alias("at"),
            _why().alias("why"),
            pl.when(_is_unknown()).then("missing").alias("lacking"),
        )
        .group_by(_ACT)
        .agg(
            pl.when(pl.col("why").n_unique() == 1)
            .then(pl.col("why").first())
            .otherwise(pl.lit(_SEVERAL))
            .alias("why"),
            pl.col("lacking").min(),
        )
    )
    ends = pl.col("event") == DELETED
    detail = words(pl.col("detail"), "; cause: ", pl.col("why").fill_null(UNKNOWN))
    lacking = pl.coalesce(
        "lacking", pl.when(pl.col("why").is_null()).then(_why_tombstones_lack(coverage))
    )
    told = events.join(of_acts, on=list(_ACT), how="left", maintain_order="left").with_columns(
        pl.when(ends).then(detail).otherwise("detail").alias("detail"),
        pl.when(ends).then(lacking).alias("lacking"),
    )
    missing = pl.concat_str("lacking", "missing", separator="; ", ignore_nulls=True)
    return with_missing(told, missing).drop("why", "lacking")


def _is_unknown() -> pl.Expr:
    return pl.col("cause").fill_null(UNKNOWN) == UNKNOWN


def _why() -> pl.Expr:
    sure = with_word("", " (", pl.col("confidence"), " confidence)")
    cause = pl.col("cause").fill_null(UNKNOWN).str.replace_all("_", " ", literal=True)
    return words(cause, sure)


def _why_tombstones_lack(coverage: Coverage) -> pl.Expr:
    """Return why tombstones of its offsets may not be here, which lie right before its own."""
    start = uncompacted_from(coverage)
    may_be = (start > 0) & (pl.col("record_offset") <= start)
    left_out = pl.lit(coverage.has_topic_filter)
    return pl.when(left_out).then(pl.lit(_LEFT_OUT)).when(may_be).then(pl.lit(_MAY_BE_TAKEN))


# What every event of a group has: when, what, to whom, and which record showed it.

EVENTS = contract_schema("group_events")


def event_rows(frame: pl.DataFrame, log: str) -> pl.DataFrame:
    """Return events as rows of `group_events`.

    Args:
        frame: Has the columns of `group_events` but `log` and marks; rows whose `event` is null are
            none. `doubt` says, where it is there, why an event may be none of the group.
        log: The internal topic that holds the records.
    """
    doubt = pl.col("doubt") if "doubt" in frame.columns else pl.lit(None, pl.String)
    told = with_missing(frame, doubt)
    told = told.filter(pl.col("event").is_not_null()).with_columns(pl.lit(log).alias("log"))
    return contract_frame(told, "group_events")


def words(*parts: pl.Expr | str, between: str = "") -> pl.Expr:
    """Join columns and texts; what is null is left out."""
    given = [pl.lit(each) if isinstance(each, str) else each for each in parts]
    return pl.concat_str(given, separator=between, ignore_nulls=True)


def with_word(word: str, *parts: pl.Expr | str) -> pl.Expr:
    """Join a word and columns; null where one of these is."""
    given = [pl.lit(each) if isinstance(each, str) else each for each in (word, *parts)]
    return pl.concat_str(given)


def first_word(conditions: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return the first word whose condition holds, or null."""
    return pl.coalesce(
        *(pl.when(condition).then(pl.lit(word)) for word, condition in conditions.items()),
        pl.lit(None, pl.String),
    )


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
