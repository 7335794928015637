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

from typing import Final

import polars as pl

from analytics.questions.share.share_log import RANGES, counted, size_of
from analytics.replay.share.share_records import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
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
