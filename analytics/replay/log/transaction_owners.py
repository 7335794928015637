"""Whose transaction a pending commit belongs to, from the transaction log (KIP-98, KIP-890).

A prepared transaction is decided: its marker alone is outstanding. A complete one without its
marker never ended, so nothing is decided about what it left pending.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.meanings import word
from schemas import CONSUMER_OFFSETS, TRANSACTION_STATE

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
ENDED: Final = ("CompleteCommit", "CompleteAbort")
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
    has_ended = state.is_in(ENDED) & (pl.col("owner_epoch") >= epoch)
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
