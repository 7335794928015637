"""Groups at every epoch of theirs, cut where their topics changed meanwhile.

Members and subscriptions are those at the end of an epoch. What is judged is what was decided: the
assignment of a classic group, the target assignment of the others, as their members are still on
the way to it when an epoch begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.evaluate.balance.cases import (
    SPAN,
    assembled,
    needed_topics,
    partition_list,
    tasks_of,
    wanted,
    with_assignable,
)
from analytics.evaluate.balance.stretches import sizes_in, stretches
from analytics.replay.groups.coordinator_log import PRESENCE, SUBSCRIPTION
from analytics.replay.groups.group_records import CLASSIC, CONSUMER_PROTOCOL, CURRENT, TARGET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EPOCH = ("group_id", "epoch_no")
UNREAD = "an assignment in it is not of the consumer protocol"


def cases_of_history(
    epochs: DataFrame,
    runs: DataFrame,
    sizes: DataFrame,
    state: Mapping[str, DataFrame],
    expressions: DataFrame,
    parts: DataFrame,
) -> DataFrame:
    """Return every epoch in which a group had members.

    Args:
        epochs: The table `group_epochs`.
        runs: Of `analytics.replay.history.holdings.runs`, with names of topics.
        sizes: `topic_sizes`, and `counted_by`.
        state: Tables `topics` and `share_partitions`.
        expressions: `resolved_expressions`.
        parts: `subtopologies`.

    Returns:
        What `case_rows.case_of` reads: one row a stretch.
    """
    numbered = _numbered(epochs).localCheckpoint()
    at_epochs = _during(runs, numbered).localCheckpoint()
    wants = (
        wanted(_members(at_epochs), expressions, parts)
        .withColumn("epoch_no", F.col("span").cast("int"))
        .drop("span")
    )
    spans = stretches(
        numbered.drop("life", "coordinator_partition"), wants, sizes
    ).localCheckpoint()
    times = spans.select(*_EPOCH, "span", "from_timestamp")
    span_wants = times.drop("from_timestamp").join(wants, list(_EPOCH))
    held = _held(at_epochs, times, sizes)
    known = sizes_in(times.join(needed_topics(span_wants, held), list(SPAN)), sizes)
    sources = times.join(parts, "group_id").select(
        *SPAN, "from_timestamp", "subtopology_id", "by_regex", F.explode("sources").alias("topic")
    )
    tasks = tasks_of(_with_sizes(sources, sizes))
    shared = with_assignable(
        known.withColumn("assignable", F.lit(None)), state["share_partitions"]
    ).unionByName(tasks)
    found = assembled(spans.drop("epoch_no"), span_wants, held, shared, state["topics"])
    return found.join(_owned_before(times, at_epochs), list(SPAN), "left")


def _numbered(epochs: DataFrame) -> DataFrame:
    """Return epochs with members, under the numbers that runs know them by."""
    order = Window.partitionBy("coordinator_partition", "group_id").orderBy("from_offset")
    are_consumers = F.col("protocol_type").eqNullSafe(F.lit(CONSUMER_PROTOCOL))
    is_unread = (F.col("group_type") == CLASSIC) & F.col("partitions_assigned").isNull()
    return (
        epochs.withColumn("epoch_no", F.row_number().over(order))
        .where("member_count > 0")
        .select(
            "group_id",
            "group_type",
            "epoch",
            "assignment_epoch",
            "protocol_type",
            "protocol",
            F.when(is_unread & are_consumers, UNREAD).alias("unread"),
            F.col("partitions_moved").alias("moved"),
            "life",
            "coordinator_partition",
            "epoch_no",
            "from_offset",
            "from_timestamp",
            "to_timestamp",
        )
    )


def _during(runs: DataFrame, epochs: DataFrame) -> DataFrame:
    """Return what was held at the end of each epoch."""
    epoch_no = F.col("epoch_no")
    last = F.when(F.col("until.is_closing"), F.col("until.epoch_no")).otherwise(
        F.col("until.epoch_no") - 1
    )
    there = (F.coalesce("at.epoch_no", F.lit(0)) <= epoch_no) & (
        F.col("until").isNull() | (epoch_no <= last)
    )
    ends = epochs.select("coordinator_partition", "life", *_EPOCH, "group_type", "assignment_epoch")
    return runs.join(ends, ["coordinator_partition", "group_id", "life"]).where(there)


def _members(held: DataFrame) -> DataFrame:
    """Return the members of each epoch as `wanted` takes them."""
    words = F.max(F.when(F.col("kind") == SUBSCRIPTION, F.col("topic")))
    names = F.substring_index("words", " ", 1)
    regex = F.expr("substring(words, locate(' ', words) + 1)")
    return (
        held.where(F.col("kind").isin(PRESENCE, SUBSCRIPTION))
        .groupBy(*_EPOCH, "group_type", "member_id")
        .agg(
            words.alias("words"),
            F.max("about.group_instance_id").alias("group_instance_id"),
            F.max("assignment_epoch").alias("member_epoch"),
            F.bool_or(F.col("kind") == PRESENCE).alias("is_there"),
        )
        .where("is_there")
        .withColumns(
            {
                "subscribed_topics": F.filter(F.split(names, ","), lambda each: each != ""),
                "subscribed_regex": F.when(regex != "", regex),
                "rack_id": F.lit(None).cast("string"),
                "state": F.lit(None).cast("string"),
                "missing": F.lit(None).cast("string"),
                "span": F.col("epoch_no").cast("string"),
            }
        )
    )


def _held(at_epochs: DataFrame, times: DataFrame, sizes: DataFrame) -> DataFrame:
    """Return what members had in each stretch; topics that were gone by then go by their id."""
    ends = sizes.groupBy("topic_id").agg(F.max_by("until", "partitions").alias("removed"))
    is_gone = F.coalesce(F.col("removed") <= F.col("from_timestamp"), F.lit(col=False))
    name = F.when(~is_gone, F.col("topic"))
    return (
        _assigned(at_epochs)
        .join(times, list(_EPOCH))
        .join(F.broadcast(ends.where("removed is not null")), "topic_id", "left")
        .withColumn("topic", F.coalesce("subtopology_id", name, "topic_id"))
        .groupBy(*SPAN, "member_id", "topic")
        .agg(partition_list())
    )


def _assigned(at_epochs: DataFrame) -> DataFrame:
    """Return what had been decided: a partition or an active task a row."""
    decided = F.when(F.col("group_type") == CLASSIC, CURRENT).otherwise(TARGET)
    return at_epochs.where(
        (F.col("kind") == decided) & (F.coalesce("role", F.lit("active")) == "active")
    )


def _owned_before(times: DataFrame, at_epochs: DataFrame) -> DataFrame:
    """Return what had an owner in the epoch before: `SPAN`, `owned_before` (null without one)."""
    before = _assigned(at_epochs).select(
        "group_id",
        (F.col("epoch_no") + 1).alias("epoch_no"),
        F.struct(
            F.coalesce("subtopology_id", "topic", "topic_id").alias("topic"), "partition"
        ).alias("each"),
    )
    listed = before.groupBy(*_EPOCH).agg(F.collect_set("each").alias("owned_before"))
    return times.join(listed, list(_EPOCH), "left").select(*SPAN, "owned_before")


def _with_sizes(sources: DataFrame, sizes: DataFrame) -> DataFrame:
    """Return sources with the counts of their time, null where there were none."""
    found = sizes_in(sources, sizes).select(
        *SPAN, "subtopology_id", "topic", "partitions", "counted_by"
    )
    return sources.join(found, [*SPAN, "subtopology_id", "topic"], "left")
