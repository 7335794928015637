"""Events of committed offsets: rewound, lost, expired, deleted; and of transactions of offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.history.event_rows import OFFSETS, event_rows, partition_name, words
from analytics.replay.history.offset_causes import LOST_BY_ELECTION
from analytics.replay.history.offset_history import DELETE, TRANSACTION_ABORT
from analytics.replay.history.offset_lives import transactional_commits
from analytics.replay.history.removal_causes import EXPIRATION
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.record_position import POSITION
from analytics.replay.log.rules import ReplayRules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def offset_events_of_groups(history: DataFrame) -> DataFrame:
    """Return offset_rewound, offset_lost, expired and offsets_deleted.

    Args:
        history: The table `offset_history`.
    """
    back = (F.col("event") != TRANSACTION_ABORT) & (F.col("advance") < 0)
    event = (
        F.when((F.col("event") == DELETE) & (F.col("cause") == EXPIRATION), "expired")
        .when(F.col("event") == DELETE, "offsets_deleted")
        .when(back & (F.col("cause") == LOST_BY_ELECTION), "offset_lost")
        .when(back, "offset_rewound")
    )
    moved = F.when(
        F.col("event") == DELETE, words("was ", F.coalesce(F.col("previous_offset"), F.lit(None)))
    ).otherwise(words("from ", F.col("previous_offset"), " to ", F.col("committed_offset")))
    known = F.when((F.col("event") != DELETE) | F.col("previous_offset").isNotNull(), moved)
    detail = F.concat_ws(
        "; ",
        known,
        words(F.translate("cause", "_", " "), " (", F.col("confidence"), " confidence)"),
        F.concat(F.lit("owned by "), F.col("member_id")),
    )
    placed = history.withColumn("record_offset", F.col("effective_offset"))
    return event_rows(
        placed,
        OFFSETS,
        at="effective_timestamp",
        event=event,
        subject=partition_name(),
        detail=detail,
    )


def transaction_events(decoded: Decoded, rules: ReplayRules) -> DataFrame:
    """Return transaction_opened, transaction_committed and transaction_aborted, once a group.

    Args:
        decoded: Decoded tables, cut at an instant.
        rules: Of the release.
    """
    first = F.struct(
        F.col("record_offset"),
        F.col("committed_at").alias("at"),
        *POSITION,
    )
    taken = (
        transactional_commits(decoded, rules)
        .groupBy("coordinator_partition", "group_id", "producer_id", "end_offset", "is_commit")
        .agg(
            F.min_by(first, "record_offset").alias("opened"),
            F.count_distinct("topic", "partition").alias("offsets"),
        )
    )
    markers = (
        decoded["control_markers"]
        .where(F.col("topic") == OFFSETS)
        .select(
            F.col("partition").alias("coordinator_partition"),
            F.col("offset").alias("end_offset"),
            F.struct(
                F.col("offset").alias("record_offset"),
                F.col("timestamp").alias("at"),
                *POSITION,
            ).alias("ended"),
        )
    )
    done = F.when(F.col("is_commit"), "transaction_committed").when(
        ~F.col("is_commit"), "transaction_aborted"
    )
    opened = F.struct(F.lit("transaction_opened").alias("event"), F.col("opened").alias("place"))
    ended = F.when(
        F.col("ended").isNotNull(), F.struct(done.alias("event"), F.col("ended").alias("place"))
    )
    noun = F.when(F.col("offsets") == 1, " offset").otherwise(" offsets")
    rows = (
        taken.join(markers, ["coordinator_partition", "end_offset"], "left")
        .withColumn("step", F.explode(F.array_compact(F.array(opened, ended))))
        .select(
            "coordinator_partition",
            "group_id",
            "producer_id",
            "offsets",
            "step.event",
            "step.place.*",
        )
    )
    return event_rows(
        rows,
        OFFSETS,
        at="at",
        event=F.col("event"),
        subject=words("producer ", F.col("producer_id")),
        detail=words(F.col("offsets"), noun),
    )
