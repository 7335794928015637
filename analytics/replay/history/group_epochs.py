"""The table `group_epochs`: each generation or group epoch, how it ended up, what it changed.

All changes are net: a member or a partition that came and went within one epoch counts for nothing.

The assignor of a consumer group is the one that most of its members named, as
``ConsumerGroup.preferredServerAssignor`` has it; `analytics.replay.groups.fold` tells the
same of the present.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    ASSIGNOR,
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    CURRENT,
    GROUP,
    GROUP_KEY,
    MEMBER,
    PRESENCE,
    REMOVED_ASSIGNMENT_EPOCH,
    SHARE,
    STREAMS,
    TARGET,
    TOPOLOGY,
    combined,
    grouped,
)
from analytics.replay.log.losses import WHOLE, Coverage, born_from, uncompacted_from
from analytics.replay.log.rules import ReplayRules
from analytics.replay.log.spans import EPOCH, LIFE, ROW, at, in_order, last_up_to, so_far

if TYPE_CHECKING:
    from analytics.replay.groups.group_records import Numbers
    from analytics.replay.history.held_items import Held


_LAST_KNOWN = ("assignment_epoch", "topology_epoch")
_EPOCH_FIELDS = ("leader", "protocol", "protocol_type", "unread", "validated_epoch")
_VOTE = (LIFE, "assignor")
_SETTLED_PARTITIONS, _SETTLED_TASKS = 0, 1  # STABLE, as stored


def group_epochs(held: Held, rules: ReplayRules, coverage: Coverage = WHOLE) -> pl.DataFrame:
    """Return the rows of the table `group_epochs`, in order.

    Args:
        held: Of `held_items`.
        rules: Of the release.
        coverage: What the dump holds.

    Returns:
        Its columns, `LIFE`, and `began`: the row of the first record of the epoch's own.
    """
    told = in_order(_epoch_rows(held.steps), (LIFE,), EPOCH)
    counted = told.with_columns(**_epoch_counts(held, told.height))
    summed = _with_totals(_with_preferred_assignor(counted, held))
    placed = _with_places(summed.filter(pl.col("began").is_not_null()), held.steps)
    return _rows(_with_missing(placed, coverage), rules)


def _epoch_rows(steps: pl.DataFrame) -> pl.DataFrame:
    """Return what the records of groups say of each epoch.

    `began` is the row of its own first record, `ending` the row where the life ended.
    """
    own, role, gone = pl.col("is_epoch"), pl.col("role"), pl.col("is_tombstone")
    assigned = pl.when(gone).then(REMOVED_ASSIGNMENT_EPOCH).otherwise("epoch").cast(pl.Int32)
    assigns = (role == ASSIGNMENT_EPOCH) & ~pl.col("is_closing")
    topology = (role == TOPOLOGY) & ~gone
    return (
        steps.select(pl.exclude("items", "position", "about"))
        .filter(pl.col(EPOCH).is_not_null())
        .group_by(EPOCH)
        .agg(
            pl.col(LIFE, "life", *GROUP_KEY).first(),
            pl.col("family").max().alias("group_type"),
            pl.col("epoch").filter(own).max(),
            # A tombstone that takes over a simple group begins a life, not the epoch beside it.
            pl.coalesce(
                pl.col(ROW).filter(own & (role == GROUP)).first(), pl.col(ROW).filter(own).first()
            ).alias("began"),
            (own & pl.col("takes_over").is_not_null()).any().alias("is_taken_over"),
            *(pl.col(name).filter(own).last() for name in _EPOCH_FIELDS),
            assigned.filter(assigns).last().alias("assignment_epoch"),
            pl.col("epoch").filter(topology).last().alias("topology_epoch"),
            pl.col("ending").max(),
        )
    )


def _with_totals(epochs: pl.DataFrame) -> pl.DataFrame:
    """Sum the changes up, and carry along what an epoch does not tell anew."""
    return epochs.with_columns(
        so_far(pl.col("joined") - pl.col("left")).alias("members"),
        so_far(pl.col("gained") - pl.col("given_up")).alias("given"),
        *(at(last_up_to(pl.col(name).is_not_null()), name) for name in _LAST_KNOWN),
    )


def _with_places(epochs: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Say where each epoch begins (`from_...`), and where it or its life ends (`to_...`)."""
    places = steps.select(
        "offset", "timestamp", "batch", pl.col("position").struct.field("leader_epoch")
    )
    began = places[epochs["began"]]
    ended = places.select(pl.col("offset", "timestamp", "batch").gather(epochs["ending"]))
    return epochs.with_columns(
        *began.rename(lambda name: f"from_{name}"), *ended.rename(lambda name: f"end_{name}")
    ).with_columns(
        pl.coalesce(_beside(pl.col("from_offset"), -1), "end_offset").alias("to_offset"),
        pl.coalesce(_beside(pl.col("from_timestamp"), -1), "end_timestamp").alias("to_timestamp"),
        pl.col("from_leader_epoch").alias("leader_epoch"),
    )


def _beside(values: pl.Expr, rows: int) -> pl.Expr:
    """Return what was said so many rows before, null where that is another life."""
    return pl.when(pl.col(LIFE) == pl.col(LIFE).shift(rows)).then(values.shift(rows))


def _with_missing(epochs: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Find out how many numbers lie between each epoch and the one before, and why.

    Returns:
        The epochs with `missing_before`, `missing_is_compacted` and `compares` (boolean: the epoch
        before is at hand, or there was none).
    """
    before = ("life", "epoch", "from_offset", "end_batch")
    is_same = pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in GROUP_KEY)
    told = epochs.with_columns(
        pl.when(is_same).then(pl.col(name).shift(1)).alias(f"{name}_before") for name in before
    )
    follows = pl.col("life_before").eq_missing(pl.col("life"))
    # A converted group goes on counting; of one born anew only the classic ones begin at zero.
    is_converted = pl.col("end_batch_before") == pl.col("from_batch")
    is_converted = pl.col("life_before").is_not_null() & is_converted.fill_null(value=False)
    epoch = pl.col("epoch")
    first = pl.when(pl.col("group_type") == CLASSIC).then(0).otherwise(epoch - 1)
    since = pl.when(follows | is_converted).then("epoch_before").otherwise(first)
    skipped = pl.max_horizontal(epoch - since - 1, 0)
    # Whatever lay before the first record that is certain to be shown may be lost. Not where the
    # cleaner took it: it leaves the last record that tells an epoch, so that none followed that.
    may_lack = pl.col("from_offset_before").fill_null(-1) + 1 < uncompacted_from(coverage)
    may_lack &= pl.col("from_offset") < born_from(coverage)
    # A tombstone takes over a simple group, unless a record of the group it is of was there before.
    lacks = may_lack & (
        (skipped > 0) | (~follows & ~is_converted & ((epoch > 1) | pl.col("is_taken_over")))
    )
    return told.with_columns(
        lacks.fill_null(value=False).alias("missing_is_compacted"), skipped.alias("skipped")
    ).with_columns(
        (~pl.col("missing_is_compacted")).alias("compares"),
        pl.when(~pl.col("missing_is_compacted")).then("skipped").alias("missing_before"),
    )


def _rows(epochs: pl.DataFrame, rules: ReplayRules) -> pl.DataFrame:
    is_classic = pl.col("group_type") == CLASSIC
    assignment_epoch = pl.col("assignment_epoch").fill_null(rules.initial_epoch)
    # What members of other protocols are given is theirs to read.
    are_consumers = pl.col("protocol_type").eq_missing(pl.lit(CONSUMER_PROTOCOL))
    readable = ~is_classic | (are_consumers & (pl.col("unread").fill_null(0) == 0))
    # Nothing moved that was not read before.
    reads = readable | (pl.col("members") == 0)
    was_readable = _beside(reads, 1).fill_null(value=True)
    compared = pl.col("compares")
    protocol_type = pl.when(is_classic).then("protocol_type").otherwise("group_type")
    return epochs.with_columns(
        pl.when(~is_classic).then(assignment_epoch).alias("assignment_epoch")
    ).with_columns(
        pl.col("members").alias("member_count"),
        _state(rules).alias("state"),
        _protocol(rules).alias("protocol"),
        protocol_type.alias("protocol_type"),
        pl.when(compared).then("joined").alias("members_joined"),
        pl.when(compared).then("left").alias("members_left"),
        pl.when(readable).then("given").alias("partitions_assigned"),
        pl.when(readable & was_readable & compared).then("moved").alias("partitions_moved"),
    )


def _state(rules: ReplayRules) -> pl.Expr:
    family = pl.col("group_type")
    validated = pl.col("topology_epoch") == pl.col("validated_epoch")
    is_ready = validated.fill_null(value=False) & rules.streams_readiness_is_recorded
    return (
        pl.when(pl.col("members") == 0)
        .then(pl.lit("Empty"))
        .when(family.is_in([CLASSIC, SHARE]))
        .then(pl.lit("Stable"))
        .when((family == STREAMS) & ~is_ready)
        .then(pl.lit("NotReady"))
        .when(pl.col("epoch") > pl.col("assignment_epoch"))
        .then(pl.lit("Assigning"))
        .when(pl.col("ready") < pl.col("members"))
        .then(pl.lit("Reconciling"))
        .otherwise(pl.lit("Stable"))
    )


def _protocol(rules: ReplayRules) -> pl.Expr:
    family = pl.col("group_type")
    return (
        pl.when(family == CLASSIC)
        .then("protocol")
        .when(family == CONSUMER)
        .then(pl.col("assignor").fill_null(rules.default_consumer_assignor))
        .when(family == SHARE)
        .then(pl.lit(rules.share_assignor))
    )


def _with_preferred_assignor(epochs: pl.DataFrame, held: Held) -> pl.DataFrame:
    """Add `assignor`: what most members that were there at the end of an epoch named, or null.

    Args:
        epochs: `EPOCH`, `LIFE` and more, in order.
        held: Of `held_items`.
    """
    named = held.runs.filter(pl.col("kind") == ASSIGNOR)
    (assignor,), (life,) = held.named(named, "topic"), held.columns_at(named["at"], LIFE)
    changes = (
        _epoch_changes(held, named.with_columns(assignor.alias("assignor"), life), *_VOTE)
        .group_by(EPOCH, *_VOTE)
        .agg(pl.col("delta").sum())
    )
    votes = (
        epochs.select(EPOCH, LIFE)
        .join(changes.select(_VOTE).unique(), on=LIFE)
        .join(changes, on=(EPOCH, *_VOTE), how="left")
        .sort(EPOCH, "assignor")
        .with_columns(pl.col("delta").fill_null(0).cum_sum().over(_VOTE).alias("votes"))
    )
    # Of two that are named by as many, the one whose name comes last.
    preferred = (
        votes.filter(pl.col("votes") > 0)
        .sort("votes", "assignor")
        .group_by(EPOCH)
        .agg(pl.col("assignor").last())
    )
    return epochs.join(preferred, on=EPOCH, how="left", maintain_order="left")


def _epoch_counts(held: Held, epochs: int) -> dict[str, pl.Series]:
    """Return what changed in each epoch.

    Args:
        held: Of `held_items`.
        epochs: How many there are.

    Returns:
        By epoch, in order: `joined` and `left` members; `gained` and `given_up`: pairs of a member
        and a partition or task; `moved`: of those gained, how many another member gave up; `ready`:
        members that reached the epoch and have nothing left to do.
    """
    kind, (family,) = pl.col("kind"), held.columns_at(held.runs["at"], "family")
    of_item = (kind == TARGET) | ((kind == CURRENT) & (family == CLASSIC))
    joined, left, _ = _changes(held, held.runs.filter(kind == PRESENCE), epochs)
    gained, given_up, moved = _changes(held, held.runs.filter(of_item), epochs)
    ready = np.bincount(_ready(held.steps), minlength=epochs)
    counts = {
        "joined": joined,
        "left": left,
        "gained": gained,
        "given_up": given_up,
        "moved": moved,
        "ready": ready,
    }
    return {name: pl.Series(name, each, pl.Int32) for name, each in counts.items()}


def _changes(held: Held, runs: pl.DataFrame, epochs: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return by epoch how much came, how much went, and how much moved from one to another."""
    changes = _epoch_changes(held, runs, "thing", "member")
    epoch, thing, member, delta = (each.to_numpy() for each in changes.get_columns())
    order, begins = grouped(combined(epoch, thing, member))
    net, first = np.add.reduceat(delta[order], begins), order[begins]
    epoch, thing, came, went = epoch[first], thing[first], net > 0, net < 0
    # Of what one member gained, as much moved as others lost of the same.
    order, begins = grouped(combined(epoch, thing))
    gained, lost = (np.add.reduceat(each[order].astype(np.int64), begins) for each in (came, went))
    moved = np.repeat(epoch[order[begins]], np.minimum(gained, lost))
    found = (np.bincount(each, minlength=epochs) for each in (epoch[came], epoch[went], moved))
    came_in, went_in, moved_in = found
    return came_in, went_in, moved_in


def _epoch_changes(held: Held, runs: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Return in which epochs runs began and ended.

    Args:
        held: Of `held_items`.
        runs: Some of its runs.
        names: Columns of these.

    Returns:
        `EPOCH`, these columns and `delta` (1 or -1).
    """
    # What ends with the life of the group was there to the end of its last epoch.
    gone = runs.filter(~pl.col("is_closing"))
    changes = (
        ended.select(*held.columns_at(ended[row], EPOCH), *names, delta=pl.lit(delta, pl.Int64))
        for ended, row, delta in ((runs, "at", 1), (gone, "until", -1))
    )
    return pl.concat(changes).filter(pl.col(EPOCH).is_not_null())


def _ready(steps: pl.DataFrame) -> Numbers:
    """Return of each member that is where the epoch of its group wants it the epoch."""
    role, gone = pl.col("role"), pl.col("is_tombstone")
    is_task = pl.col("family") == STREAMS
    settled = pl.when(is_task).then(_SETTLED_TASKS).otherwise(_SETTLED_PARTITIONS)
    there = (
        (role == CURRENT)
        & ~gone
        & (pl.col("member_state") == settled)
        & (pl.col("epoch") == pl.col("epoch_at"))
    )
    told = ((role == CURRENT) | ((role == MEMBER) & gone)) & ~pl.col("is_closing")
    return (
        steps.select(EPOCH, "member_id", told.alias("told"), there.alias("is_ready"))
        .filter(pl.col("told") & pl.col(EPOCH).is_not_null())
        .unique([EPOCH, "member_id"], keep="last", maintain_order=True)
        .filter("is_ready")[EPOCH]
        .to_numpy()
    )
