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

import polars as pl

from analytics.replay.contract_frame import contract_frame
from analytics.replay.groups.group_records import CLASSIC, CURRENT, GROUP_KEY
from analytics.replay.groups.item_kinds import PRESENCE, SUBSCRIPTION
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import born_from, lost_until

JOINED, LEFT, RESTARTED, FENCED = "joined", "left", "restarted", "fenced"
SUBSCRIPTION_CHANGED, ASSIGNMENT_CHANGED = "subscription_changed", "assignment_changed"
AWAY = -2
_ACTIVE = "active"
_MOMENT = (*GROUP_KEY, "batch")


def membership_changes(
    intervals: pl.DataFrame, epochs: pl.DataFrame, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return the table `membership_changes`.

    Args:
        intervals: Of `assignment_intervals`.
        epochs: The table `group_epochs`.
        coverage: What the dump holds.
    """
    changes = _with_before(_changes(intervals, coverage), epochs, coverage)
    return contract_frame(_restarts(changes).unnest("position", "about"), "membership_changes")


def _changes(intervals: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Return what happened to each member at each moment, one row a kind of change."""
    kind, role = pl.col("kind"), pl.col("role")
    given = (kind == CURRENT) & (role == _ACTIVE).fill_null(value=True)
    told = intervals.filter(given | kind.is_in([PRESENCE, SUBSCRIPTION]))
    ends = told.filter(pl.col("until").is_not_null())
    facts = pl.concat([_facts(told, "at", 1), _facts(ends, "until", -1)]).with_columns(
        _may_be_older(coverage).alias("may_be_older")
    )
    came, went = pl.col("delta") > 0, pl.col("delta") < 0
    subscribed = pl.col("topic").filter(kind == SUBSCRIPTION, came).max()
    unsubscribed = pl.col("topic").filter(kind == SUBSCRIPTION, went).max()
    has, had = (pl.col("name").filter(kind == CURRENT, each).unique() for each in (came, went))
    is_presence = kind == PRESENCE
    moments = (
        # Of what one record began and ended, what it began tells more: whose record it is.
        facts.sort("record_offset", "delta", descending=[False, True])
        .group_by(*_MOMENT, "member_id")
        .agg(
            pl.when(is_presence.any())
            .then(pl.col("delta").filter(is_presence).sum())
            .alias("presence"),
            (subscribed != unsubscribed).fill_null(value=False).alias("resubscribed"),
            has.sort().alias("came"),
            had.sort().alias("went"),
            pl.col("record_offset", "at", "position").first(),
            pl.col("epoch").sort_by("record_offset", "delta", "epoch").last(),
            pl.col("about", "life", "group_type")
            .sort_by("record_offset", "delta", "begun_at")
            .last(),
            pl.col("was_away").any(),
            pl.col("may_be_older").any().alias("before_is_compacted"),
            pl.col("since").max(),
        )
    )
    return (
        moments.with_columns(_without("came", "went"), _without("went", "came"))
        .rename({"came": "gained", "went": "lost"})
        .with_columns(_words().alias("change"))
        .explode("change", empty_as_null=False)
        .with_columns(_unless_subscription("gained"), _unless_subscription("lost"))
    )


def _facts(intervals: pl.DataFrame, place: str, delta: int) -> pl.DataFrame:
    """Return what came (1) or went (-1), and where."""
    there = pl.col(place).struct
    is_presence = pl.col("kind") == PRESENCE
    thing = pl.coalesce("topic", "topic_id", "subtopology_id")
    return intervals.select(
        *GROUP_KEY,
        there.field("batch"),
        "member_id",
        "kind",
        "topic",
        pl.concat_str(thing, "partition", separator="-", ignore_nulls=True).alias("name"),
        pl.lit(delta, pl.Int32).alias("delta"),
        there.field("offset").alias("record_offset"),
        there.field("timestamp").alias("at"),
        there.field("position"),
        "about",
        "life",
        pl.col("family").alias("group_type"),
        there.field("epoch_at").alias("epoch"),
        there.field("since"),
        pl.col("at").struct.field("offset").alias("begun_at"),
        (is_presence & (pl.col("last_epoch") == AWAY) & (delta < 0)).alias("was_away"),
    )


def _may_be_older(coverage: Coverage) -> pl.Expr:
    """Return whether a record that is gone may have told of it before."""
    offset, since = pl.col("record_offset"), pl.col("since")
    first = (pl.col("delta") > 0) & since.is_null()
    lost = since.fill_null(-1) + 1 < pl.min_horizontal(offset, lost_until(coverage))
    return lost | (first & (offset < born_from(coverage)))


def _without(names: str, others: str) -> pl.Expr:
    return pl.col(names).list.set_difference(others).list.sort()


def _with_before(changes: pl.DataFrame, epochs: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Take what came with an epoch whose predecessor is known, or that is the first, for sure.

    A record of a member that brings an epoch stands before the epoch's own, in the same batch; had
    compaction taken an earlier one of the member, it would have taken the epoch before as well.
    Generations are stored again: only the one before tells what a generation changed.
    """
    if not (coverage.shown_from or coverage.complete_from):
        return changes
    key = (*GROUP_KEY, "life", "epoch")
    known = epochs.group_by(key).agg(
        pl.col("from_offset").max().alias("begins"),
        pl.col("missing_is_compacted").any().alias("is_unknown"),
    )
    is_classic = pl.col("group_type") == CLASSIC
    came_with_it = ~pl.col("is_unknown") & (pl.col("record_offset") <= pl.col("begins"))
    joined = (pl.col("presence") > 0) & (lost_until(coverage) == 0)
    counts = pl.when(is_classic).then(pl.col("since").is_not_null()).otherwise(joined)
    sure = (came_with_it & counts).fill_null(value=False)
    return changes.join(known, on=key, how="left").with_columns(
        pl.col("before_is_compacted") & ~sure
    )


def _words() -> pl.Expr:
    """Return the kinds of change at a moment; conversions alone are none."""
    came, went = pl.col("presence") > 0, pl.col("presence") < 0
    stays = ~(came | went).fill_null(value=False)
    assigned = (pl.col("gained").list.len() > 0) | (pl.col("lost").list.len() > 0)
    moved = (
        pl.when(came)
        .then(pl.lit(JOINED))
        .when(went & pl.col("was_away"))
        .then(pl.lit(FENCED))
        .when(went)
        .then(pl.lit(LEFT))
    )
    return pl.concat_list(
        moved,
        pl.when(stays & pl.col("resubscribed")).then(pl.lit(SUBSCRIPTION_CHANGED)),
        pl.when(stays & assigned).then(pl.lit(ASSIGNMENT_CHANGED)),
    ).list.drop_nulls()


def _unless_subscription(name: str) -> pl.Expr:
    is_subscription = pl.col("change") == SUBSCRIPTION_CHANGED
    return (
        pl.when(~is_subscription).then(name).otherwise(pl.lit([], pl.List(pl.String))).alias(name)
    )


def _restarts(changes: pl.DataFrame) -> pl.DataFrame:
    """Turn the leaving of a static member and the joining of its successor into one row."""
    instance = pl.col("about").struct.field("group_instance_id")
    told = changes.with_columns(instance.alias("instance"))
    is_static, change = pl.col("instance").is_not_null(), pl.col("change")
    gone, here = change.is_in([LEFT, FENCED]) & is_static, (change == JOINED) & is_static
    place = (*_MOMENT, "instance")
    before = (
        told.filter(gone)
        .sort("member_id")
        .group_by(place)
        .agg(
            pl.col("member_id").last().alias("predecessor"),
            pl.col("lost").last().alias("had"),
            pl.col("before_is_compacted").last().alias("compacted_of_it"),
        )
    )
    after = told.filter(here).select(*place, pl.lit(value=True).alias("is_succeeded")).unique()
    paired = (
        told.join(before, on=place, how="left")
        .join(after, on=place, how="left")
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
