"""Whose transaction a pending commit belongs to, from the transaction log (KIP-98, KIP-890).

A prepared transaction is decided: its marker alone is outstanding. A complete one without its
marker never ended, so nothing is decided about what it left pending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.latest import last_offsets, later, records_at
from analytics.replay.log.stored_values import word

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STATES = {
    0: "Empty",
    1: "Ongoing",
    2: "PrepareCommit",
    3: "PrepareAbort",
    4: "CompleteCommit",
    5: "CompleteAbort",
    6: "Dead",
    7: "PrepareEpochFence",
}
DECISIONS = {"PrepareCommit": "commit", "PrepareAbort": "abort"}
ONGOING = "Ongoing"
UNKNOWN_STATE = "Unknown"
_OFFSETS = "__consumer_offsets"


def with_owner(pending: DataFrame, transaction_log: DataFrame) -> DataFrame:
    """Add the transaction that the log knows of its producer to each pending commit.

    Args:
        pending: Has `coordinator_partition`, `producer_id`, `producer_epoch` and
            `commit_timestamp`.
        transaction_log: The decoded table, cut at the same instant.

    Returns:
        The commits with `transactional_id`, `transaction_state`, `decided` (string) and `is_open`
        (boolean: the log has the transaction of this commit, and not its end).
    """
    owners = _owners(transaction_log)
    named = pending.join(owners, "producer_id", "left")
    state = F.col("transaction_state")
    decision = F.lit(None).cast("string")
    for prepared, outcome in DECISIONS.items():
        decision = F.when(state == prepared, outcome).otherwise(decision)
    # An epoch below the commit's is that of an earlier transaction.
    decided = F.when((F.col("owner_epoch") >= F.col("producer_epoch")) & _takes_part(), decision)
    # With the same epoch an earlier transaction may have ended before this one began.
    began = F.col("owner_began_ms") <= F.unix_millis("commit_timestamp")
    is_ongoing = (state == ONGOING) & (F.col("owner_epoch") == F.col("producer_epoch"))
    is_open = decided.isNotNull() | (is_ongoing & _takes_part() & began)
    return named.withColumns({"decided": decided, "is_open": F.coalesce(is_open, F.lit(col=False))})


def _takes_part() -> Column:
    """Whether the pending commit's coordinator partition is one of the transaction's."""
    return F.exists(
        "owner_partitions",
        lambda each: (
            (each["topic"] == _OFFSETS)
            & F.array_contains(each["partition_ids"], F.col("coordinator_partition"))
        ),
    )


def _owners(transaction_log: DataFrame) -> DataFrame:
    """Return the last word of the log on each producer id.

    A producer id that was rotated away is named by the record that did it; where several ids are
    named for one producer id, the one whose current producer it is counts, then the newest record.
    """
    log = transaction_log.withColumn("transactional_id", F.col("key.transactional_id"))
    key = ("partition", "transactional_id")
    living = last_offsets(log, key).where(later(F.col("last_value"), F.col("last_tombstone")))
    places = living.select(
        F.col("partition").alias("coordinator_partition"),
        F.col("last_value").alias("record_offset"),
    )
    said = records_at(log, places).select(
        "transactional_id",
        F.col("timestamp").alias("said_at"),
        word(F.col("value.transaction_status"), STATES, UNKNOWN_STATE).alias("transaction_state"),
        F.col("value.producer_epoch").alias("owner_epoch"),
        F.col("value.transaction_partitions").alias("owner_partitions"),
        F.col("value.transaction_start_timestamp_ms").alias("owner_began_ms"),
        F.explode(
            F.array(
                *(
                    F.struct(F.col(f"value.{name}").alias("producer_id"), F.lit(rank).alias("rank"))
                    for rank, name in enumerate(
                        ("previous_producer_id", "next_producer_id", "producer_id")
                    )
                )
            )
        ).alias("named"),
    )
    answer = ("transactional_id", "transaction_state")
    owned = ("owner_epoch", "owner_partitions", "owner_began_ms")
    newest = F.struct("named.rank", "said_at", "transactional_id")
    best = F.max_by(F.struct(*answer, *owned), newest).alias("owner")
    return (
        said.where(F.col("named.producer_id") >= 0)
        .groupBy(F.col("named.producer_id").alias("producer_id"))
        .agg(best)
        .select("producer_id", "owner.*")
    )
