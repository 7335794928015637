"""What a share group has no delivery on record of, of a partition taken on later than its topic.

A share partition that is initialised without a start offset begins where `share.auto.offset.reset`
says, at the end of the log if nothing else is set (``SharePartition.maybeInitialize``). A group
that has shared a topic for long, and gets a new partition of it, so passes over what was written
there before (KIP-1327). No delivery of what lies below its first start offset was ever stored. What
was handed out before the first write, and forgotten with the leader, no record tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.questions.share.settings import ALWAYS, ASSUMED, DYNAMIC, EARLIEST, OFFSET_RESET
from analytics.questions.share.share_log import HOME, KEY
from analytics.replay.share.share_records import SNAPSHOT, TOMBSTONE

if TYPE_CHECKING:
    from collections.abc import Collection

    from analytics.questions.share.settings import ShareSettings
    from analytics.questions.share.share_log import ShareLog

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
