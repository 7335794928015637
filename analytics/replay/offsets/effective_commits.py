"""When commits took effect, what they replaced, and how the transactions of others ended.

Within a partition of `__consumer_offsets` order is exact. A commit outside transactions takes
effect at once; one inside a transaction with its COMMIT marker, and only where no later commit is
in force (``OffsetMetadataManager.replayEndTransactionMarker``). It is pending until the first
marker of its producer id, whatever the producer epoch (KIP-98). A tombstone ends what is in force;
since 4.0 also what is pending.

Takes rows of whole groups, of any number of partitions, and all markers of these partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.log.record_position import BEFORE_ALL
from analytics.replay.offsets.commit_rows import (
    COMMITS,
    GROUP,
    KEY,
    MARKERS,
    PLACE,
    TOPIC,
    sorted_by,
    with_places,
)

if TYPE_CHECKING:
    from analytics.replay.log.rules import ReplayRules

COMMIT, ABORT = "COMMIT", "ABORT"
COMMITTED, REMOVED = "commit", "tombstone"
NO_PRODUCER: Final = -1

_END: Final = ("end_offset", "end_at", "outcome")
ENDED: Final = pl.Schema(
    {**COMMITS, "waits": pl.Boolean(), **{name: MARKERS[name] for name in _END}}
)
"""`COMMITS` with how transactions ended: `waits` (it is of a transaction, and no tombstone); where
it waits, `end_offset`, `end_at` and `outcome` (COMMIT or ABORT) of the marker that ended its
transaction, null while it is open."""

_HAPPENED = {"position": pl.Int64(), "at": COMMITS["committed_at"]}
_OF_REMOVED = (
    "record_offset",
    "committed_offset",
    "commit_ms",
    "expire_ms",
    "value_version",
    "topic_id",
    "position",
    "at",
)
EVENTS: Final = pl.Schema(
    {
        **{name: kind for name, kind in COMMITS.items() if name != "is_transactional"},
        **_HAPPENED,
        "event": pl.String(),
        **{f"removed_{name}": {**COMMITS, **_HAPPENED}[name] for name in _OF_REMOVED},
        "next_position": pl.Int64(),
    }
)
"""What changed a committed offset: see `offset_events`."""
PLACED_EVENTS: Final = pl.Schema(
    {**EVENTS, GROUP: pl.UInt32(), TOPIC: pl.UInt32(), PLACE: pl.Int64()}
)


def ended_commits(commits: pl.DataFrame, markers: pl.DataFrame, rules: ReplayRules) -> pl.DataFrame:
    """Say of each commit how its transaction ended.

    Args:
        commits: `COMMITS`, or some of these columns; tombstones too.
        markers: `MARKERS`, likewise.
        rules: Of the release.

    Returns:
        `ENDED`, as far as there are such commits, in any order.
    """
    waiting = waits(rules) & ~pl.col("is_tombstone")
    told = commits.with_columns(waiting.alias("waits"))
    if not told["waits"].any():
        return told.with_columns(pl.lit(None, ENDED[name]).alias(name) for name in _END)
    ends = markers.filter(pl.col("outcome").is_in([COMMIT, ABORT])).select(
        "coordinator_partition", "producer_id", *_END
    )
    ended = (
        told.filter("waits")
        .sort("record_offset")
        .join_asof(
            ends.sort("end_offset"),
            left_on="record_offset",
            right_on="end_offset",
            by=["coordinator_partition", "producer_id"],
            strategy="forward",
            coalesce=False,
            check_sortedness=False,
        )
    )
    return pl.concat([told.filter(~pl.col("waits")), ended], how="diagonal")


def offset_events(ended: pl.DataFrame, rules: ReplayRules) -> pl.DataFrame:
    """Return what changed each committed offset, each with what was in force before it.

    Args:
        ended: Of `ended_commits`, all its columns or those that are asked for.
        rules: Of the release.

    Returns:
        `PLACED_EVENTS`, as far as they rest on such columns, in the order of `PLACE` and
        `position`: the columns of a commit or tombstone;
        `position` (offset of the record by which it happened, the marker of a transaction) and `at`
        (the time of that record); `event` (`COMMITTED`, `REMOVED`); ``removed_...`` of the commit
        that was in force before, null where there was none; `next_position` of what ended it. A
        commit that never took effect has no row, every tombstone has one that removes what is in
        force.
    """
    events = sorted_by(effective_commits(ended, rules), PLACE, "position")
    was = pl.col("event").shift(1) == COMMITTED
    is_first = pl.col(PLACE) != pl.col(PLACE).shift(1)
    has_removed = (was & ~is_first).fill_null(value=False)
    goes_on = pl.col(PLACE) == pl.col(PLACE).shift(-1)
    told = events.with_columns(
        *(
            pl.when(has_removed).then(pl.col(name).shift(1)).alias(f"removed_{name}")
            for name in _OF_REMOVED
            if name in events.columns
        ),
        pl.when(goes_on).then(pl.col("position").shift(-1)).alias("next_position"),
    )
    return told.select(name for name in PLACED_EVENTS if name in told.columns)


def effective_commits(ended: pl.DataFrame, rules: ReplayRules) -> pl.DataFrame:
    """Return commits that took effect, and tombstones, in any order.

    Args:
        ended: Of `ended_commits`.
        rules: Of the release.

    Returns:
        Its columns with those of `with_places`, `position`, `at` and `event`, as of
        `offset_events`.
    """
    ended = with_places(ended)
    own = ended.filter(~pl.col("waits")).with_columns(
        pl.col("record_offset").alias("position"),
        pl.col("committed_at").alias("at"),
        pl.when("is_tombstone").then(pl.lit(REMOVED)).otherwise(pl.lit(COMMITTED)).alias("event"),
    )
    by_marker = happened_by_marker(ended, COMMIT)
    if by_marker.is_empty():
        return own
    told = pl.concat([own, by_marker.with_columns(pl.lit(COMMITTED).alias("event"))])
    return told.filter(_takes_effect(told, rules))


def happened_by_marker(ended: pl.DataFrame, outcome: str) -> pl.DataFrame:
    """Return commits of transactions that ended so, with `position` and `at` of the marker."""
    return last_of_transactions(ended.filter(pl.col("outcome") == outcome)).with_columns(
        pl.col("end_offset").alias("position"), pl.col("end_at").alias("at")
    )


def last_of_transactions(ended: pl.DataFrame) -> pl.DataFrame:
    """Keep of each offset in each transaction the last commit: the others it overwrites."""
    return ended.sort("record_offset").unique(
        [PLACE, "producer_id", "end_offset"], keep="last", maintain_order=True
    )


def pending_spans(ended: pl.DataFrame, rules: ReplayRules) -> pl.DataFrame:
    """Return from where to where commits in transactions were pending.

    Args:
        ended: Of `ended_commits`.
        rules: Of the release.

    Returns:
        `KEY`, `producer_id`, `record_offset`, `until_position` (bigint) and `until_at`, both null
        while it is open, `outcome` (COMMIT, ABORT, `REMOVED` or null).
    """
    waiting = ended.filter("waits")
    if rules.tombstones_remove_everything:
        gone = ended.filter("is_tombstone").select(
            *KEY,
            pl.col("record_offset").alias("gone_at"),
            pl.col("committed_at").alias("gone_time"),
        )
        found = waiting.sort("record_offset").join_asof(
            gone.sort("gone_at"),
            left_on="record_offset",
            right_on="gone_at",
            by=list(KEY),
            strategy="forward",
            coalesce=False,
            check_sortedness=False,
        )
        is_gone = pl.col("gone_at") < pl.coalesce("end_offset", pl.col("gone_at") + 1)
        waiting = found.with_columns(
            pl.when(is_gone).then("gone_at").otherwise("end_offset").alias("end_offset"),
            pl.when(is_gone).then("gone_time").otherwise("end_at").alias("end_at"),
            pl.when(is_gone).then(pl.lit(REMOVED)).otherwise("outcome").alias("outcome"),
        )
    return waiting.select(
        *KEY,
        "producer_id",
        "record_offset",
        pl.col("end_offset").alias("until_position"),
        pl.col("end_at").alias("until_at"),
        "outcome",
    )


def _takes_effect(events: pl.DataFrame, rules: ReplayRules) -> pl.Series:
    """Return whether an event changes what is in force: a record may come behind a later one.

    Of what took effect since the last tombstone the greatest record offset is in force.
    """
    is_tombstone, own = pl.col("is_tombstone"), pl.col("record_offset")
    is_first = (pl.col(PLACE) != pl.col(PLACE).shift(1)).fill_null(value=True)
    begins = is_first | is_tombstone.shift(1, fill_value=True)
    # Ranks within lives, one life above the other: no maximum reaches into the next life.
    rank = begins.cum_sum().cast(pl.Int64) * pl.len() + own.rank("dense")
    is_newest = begins | (rank > rank.cum_max().shift(1))
    if rules.tombstones_remove_everything:
        ended = pl.when(is_first).then(BEFORE_ALL).when(begins).then(pl.col("position").shift(1))
        is_newest &= own > ended.forward_fill()
    told = events.select(PLACE, "position", "is_tombstone", "record_offset").with_row_index("nth")
    ordered = sorted_by(told, PLACE, "position")
    return ordered.select("nth", (is_tombstone | is_newest).alias("takes_effect")).sort("nth")[
        "takes_effect"
    ]


def waits(rules: ReplayRules) -> pl.Expr:
    """Return whether a record is of a transaction (archived rows do not say, and do not wait)."""
    if rules.pending_by == "transactional_bit":
        return pl.col("is_transactional").fill_null(value=False)
    return pl.col("producer_id").fill_null(NO_PRODUCER) != NO_PRODUCER
