"""The table `share_archived_ranges`: what share groups have given up or rejected, and when.

A record is archived when a member rejects it, when there is none at its offset (a transaction's
marker, a compacted record: clients acknowledge it as a gap), and when it would be available again
after its last delivery (``InFlightState.tryUpdateState``). No record says which. But what is
archived after fewer deliveries than the limit was not given up; how often that may be shows in the
log, too: what is available after a delivery has another one left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.questions.share.settings import ALWAYS, ASSUMED
from analytics.questions.share.share_log import HOME, KEY, first_covers
from analytics.questions.share.stalls import current_records
from analytics.questions.share.status import CANNOT_TELL
from analytics.replay.log.meanings import instant
from analytics.replay.share.share_records import ARCHIVED, AVAILABLE

if TYPE_CHECKING:
    from analytics.questions.share.share_log import ShareLog

REJECTED: Final = "rejected_or_gap"
AT_LIMIT: Final = "at_limit"
LEAST_LIMIT: Final = 2
"""What brokers take for the limit at the least (``ShareGroupConfig``)."""

_LIMIT: Final = "delivery_count_limit"


def archived_ranges(rows: pl.DataFrame, log: ShareLog) -> pl.DataFrame:
    """Return the ranges that were archived since the state was initialised, as far as it is told.

    Args:
        rows: The table `share_backlog`.
        log: The records up to the instant.

    Returns:
        The table `share_archived_ranges` without marks, in order of its key.
    """
    names = ("topic", "next_offset", _LIMIT, f"{_LIMIT}_source", f"{_LIMIT}_since")
    shares = log.shares.with_columns(pl.col("partition").cast(rows.schema["partition"]))
    of_shares = shares.join(rows.select(*KEY, *names), KEY, "inner")
    current = current_records(log).join(of_shares.select("share"), "share", "semi")
    archived = log.ranges.filter(pl.col("state") == ARCHIVED).join(
        current.select("record", "share"), "record", "inner", maintain_order="left"
    )
    found = first_covers(archived, "share", ("record", "count"))
    begun = ("snapshot_epoch", "state_epoch")
    found = log.of_records(found, "offset", "at", "is_first", *begun).join(
        of_shares, "share", "inner", maintain_order="left"
    )
    # What a record stores was not so before where it is not the first one there is.
    is_told = ~pl.col("is_first") | ((pl.col(begun[0]) == 0) & (pl.col(begun[1]) >= 0))
    found = found.with_columns(is_told=is_told).join(
        _seen_limits(of_shares, log), "group_id", "left", maintain_order="left"
    )
    return found.select(
        *("group_id", "topic_id", "topic", "partition"),
        pl.col("first").alias("first_offset"),
        pl.col("last").alias("last_offset"),
        pl.col("count").cast(pl.Int32).alias("delivery_count"),
        instant(pl.col("at")).alias("archived_at"),
        archived_bound=pl.when("is_told").then(pl.lit("exact")).otherwise(pl.lit("at_latest")),
        cause=_cause(),
        is_passed=pl.col("last") < pl.col("next_offset").fill_null(-1),
        **{HOME: pl.col(HOME).cast(pl.Int32)},
        record_offset="offset",
    ).sort("group_id", "topic_id", "partition", "first_offset", maintain_order=True)


def _cause() -> pl.Expr:
    """Return why a range was archived, as far as the limit of deliveries tells it."""
    count, since = pl.col("count").cast(pl.Int64), pl.col(f"{_LIMIT}_since")
    # What held before a limit was set, nothing tells.
    was_set = ((pl.col("at") >= since) & pl.col("is_told")).fill_null(value=False)
    is_known = (pl.col(f"{_LIMIT}_source") != ASSUMED) & (was_set | (since == ALWAYS))
    is_below = (count < pl.col("at_least")) | (is_known & (count < pl.col(_LIMIT)))
    return (
        pl.when(is_below)
        .then(pl.lit(REJECTED))
        .when(is_known)
        .then(pl.lit(AT_LIMIT))
        .otherwise(pl.lit(CANNOT_TELL))
    )


def _seen_limits(of_shares: pl.DataFrame, log: ShareLog) -> pl.DataFrame:
    """Return by `group_id` what its limit is at the least, as far as the log shows: `at_least`."""
    free = log.of_records(log.ranges.filter(pl.col("state") == AVAILABLE), "share")
    most = free.group_by("share").agg(pl.col("count").cast(pl.Int64).max() + 1)
    of_groups = of_shares.select("share", "group_id").join(most, "share", "left")
    least = pl.max_horizontal(pl.col("count").max(), LEAST_LIMIT)
    return of_groups.group_by("group_id").agg(least.alias("at_least"))
