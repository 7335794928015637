"""The table `share_partitions`: state and claims brought together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.internal_partitions import internal_partition, share_key
from analytics.replay.log.losses import HOME, may_be_superseded
from analytics.replay.share.share_claims import (
    DELETING,
    INITIALIZED,
    ORPHAN,
    UNKNOWN,
    claimed_partitions,
    deleted_topics,
    early_groups,
    pictured_groups,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from analytics.replay.log.as_of import Decoded

KEY = ("group_id", "topic_id", "partition")
OFFSETS_TOPIC, STATE_TOPIC = "__consumer_offsets", "__share_group_state"


def share_partitions(
    states: DataFrame, decoded: Decoded, topics: DataFrame, coverage: Coverage = WHOLE
) -> DataFrame:
    """Return the table `share_partitions`.

    Args:
        states: Of `share_states`, from the same decoded tables.
        decoded: Decoded tables, cut at the instant.
        topics: The table `topics` at the instant, for names.
        coverage: What the dump holds.
    """
    deleting = deleted_topics(decoded).withColumn("is_deleting", F.expr("true"))
    early = early_groups(decoded).withColumn("is_early", F.expr("true"))
    rows = (
        states.join(claimed_partitions(decoded), list(KEY), "full")
        .join(deleting, ["group_id", "topic_id"], "left")
        .join(early, "group_id", "left")
        .join(_lost_claims(states, decoded, coverage), "group_id", "left")
        .join(topic_names(topics), "topic_id", "left")
    )
    rows = rows.withColumn("phase", _phase(coverage))
    missing = F.concat_ws("; ", *_missing(coverage))
    rows = rows.withColumn("complete", missing == "")
    return as_table(rows.withColumn("missing", F.when(missing != "", missing)), "share_partitions")


def topic_names(topics: DataFrame) -> DataFrame:
    """Return `topic_id`, once each, with its `topic` and whether it `is_gone`."""
    return (
        topics.where("topic_id is not null")
        .groupBy("topic_id")
        .agg(F.min("topic").alias("topic"), F.max("deleted_at").isNotNull().alias("is_gone"))
    )


def _phase(coverage: Coverage) -> Column:
    """Return who claims a share partition; where a claim may be lost it is not called an orphan."""
    early = F.col("is_early_layout") & F.col("is_early") & ~F.coalesce("is_gone", F.expr("false"))
    return (
        F.when(F.col("is_deleting"), DELETING)
        .when(F.col("claim").isNotNull(), F.col("claim"))
        .when(early, INITIALIZED)
        .when(_home_of_group(coverage).isNotNull() | F.col("lost_claims").isNotNull(), UNKNOWN)
        .otherwise(ORPHAN)
    )


def _lost_claims(states: DataFrame, decoded: Decoded, coverage: Coverage) -> DataFrame:
    """Return `group_id` and `lost_claims`: why what it claims may have been lost, null where not.

    A group's picture that lies behind all losses tells all that it claims.
    """
    groups = states.select("group_id").distinct()
    count = coverage.partitions.get(OFFSETS_TOPIC)
    if count is None or not coverage.losses_of_topic(OFFSETS_TOPIC):
        return groups.withColumn("lost_claims", F.lit(None).cast("string"))
    lost = may_be_superseded(coverage, F.coalesce("pictured_at", F.lit(-1)))
    return (
        groups.withColumn(HOME, internal_partition(F.col("group_id"), count))
        .join(pictured_groups(decoded), "group_id", "left")
        .select("group_id", F.concat(F.lit("who claims it: "), lost).alias("lost_claims"))
    )


def _missing(coverage: Coverage) -> list[Column]:
    """Return what the dump lacks, each null where nothing is lacking."""
    has_state = F.col("coordinator_partition").isNotNull()
    needs_state = ~has_state & (F.col("phase") == INITIALIZED)
    return [
        F.when(
            has_state & ~F.col("has_snapshot"),
            "the snapshot that its updates build on is not in the dump",
        ),
        F.when(
            F.col("epoch_mismatches") > 0,
            "updates of it build on a snapshot that is not in the dump",
        ),
        F.when(
            F.col("base_offset") < _complete_from(coverage),
            "records between its snapshot and its last update are not in the dump",
        ),
        F.when(
            needs_state,
            F.coalesce(_home_of_state(coverage), F.lit("no record of its state is in the dump")),
        ),
        F.when(has_state & F.col("claim").isNull(), _home_of_group(coverage)),
        F.when(has_state & (F.col("phase") == UNKNOWN), F.col("lost_claims")),
    ]


def _complete_from(coverage: Coverage) -> Column:
    """Return the offset from which the partition that holds the state is whole."""
    offsets = {
        partition: offset
        for (topic, partition), offset in coverage.complete_from.items()
        if topic == STATE_TOPIC
    }
    listed = F.array(*(F.lit(offsets.get(each)) for each in range(max(offsets, default=-1) + 1)))
    return F.coalesce(F.get(listed.cast("array<bigint>"), F.col("coordinator_partition")), F.lit(0))


def _home_of_state(coverage: Coverage) -> Column:
    key = share_key(*(F.col(name) for name in KEY))
    return _absent(coverage, STATE_TOPIC, key, "its state belongs to")


def _home_of_group(coverage: Coverage) -> Column:
    return _absent(coverage, OFFSETS_TOPIC, F.col("group_id"), "what the group claims belongs to")


def _absent(coverage: Coverage, topic: str, key: Column, what: str) -> Column:
    """Return in words that the dump has no copy of a key's partition; null where it has one."""
    absent = coverage.absent.get(topic, frozenset())
    if not absent or topic not in coverage.partitions:
        return F.lit(None).cast("string")
    home = internal_partition(key, coverage.partitions[topic])
    words = F.concat(
        F.lit(f"{what} {topic}-"), home.cast("string"), F.lit(", of which this dump has no copy")
    )
    return F.when(home.isin(sorted(absent)), words)
