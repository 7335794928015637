"""The table `rebalances`: each epoch with what led to it.

Whether a member timed out or left by itself is in no record, nor is a generation that was joined
and never synced. Of a coordinator that failed only what it had stored is known.
"""

from __future__ import annotations

import polars as pl

from analytics.questions.rebalances.storms import CHURN
from analytics.questions.sums import divided
from analytics.replay.groups.group_records import CLASSIC
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import lost_between, uncompacted_from

_GROUP = ("coordinator_partition", "group_id")
_LIFE = (*_GROUP, "life")
_CHANGE = ("change", "member_id")
_EMPTY = "Empty"
_LEAVING = ("left", "fenced")
_COMING = ("joined", "subscription_changed")
_HIDDEN = "_hidden"


def rebalances(
    epochs: pl.DataFrame,
    changes: pl.DataFrame,
    again: pl.DataFrame,
    coverage: Coverage = WHOLE,
) -> pl.DataFrame:
    """Return the table `rebalances`.

    Args:
        epochs: The table `group_epochs`.
        changes: The table `membership_changes`.
        again: Of `stored_again`.
        coverage: What the dump holds.

    Returns:
        Of each kind of change (`CHURN`) who made it; null where nobody is known to have, and what
        compaction took may have told of some.
    """
    is_hidden = pl.col("before_is_compacted")
    known, hidden = changes.filter(~is_hidden), changes.filter(is_hidden)
    last = ("state", "leader_epoch", "from_timestamp", "from_offset")
    key = (*_LIFE, "epoch")
    since = (pl.col("from_timestamp") - pl.col("before_from_timestamp")).dt.total_microseconds()
    after = pl.col("before_from_offset").fill_null(-1)
    return (
        epochs.sort(*_LIFE, "from_offset")
        .with_columns(in_life_before(pl.col(name)).alias(f"before_{name}") for name in last)
        .join(_who(_led_to(known, epochs)), on=key, how="left")
        .join(_who(_led_to(hidden, epochs)), on=key, how="left", suffix=_HIDDEN)
        .join(again, on=[*_GROUP, "epoch", "from_offset"], how="left")
        .with_columns(
            pl.col("from_timestamp").alias("at"),
            # Where the coordinator's clock went back, nothing tells how long it was.
            pl.when(since >= 0)
            .then(divided(since, 1000).cast(pl.Int64))
            .alias("since_previous_ms"),
            pl.col("times").fill_null(0).alias("stored_again"),
            _coordinator_change().alias("coordinator_change"),
            *(_known_or_none(each, coverage) for each in CHURN),
            lost_between(coverage, after, pl.col("from_offset") + 1).alias("missing"),
        )
        .with_columns(pl.col("missing").is_null().alias("complete"))
    )


def _known_or_none(change: str, coverage: Coverage) -> pl.Expr:
    """Return who made a change, a list; null where it is empty and compaction may be why."""
    # A generation has all of its members in one record; else each member has its own, and the
    # cleaner takes those of members that are gone.
    is_after = (pl.col("before_from_offset") < uncompacted_from(coverage)).fill_null(value=False)
    is_taken = pl.col("missing_is_compacted") | ((pl.col("group_type") != CLASSIC) & is_after)
    # The first record left of a member may be one of many: of its coming, going, and change.
    is_hidden = pl.any_horizontal(pl.col(f"{each}{_HIDDEN}").list.len() > 0 for each in CHURN)
    may_be_more = is_taken | is_hidden.fill_null(value=False)
    known = pl.col(change).fill_null([])
    return pl.when((known.list.len() > 0) | ~may_be_more).then(known).alias(change)


def in_life_before(value: pl.Expr) -> pl.Expr:
    """Return the value of the row before, null in the first row of a life; rows are in order."""
    is_same = pl.all_horizontal(pl.col(each) == pl.col(each).shift(1) for each in _LIFE)
    return pl.when(is_same).then(value.shift(1))


def stored_again(generations: pl.DataFrame) -> pl.DataFrame:
    """Return how often a generation was stored once more than it was made.

    Args:
        generations: Records of classic groups, cut at the instant: `coordinator_partition`,
            `group_id`, `offset`, `leader_epoch`, `is_tombstone`, `generation`.

    Returns:
        `coordinator_partition`, `group_id`, `epoch`, `from_offset` (of its first record), `times`,
        `by_another` (boolean: a later coordinator did).
    """
    told = (*_GROUP, "generation")
    is_same = pl.all_horizontal(pl.col(each) == pl.col(each).shift(1) for each in told)
    again = (is_same & ~pl.col("is_tombstone").shift(1)).fill_null(value=False)
    return (
        generations.sort(*_GROUP, "offset")
        .with_columns(again.alias("again"), (~again).cum_sum().alias("run"))
        # Hardly any is: what was stored once is no run.
        .filter(pl.col("again") | pl.col("again").shift(-1))
        .group_by("run")
        .agg(
            pl.col(_GROUP).first(),
            pl.col("generation").first().alias("epoch"),
            pl.col("offset").min().alias("from_offset"),
            (pl.len().cast(pl.Int32) - 1).alias("times"),
            (pl.col("leader_epoch").drop_nulls().n_unique() > 1).alias("by_another"),
        )
        .drop("run")
    )


def _led_to(changes: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Return changes with the epoch they led to: the next, where theirs left no record.

    A member of a group of the newer types that joins or subscribes to something else without an
    epoch of its own record does so while an epoch is in force, and leads to the one after that: the
    coordinator resolves regular expressions later.
    """
    shown = epochs.select(*_LIFE, "epoch").unique().sort("epoch")
    begins = epochs.group_by(*_LIFE, "epoch").agg(
        pl.col("group_type").first().alias("family"), pl.col("from_offset").max().alias("begins")
    )
    is_later = (pl.col("family") != CLASSIC) & pl.col("change").is_in(_COMING)
    is_later &= pl.col("record_offset") > pl.col("begins")
    led = changes.join(begins, on=[*_LIFE, "epoch"], how="left").with_columns(
        pl.col("epoch").fill_null(0) + is_later.fill_null(value=False).cast(pl.Int32)
    )
    told = _in_lives(led.select(*_LIFE, "at", "epoch", *_CHANGE), epochs).sort("epoch")
    return told.join_asof(
        shown.with_columns(pl.col("epoch").alias("next")),
        on="epoch",
        by=list(_LIFE),
        strategy="forward",
        check_sortedness=False,
    ).select(*_LIFE, pl.col("next").alias("epoch"), *_CHANGE)


def _in_lives(changes: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Return changes in the life they led to: who leaves with a conversion is in that before."""
    next_life = (
        epochs.sort("from_offset")
        .group_by(_LIFE, maintain_order=True)
        .agg(pl.col("epoch").first().alias("next_epoch"), pl.col("from_timestamp").first())
        .select(
            *_GROUP,
            (pl.col("life") - 1).alias("life"),
            pl.col("life").alias("next_life"),
            "next_epoch",
            pl.col("from_timestamp").alias("at"),
        )
    )
    is_converted = pl.col("change").is_in(_LEAVING) & pl.col("next_life").is_not_null()
    return changes.join(next_life, on=[*_LIFE, "at"], how="left").select(
        *_GROUP,
        *(
            pl.when(is_converted).then(f"next_{name}").otherwise(name).alias(name)
            for name in ("life", "epoch")
        ),
        *_CHANGE,
    )


def _who(changes: pl.DataFrame) -> pl.DataFrame:
    """Return members by kind of change, for each epoch."""
    named = (
        pl.col("member_id").filter(pl.col("change") == change).unique().sort().alias(change)
        for change in CHURN
    )
    return changes.drop_nulls("member_id").group_by(*_LIFE, "epoch").agg(*named)


def _coordinator_change() -> pl.Expr:
    """Return what the coordinator before had stored, where another wrote the epoch's record."""
    changed = pl.col("leader_epoch") != pl.col("before_leader_epoch")
    what = (
        pl.when(pl.col("group_type") != CLASSIC)
        .then(pl.lit("kept"))
        .when(pl.col("missing_before") > 0)
        .then(pl.lit("unsynced"))
        .when(pl.col("before_state") == _EMPTY)
        .then(pl.lit("empty"))
        .otherwise(pl.lit("synced"))
    )
    return pl.when(pl.col("by_another")).then(pl.lit("stored_again")).when(changed).then(what)
