"""What lies between the start offset of a share partition and the last offset with a stored state.

The leader keeps this window in memory (``SharePartition``) and lets no more records be handed out
once it spans ``group.share.partition.max.record.locks`` offsets. Offsets in it are acknowledged or
archived (finally dealt with), available or archiving, or they have no stored state: they are handed
out at the moment, or were not fetched yet. Which of the two no record tells: locks are kept in
memory alone.

A write names the start offset from before its own ranges count. So the stored start offset may lie
below ranges that are finally dealt with; the next leader moves it past them, and so do we: the
*next offset* is the first that is not finally dealt with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.questions.share.settings import (
    ALWAYS,
    ANSWERED,
    ASSUMED,
    DYNAMIC,
    EARLIEST,
    OFFSET_RESET,
)
from analytics.questions.share.share_log import HOME, KEY, RANGES, counted, size_of
from analytics.replay.share_fold import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    SNAPSHOT,
    TOMBSTONE,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from analytics.questions.share.settings import ShareSettings
    from analytics.questions.share.share_log import ShareLog

# What a share group has no delivery on record of, of a partition taken on later than its topic.
#
# A share partition that is initialised without a start offset begins where
# `share.auto.offset.reset` says, at the end of the log if nothing else is set
# (``SharePartition.maybeInitialize``). A group that has shared a topic for long, and gets a new
# partition of it, so passes over what was written there before (KIP-1327). No delivery of what
# lies below its first start offset was ever stored. What was handed out before the first write,
# and forgotten with the leader, no record tells.

BELOW_FIRST: Final = (
    "of offsets {} to {} it has no delivery on record, though it shared the topic in an earlier "
    "epoch: {}"
)
BY_TOOL: Final = "its state was made with a start offset, which tools do"
OTHERWISE: Final = (
    "share.auto.offset.reset is earliest, so something else set its start, or that is newer"
)
NOT_THEN: Final = "share.auto.offset.reset was set later, and what it was then is not known"
_SOURCES: Final = {
    ASSUMED: "Kafka's default, assumed",
    DYNAMIC: "from the metadata log",
    ANSWERED: "as the cluster answered",
}
_GIVEN: Final = "from the settings given"


def with_first_starts(
    rows: pl.DataFrame, log: ShareLog, settings: ShareSettings, lacking: Collection[int] = ()
) -> pl.DataFrame:
    """Add `offsets_below_first`, `is_later_partition` and `offset_reset`, and say what follows.

    Args:
        rows: `KEY`, `coordinator_partition`, `log_start_offset`, `phase`, `complete`, `reason`.
        log: The records up to the instant.
        settings: What groups go by.
        lacking: Internal partitions of which the dump lacks records.
    """
    columns = rows.columns
    lacks = pl.col(HOME).is_in(list(lacking)).fill_null(value=False)
    is_known = pl.col("complete") & ~lacks
    first = _first_starts(log).with_columns(pl.col("partition").cast(rows.schema["partition"]))
    is_claimed = pl.col("phase") != "orphan"
    log_start = pl.when(pl.col("log_start_offset") >= 0).then("log_start_offset")
    # Where no epochs are kept (4.0: all are 0) none is earlier.
    has_epoch = pl.col("first_epoch") > 0
    earliest = pl.col("least_epoch").filter(is_claimed).min().over("group_id", "topic_id")
    found = (
        settings.with_setting(rows, OFFSET_RESET, "offset_reset")
        .join(first, KEY, "left", maintain_order="left")
        .with_columns(
            pl.when(is_known).then(name).alias(name)
            for name in ("first_start", "first_epoch", "is_made", "first_at")
        )
        .with_columns(
            offsets_below_first=(pl.col("first_start") - log_start).clip(0),
            is_later_partition=pl.when(has_epoch).then(
                (earliest < pl.col("first_epoch")).fill_null(value=False)
            ),
        )
    )
    passed = pl.col("is_later_partition") & (pl.col("offsets_below_first") > 0)
    words = pl.format(BELOW_FIRST, "log_start_offset", pl.col("first_start") - 1, _how())
    both = pl.concat_str(words, "reason", separator="; ", ignore_nulls=True)
    added = ("offsets_below_first", "is_later_partition", "offset_reset", "offset_reset_source")
    return found.with_columns(reason=pl.when(passed).then(both).otherwise("reason")).select(
        *columns, *added
    )


def _first_starts(log: ShareLog) -> pl.DataFrame:
    """Return what the last life of each share partition began with.

    Returns:
        `KEY`; `first_start` (its first start offset), `first_epoch` and `is_made` (by a tool), null
        where the log does not have the state's beginning; `first_at`, when its first record was
        written; `least_epoch`, the least state epoch that is on record: it had state by then.
    """
    is_last_life = pl.col("life") == pl.col("life").last().over("share")
    has_start = (pl.col("start") >= 0) & (pl.col("kind") != TOMBSTONE)
    began = {
        name: pl.coalesce(pl.col(name).filter(has_start).first(), pl.col(name).first())
        for name in ("kind", "leader_epoch", "ranges")
    }
    # A state is numbered from 0 on; one that begins with another number began before the log does.
    is_told = (pl.col("kind").first() == SNAPSHOT) & (pl.col("snapshot_epoch").first() == 0)
    is_made = (began["kind"] == SNAPSHOT) & (began["leader_epoch"] <= 0) & (began["ranges"] == 0)
    lives = (
        log.records.filter(is_last_life)
        .group_by("share", maintain_order=True)
        .agg(
            pl.when(is_told).then(pl.col("start").filter(has_start).first()).alias("first_start"),
            pl.when(is_told).then(pl.col("state_epoch").first()).alias("first_epoch"),
            pl.when(is_told).then(is_made).alias("is_made"),
            pl.col("at").first().alias("first_at"),
            pl.col("state_epoch").filter(pl.col("kind") == SNAPSHOT).min().alias("least_epoch"),
        )
    )
    return log.numbers.join(lives, "share", "inner").drop("share")


def _how() -> pl.Expr:
    """Return why a share partition began where it did, in words."""
    value, since = pl.col("offset_reset"), pl.col("offset_reset_since")
    words = pl.col("offset_reset_source").replace_strict(_SOURCES, default=_GIVEN)
    is_newer = (since != ALWAYS) & (since > pl.col("first_at")).fill_null(value=True)
    return (
        pl.when("is_made")
        .then(pl.lit(BY_TOOL))
        .when(is_newer)
        .then(pl.lit(NOT_THEN))
        .when(value == EARLIEST)
        .then(pl.lit(OTHERWISE))
        .otherwise(pl.format("share.auto.offset.reset is {} ({})", value, words))
    )


NOT_STORED: Final = 5
"""Beside the delivery states: handed out at the moment or not fetched yet, no record tells."""

STATE_NAMES: Final = {
    AVAILABLE: "AVAILABLE",
    ACQUIRED: "ACQUIRED",
    ACKNOWLEDGED: "ACKNOWLEDGED",
    ARCHIVING: "ARCHIVING",
    ARCHIVED: "ARCHIVED",
    NOT_STORED: "NOT_STORED",
}
UNKNOWN: Final = "UNKNOWN"
"""A delivery state that Kafka does not know: leaders refuse to load it."""

DONE: Final = (ACKNOWLEDGED, ARCHIVED)
"""The delivery states that are final (``SharePartition.isStateTerminal``)."""
_GROUP: Final = ("group_id", "topic_id", "partition")


def state_name(state: pl.Expr) -> pl.Expr:
    """Return a delivery state in Kafka's words, `UNKNOWN` where Kafka has none; null of null."""
    names = state.cast(pl.Int64).replace_strict(STATE_NAMES, default=UNKNOWN)
    return pl.when(state.is_not_null()).then(names)


def is_done(state: pl.Expr) -> pl.Expr:
    """Return whether a delivery state is final."""
    return state.is_in(DONE)


def stored_ranges(rows: pl.DataFrame, batches: pl.DataFrame) -> pl.DataFrame:
    """Return the stored ranges of share partitions, ascending.

    What lies below a start offset, which a leader refuses to load, is cut away.

    Args:
        rows: `row` (a number), `group_id`, `topic_id`, `partition`, `start_offset`.
        batches: The table `share_batches`.

    Returns:
        `row`, and `RANGES` without `record`.
    """
    start = pl.col("start_offset").fill_null(-1)
    of_rows = rows.select("row", *_GROUP, start=start)
    return (
        batches.join(of_rows, _GROUP, "inner")
        .select(
            "row",
            first=pl.max_horizontal("first_offset", "start"),
            last="last_offset",
            state="delivery_state",
            count="delivery_count",
            was="first_offset",
        )
        .sort("row", "was", maintain_order=True)
        .filter(pl.col("last") >= pl.col("first"))
        .select("row", *(pl.col(name).cast(RANGES[name]) for name in RANGES.names()[1:]))
    )


def windows(rows: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Return the window of each share partition: a row for each, in their order.

    Args:
        rows: `row`, `start_offset`; null where there is none.
        ranges: Of `stored_ranges`.

    Returns:
        `row`; `start`, null as given; `last`, the last offset with a stored state, one below the
        start offset where there is none; `next`, the first offset that is not finally dealt with;
        `count_0` to `count_5`, offsets from the start offset on by delivery state (`NOT_STORED` are
        those between stored ranges); `done`, how many are finally dealt with; `in_flight`, those
        that are not; `locked`, what it spans from the next offset on, which the limit is about
        (``SharePartition.numInFlightRecords``); and of what comes at the next offset, where
        something is stored there or beyond, else null, `blocking_first`, `blocking_last`,
        `blocking_state` and `blocking_count` (null where none is stored).
    """
    start = pl.col("start")
    of_rows = rows.select("row", start=pl.when(pl.col("start_offset") >= 0).then("start_offset"))
    ranges = ranges.join(of_rows, "row", "left", maintain_order="left")
    ranges = ranges.with_columns(leads=_leads())
    size, led = size_of(pl.col("first"), pl.col("last")), pl.col("last").filter("leads").max() + 1
    behind = pl.exclude("row", "leads").filter(~pl.col("leads")).first()
    states = [number for number in STATE_NAMES if number != NOT_STORED]
    found = ranges.group_by("row").agg(
        pl.col("last").max().alias("stored_to"),
        led.alias("led_to"),
        *(counted(size.filter(pl.col("state") == each)).alias(f"count_{each}") for each in states),
        behind.name.prefix("behind_"),
    )
    counts = [f"count_{each}" for each in states]
    last = pl.max_horizontal(start - 1, pl.coalesce("stored_to", start - 1))
    until = pl.col("behind_first")
    blocks = until.is_not_null() & start.is_not_null()
    is_gap = until > pl.col("next")
    return (
        of_rows.join(found, "row", "left", maintain_order="left")
        .with_columns(
            *(pl.col(name).fill_null(0) for name in counts),
            last=pl.when(start.is_not_null())
            .then(last)
            .otherwise(pl.col("stored_to").fill_null(-1)),
            next=pl.when(start.is_not_null()).then(pl.max_horizontal(start, "led_to")),
        )
        .with_columns(
            pl.when(start.is_not_null())
            .then(pl.col("last") - start + 1 - pl.sum_horizontal(counts))
            .otherwise(0)
            .alias(f"count_{NOT_STORED}"),
            done=pl.sum_horizontal(f"count_{each}" for each in DONE),
            locked=(pl.col("last") - pl.col("next") + 1).clip(0).fill_null(0),
        )
        .with_columns(
            in_flight=pl.sum_horizontal(*counts, f"count_{NOT_STORED}") - pl.col("done"),
            blocking_first=pl.when(blocks).then("next"),
            blocking_last=pl.when(blocks & is_gap).then(until - 1).when(blocks).then("behind_last"),
            blocking_state=pl.when(blocks & is_gap)
            .then(pl.lit(NOT_STORED))
            .when(blocks)
            .then("behind_state"),
            blocking_count=pl.when(blocks & ~is_gap).then(pl.col("behind_count").cast(pl.Int32)),
        )
        .drop("stored_to", "led_to", pl.selectors.starts_with("behind_"))
    )


def _leads() -> pl.Expr:
    """Return which ranges follow the start offset without a gap, all of them finally dealt with."""
    follows = pl.col("last").shift(1).over("row") + 1
    holds = is_done(pl.col("state")) & (pl.col("first") <= pl.coalesce(follows, "start"))
    return (~holds.fill_null(value=False)).cum_sum().over("row") == 0


def delivery_counts(rows: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Return the table `share_delivery_counts`: how often records were delivered.

    Args:
        rows: Share partitions: `row`, `group_id`, `topic_id`, `topic`, `partition`,
            `delivery_count_limit`.
        ranges: Their stored ranges, of `stored_ranges`.

    Returns:
        A row for each share partition, delivery count and state, in this order.
    """
    keys = ["row", "count", "state"]
    found = ranges.group_by(keys).agg(records=counted(size_of(pl.col("first"), pl.col("last"))))
    left = pl.col("delivery_count_limit") - pl.col("count").cast(pl.Int64)
    of_rows = rows.select("row", *_GROUP, "topic", "delivery_count_limit")
    return (
        found.sort(keys)
        .join(of_rows, "row", "inner", maintain_order="left")
        .select(
            *("group_id", "topic_id", "topic", "partition"),
            pl.col("count").cast(pl.Int32).alias("delivery_count"),
            state_name(pl.col("state")).alias("delivery_state_name"),
            "records",
            pl.when(~is_done(pl.col("state"))).then(left.clip(0)).alias("deliveries_left"),
        )
    )
