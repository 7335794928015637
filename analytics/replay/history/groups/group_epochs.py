"""The table `group_epochs`: each generation or group epoch, how it ended up, what it changed."""

from __future__ import annotations

import polars as pl

from analytics.replay.contract_frame import contract_frame
from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    GROUP_KEY,
    REMOVED_ASSIGNMENT_EPOCH,
    SHARE,
    STREAMS,
    TOPOLOGY,
)
from analytics.replay.history.groups.assignor_votes import with_preferred_assignor
from analytics.replay.history.groups.epoch_counts import COUNTS, EPOCH_KEY, epoch_counts
from analytics.replay.history.neighbours import ROW
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import born_from, uncompacted_from
from analytics.replay.log.rules import ReplayRules

_LIFE = (*GROUP_KEY, "life")
_CARRIED = ("assignment_epoch", "topology_epoch")
_SAID = ("leader", "protocol", "protocol_type", "unread", "validated_epoch")


def group_epochs(
    steps: pl.DataFrame, intervals: pl.DataFrame, rules: ReplayRules, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return the table `group_epochs`.

    Args:
        steps: Of `group_incarnations`.
        intervals: Of `assignment_intervals`.
        rules: Of the release.
        coverage: What the dump holds.
    """
    counts = epoch_counts(steps, intervals)
    epochs = _told(steps).join(counts, on=EPOCH_KEY, how="left").sort(EPOCH_KEY)
    summed = _with_totals(with_preferred_assignor(epochs, intervals).sort(EPOCH_KEY))
    placed = _with_places(summed.filter(pl.col("began").is_not_null()), steps)
    compared = _with_missing(placed, coverage)
    return contract_frame(_rows(compared, rules), "group_epochs")


def _told(steps: pl.DataFrame) -> pl.DataFrame:
    """Return what the records of groups say of each epoch.

    `began` is the row of its own first record, `ending` the row where the life ended.
    """
    own, role, gone = pl.col("is_epoch"), pl.col("role"), pl.col("is_tombstone")
    assigned = pl.when(gone).then(REMOVED_ASSIGNMENT_EPOCH).otherwise("epoch").cast(pl.Int32)
    assigns = (role == ASSIGNMENT_EPOCH) & ~pl.col("is_closing")
    topology = (role == TOPOLOGY) & ~gone
    return (
        steps.filter(pl.col("epoch_no").is_not_null())
        .group_by(EPOCH_KEY)
        .agg(
            pl.col("family").max().alias("group_type"),
            pl.col("epoch").filter(own).max(),
            pl.col(ROW).filter(own).first().alias("began"),
            *(pl.col(name).filter(own).last() for name in _SAID),
            assigned.filter(assigns).last().alias("assignment_epoch"),
            pl.col("epoch").filter(topology).last().alias("topology_epoch"),
            pl.col("ending").max(),
        )
    )


def _with_totals(epochs: pl.DataFrame) -> pl.DataFrame:
    """Sum the changes up, and carry along what an epoch does not tell anew."""
    counts = {name: pl.col(name).fill_null(0) for name in COUNTS}
    members, given = counts["joined"] - counts["left"], counts["gained"] - counts["given_up"]
    return epochs.with_columns(
        members.cum_sum().over(_LIFE).alias("members"),
        given.cum_sum().over(_LIFE).alias("given"),
        pl.col(_CARRIED).forward_fill().over(_LIFE),
        **counts,
    )


def _with_places(epochs: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Say where each epoch begins (`from_...`), and where it or its life ends (`to_...`)."""
    places = steps.select(
        "offset", "timestamp", "batch", pl.col("position").struct.field("leader_epoch")
    )
    began = places[epochs["began"]]
    ended = places.select(pl.col("offset", "timestamp", "batch").gather(epochs["ending"]))
    of_next = pl.col("from_offset", "from_timestamp").shift(-1).over(_LIFE).name.prefix("next_")
    return (
        epochs.with_columns(
            *began.rename(lambda name: f"from_{name}"), *ended.rename(lambda name: f"end_{name}")
        )
        .with_columns(of_next)
        .with_columns(
            pl.coalesce("next_from_offset", "end_offset").alias("to_offset"),
            pl.coalesce("next_from_timestamp", "end_timestamp").alias("to_timestamp"),
            pl.col("from_leader_epoch").alias("leader_epoch"),
        )
    )


def _with_missing(epochs: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Find out how many numbers lie between each epoch and the one before, and why.

    Returns:
        The epochs with `missing_before`, `missing_is_compacted` and `compares` (boolean: the epoch
        before is at hand, or there was none).
    """
    before = ("life", "epoch", "from_offset", "end_batch")
    told = epochs.with_columns(pl.col(before).shift(1).over(GROUP_KEY).name.suffix("_before"))
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
    lacks = may_lack & ((skipped > 0) | (~follows & ~is_converted & (epoch > 1)))
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
    was_readable = reads.shift(1).over(_LIFE).fill_null(value=True)
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
