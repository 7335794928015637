"""When commits took effect, what they replaced; transactions, how they ended and whose they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import BEFORE_ALL, word
from analytics.replay.log.losses import WHOLE, Coverage
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
from schemas import CONSUMER_OFFSETS, TRANSACTION_STATE

if TYPE_CHECKING:
    from analytics.replay.log.rules import ReplayRules

# Whose transaction a pending commit belongs to, from the transaction log (KIP-98, KIP-890).
#
# A prepared transaction is decided: its marker alone is outstanding. A complete one without its
# marker never ended, so nothing is decided about what it left pending.

STATES: Final = {
    0: "Empty",
    1: "Ongoing",
    2: "PrepareCommit",
    3: "PrepareAbort",
    4: "CompleteCommit",
    5: "CompleteAbort",
    6: "Dead",
    7: "PrepareEpochFence",
}
DECISIONS: Final = {"PrepareCommit": "commit", "PrepareAbort": "abort"}
ONGOING: Final = "Ongoing"
COMPLETED: Final = ("CompleteCommit", "CompleteAbort")
_OF_OWNER: Final = ("transactional_id", "transaction_state", "decided")
UNKNOWN_STATE: Final = "Unknown"
_NAMED: Final = ("previous_producer_id", "next_producer_id", "producer_id")


def with_owner(pending: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """Add the transaction that the log knows of its producer to each pending commit.

    Args:
        pending: Has `coordinator_partition`, `producer_id`, `producer_epoch` and
            `commit_timestamp`.
        owners: Of `transaction_owners`, at the same instant.

    Returns:
        The commits with `transactional_id`, `transaction_state`, `decided` (string) and `is_open`
        (boolean: the log has the transaction of this commit, and not its end). Where transactions
        of several ids had the producer, that of the commit counts: the one that fits. Where none
        or more than one does, nothing is known of it.
    """
    found = _fitting(pending.with_row_index("nth").join(owners, on="producer_id", how="left"))
    several = pl.len().over("nth") > 1
    fits = pl.col("is_open") | pl.col("may_have_ended")
    left = found.with_columns(several.alias("several"), fits.alias("fits")).filter(
        ~pl.col("several") | pl.col("fits")
    )
    is_one = pl.len().over("nth") == 1
    told = left.with_columns(
        *(pl.when(is_one).then(name).alias(name) for name in _OF_OWNER),
        (pl.col("is_open") & is_one).alias("is_open"),
    ).unique("nth", keep="first", maintain_order=True)
    return (
        pending.with_row_index("nth")
        .join(
            told.select("nth", *_OF_OWNER, "is_open"), on="nth", how="left", maintain_order="left"
        )
        .with_columns(pl.col("is_open").fill_null(value=False))
        .drop("nth")
    )


def _fitting(named: pl.DataFrame) -> pl.DataFrame:
    """Add `decided`, `is_open` and `may_have_ended` to commits beside a transaction each."""
    state, epoch = pl.col("transaction_state"), pl.col("producer_epoch")
    takes_part = pl.col("owner_homes").list.contains(pl.col("coordinator_partition"))
    # An epoch below the commit's is that of an earlier transaction.
    is_decided = (pl.col("owner_epoch") >= epoch) & takes_part
    decision = state.replace_strict(DECISIONS, default=None, return_dtype=pl.String)
    decided = pl.when(is_decided).then(decision)
    # With the same epoch an earlier transaction may have ended before this one began.
    began = pl.col("owner_began_ms") <= pl.col("commit_timestamp").dt.epoch("ms")
    is_ongoing = (state == ONGOING) & (pl.col("owner_epoch") == epoch) & takes_part & began
    has_ended = state.is_in(COMPLETED) & (pl.col("owner_epoch") >= epoch)
    return named.with_columns(
        decided.alias("decided"),
        (decided.is_not_null() | is_ongoing.fill_null(value=False)).alias("is_open"),
        has_ended.fill_null(value=False).alias("may_have_ended"),
    )


def transaction_owners(transaction_log: pl.DataFrame, coverage: Coverage = WHOLE) -> pl.DataFrame:
    """Return the last word of the log on each producer id, of each transactional id that had it.

    What a lost record may have changed since is left out.

    A producer id that was rotated away is named by the record that did it; where one transactional
    id names a producer id several times, that it is its current producer counts.

    Args:
        transaction_log: The decoded table, cut at an instant.
        coverage: What the dump holds: a lost record may have said otherwise later.

    Returns:
        `producer_id`, `transactional_id`, `transaction_state`, `owner_epoch`, `owner_homes` (the
        partitions of `__consumer_offsets` that take part) and `owner_began_ms`.
    """
    value = pl.col("value").struct
    last = (
        _behind_losses(transaction_log, coverage)
        .with_columns(pl.col("key").struct.field("transactional_id"))
        .sort("offset")
        .unique(["partition", "transactional_id"], keep="last", maintain_order=True)
        .filter(~pl.col("is_tombstone"))
    )
    said = last.select(
        "transactional_id",
        pl.col("timestamp").alias("said_at"),
        word(value.field("transaction_status"), STATES, UNKNOWN_STATE).alias("transaction_state"),
        value.field("producer_epoch").alias("owner_epoch"),
        _homes(value.field("transaction_partitions")).alias("owner_homes"),
        value.field("transaction_start_timestamp_ms").alias("owner_began_ms"),
        *(value.field(name) for name in _NAMED),
    )
    named = pl.concat(
        said.drop(_NAMED).with_columns(said[name].alias("producer_id"), pl.lit(rank).alias("rank"))
        for rank, name in enumerate(_NAMED)
    )
    return (
        named.filter(pl.col("producer_id") >= 0)
        .sort("rank", "said_at", "transactional_id", nulls_last=False)
        .unique(["producer_id", "transactional_id"], keep="last", maintain_order=True)
        .drop("rank", "said_at")
    )


def _behind_losses(transaction_log: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    losses = coverage.losses_of_topic(TRANSACTION_STATE)
    if not losses:
        return transaction_log
    ends = {number: max(each.end for each in found) for number, found in losses.items()}
    lost_until = pl.col("partition").replace_strict(ends, default=0, return_dtype=pl.Int64)
    return transaction_log.filter(pl.col("offset") >= lost_until)


def _homes(partitions: pl.Expr) -> pl.Expr:
    of_offsets = pl.element().struct.field("topic") == CONSUMER_OFFSETS
    ids = pl.element().filter(of_offsets).struct.field("partition_ids")
    return partitions.list.eval(ids.explode())


# When commits took effect, what they replaced, and how the transactions of others ended.
#
# Within a partition of `__consumer_offsets` order is exact. A commit outside transactions takes
# effect at once; one inside a transaction with its COMMIT marker, and only where no later commit
# is in force (``OffsetMetadataManager.replayEndTransactionMarker``). It is pending until the
# first marker of its producer id, whatever the producer epoch (KIP-98). A tombstone ends what is
# in force; since 4.0 also what is pending.
#
# Takes rows of whole groups, of any number of partitions, and all markers of these partitions.

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
