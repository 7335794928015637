"""The table `membership_changes`: who joined, left or came back, and what that gave and took.

What was written in one batch happened at once: a member that leaves one life of a group and enters
the next by a conversion did neither, and a static member whose place another id takes restarted.
Records do not tell why a member left. Only one that was away for a while, at epoch -2, and never
came back is sure to have been fenced.

The first record that compaction left of a member or of a classic group tells what was there by
then, not what happened then. Compaction takes the older records of a key first: what came after
one that is still there is whole, unless more than compaction took records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.groups.membership_facts import (
    came_with_known_epoch,
    given_names,
    known_epochs,
    member_moments,
    membership_facts,
    resubscribed,
    with_places,
)
from analytics.replay.history.neighbours import LIFE
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import lost_until
from analytics.replay.log.marks import with_marks_of_records

if TYPE_CHECKING:
    from analytics.replay.history.groups.held_items import Held

JOINED, LEFT, RESTARTED, FENCED = "joined", "left", "restarted", "fenced"
SUBSCRIPTION_CHANGED, ASSIGNMENT_CHANGED = "subscription_changed", "assignment_changed"
_PLACE: Final = (*GROUP_KEY, "batch", "instance")


def membership_changes(
    held: Held, epochs: pl.DataFrame, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return the table `membership_changes`.

    Args:
        held: Of `held_items`.
        epochs: Of `group_epochs`.
        coverage: What the dump holds.
    """
    changes = _with_before(_changes(held, coverage), epochs, coverage)
    told = _restarts(changes.unnest("about", "position"))
    marked = with_marks_of_records(told, coverage, "record_offset")
    return contract_frame(marked, "membership_changes")


def _changes(held: Held, coverage: Coverage) -> pl.DataFrame:
    """Return what happened to each member at each moment, one row a kind of change."""
    facts = membership_facts(held)
    gained, lost = given_names(facts)
    moments = member_moments(facts, coverage).with_columns(
        gained.alias("gained"),
        lost.alias("lost"),
        pl.Series("resubscribed", resubscribed(facts)),
    )
    told = pl.concat(
        moments.with_columns(word.alias("change")).filter(pl.col("change").is_not_null())
        for word in _words()
    )
    is_subscription = pl.col("change") == SUBSCRIPTION_CHANGED
    nothing = pl.lit([], pl.List(pl.String))
    return with_places(told, held).with_columns(
        pl.when(is_subscription).then(nothing).otherwise(name).alias(name)
        for name in ("gained", "lost")
    )


def _words() -> tuple[pl.Expr, pl.Expr]:
    """Return the kinds of change at a moment, at most two; conversions alone are none."""
    came, went = pl.col("presence") > 0, pl.col("presence") < 0
    stays = ~(came | went).fill_null(value=False)
    assigned = (pl.col("gained").list.len() > 0) | (pl.col("lost").list.len() > 0)
    reassigned = pl.when(stays & assigned).then(pl.lit(ASSIGNMENT_CHANGED))
    first = (
        pl.when(came)
        .then(pl.lit(JOINED))
        .when(went & pl.col("was_away"))
        .then(pl.lit(FENCED))
        .when(went)
        .then(pl.lit(LEFT))
        .when("resubscribed")
        .then(pl.lit(SUBSCRIPTION_CHANGED))
        .otherwise(reassigned)
    )
    return first, pl.when("resubscribed").then(reassigned)


def _with_before(changes: pl.DataFrame, epochs: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Take what came with an epoch whose predecessor is known, or that is the first, for sure.

    A record of a member that brings an epoch stands before the epoch's own, in the same batch; had
    compaction taken an earlier one of the member, it would have taken the epoch before as well.
    Generations are stored again: only the one before tells what a generation changed.
    """
    if not (coverage.uncompacted_from or coverage.complete_from):
        return changes
    joined = (pl.col("presence") > 0) & (lost_until(coverage) == 0)
    sure = came_with_known_epoch(pl.col("record_offset"), joined)
    return changes.join(known_epochs(epochs), on=(LIFE, "epoch"), how="left").with_columns(
        pl.col("before_is_compacted") & ~sure
    )


def _restarts(changes: pl.DataFrame) -> pl.DataFrame:
    """Turn the leaving of a static member and the joining of its successor into one row."""
    told = changes.with_columns(pl.col("group_instance_id").alias("instance"))
    is_static, change = pl.col("instance").is_not_null(), pl.col("change")
    gone, here = change.is_in([LEFT, FENCED]) & is_static, (change == JOINED) & is_static
    before = (
        told.filter(gone)
        .sort("member_id")
        .group_by(_PLACE)
        .agg(
            pl.col("member_id").last().alias("predecessor"),
            pl.col("lost").last().alias("had"),
            pl.col("before_is_compacted").last().alias("compacted_of_it"),
        )
    )
    if before.is_empty():
        return changes.with_columns(pl.lit(None, pl.String).alias("previous_member_id"))
    after = told.filter(here).select(*_PLACE, pl.lit(value=True).alias("is_succeeded")).unique()
    paired = (
        told.join(before, on=_PLACE, how="left")
        .join(after, on=_PLACE, how="left")
        .filter(~gone | pl.col("is_succeeded").is_null())
    )
    restarted = here & pl.col("predecessor").is_not_null()
    had, has = pl.col("had"), pl.col("gained")
    lost, gained = (
        had.list.set_difference(has).list.sort(),
        has.list.set_difference(had).list.sort(),
    )
    return paired.with_columns(
        pl.when(restarted).then("predecessor").alias("previous_member_id"),
        pl.when(restarted).then(pl.lit(RESTARTED)).otherwise(change).alias("change"),
        pl.when(restarted)
        .then("compacted_of_it")
        .otherwise("before_is_compacted")
        .alias("before_is_compacted"),
        pl.when(restarted).then(lost).otherwise("lost").alias("lost"),
        pl.when(restarted).then(gained).otherwise("gained").alias("gained"),
    )
