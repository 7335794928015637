"""Groups at an instant, one row each, with all that judging their balance needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.metadata.topic_sources import METADATA_LOG

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SPAN = ("group_id", "span")
"""What tells rows apart: a group, and a text for the stretch of time looked at."""

MEMBER_FIELDS = (
    "member_id",
    "group_instance_id",
    "rack_id",
    "member_epoch",
    "state",
    "missing",
    "wants",
    "has",
)
TOPIC_FIELDS = ("topic", "topic_id", "partitions", "counted_by", "assignable")
NOW = ""
"""The span of a group at the instant of the state tables."""


def cases_at(
    state: Mapping[str, DataFrame],
    counts: DataFrame,
    expressions: DataFrame,
    parts: DataFrame,
) -> DataFrame:
    """Return the groups that have members at the instant of the state tables.

    Args:
        state: Tables `groups`, `members`, `assignments`, `topics`, `share_partitions`.
        counts: `partition_counts`.
        expressions: `resolved_expressions`.
        parts: `subtopologies`.

    Returns:
        What `case_rows.case_of` reads: one row a group.
    """
    groups = (
        state["groups"]
        .where("member_count > 0")
        .select(
            "group_id",
            "group_type",
            "epoch",
            "assignment_epoch",
            "protocol_type",
            "protocol",
            F.col("missing").alias("unread"),
            F.lit(NOW).alias("span"),
            F.lit(None).cast("bigint").alias("from_offset"),
            F.lit(None).cast("timestamp").alias("from_timestamp"),
            F.lit(None).cast("timestamp").alias("to_timestamp"),
        )
    )
    wants = wanted(state["members"], expressions, parts).withColumn("span", F.lit(NOW))
    has = owned(state["assignments"], state["topics"]).withColumn("span", F.lit(NOW))
    needed = needed_topics(wants, has)
    found = needed.join(counts, "topic").withColumn("assignable", F.lit(None).cast("array<int>"))
    sources = groups.join(parts, "group_id").select(
        *SPAN, "subtopology_id", "by_regex", F.explode("sources").alias("topic")
    )
    tasks = tasks_of(sources.join(counts, "topic", "left"))
    known = with_assignable(found, state["share_partitions"]).unionByName(tasks)
    return assembled(groups, wants, has, known, state["topics"])


def assembled(
    groups: DataFrame, wants: DataFrame, has: DataFrame, known: DataFrame, topics: DataFrame
) -> DataFrame:
    """Put groups together with their members, what these have, and the topics.

    Args:
        groups: One row a span.
        wants: `SPAN` and what `wanted` returns.
        has: `SPAN` and what `owned` returns.
        known: `SPAN` and `TOPIC_FIELDS`: what is known of the topics a group needs.
        topics: The table `topics`.

    Returns:
        The columns of `groups`, `members`, `topics` (arrays of structs) and `is_whole` (boolean: a
        topic that is not listed does not exist).
    """
    held = has.groupBy(*SPAN, "member_id").agg(
        F.collect_list(F.struct("topic", "partitions")).alias("has")
    )
    members = (
        wants.join(held, [*SPAN, "member_id"], "left")
        .groupBy(*SPAN)
        .agg(F.collect_list(F.struct(*MEMBER_FIELDS)).alias("members"))
    )
    about = known.groupBy(*SPAN).agg(F.collect_list(F.struct(*TOPIC_FIELDS)).alias("topics"))
    return (
        groups.join(members, list(SPAN))
        .join(about, list(SPAN), "left")
        .join(F.broadcast(_is_whole(topics)), how="cross")
    )


def wanted(members: DataFrame, expressions: DataFrame, parts: DataFrame) -> DataFrame:
    """Return members with `wants`: names of all topics they want, null where it cannot be read.

    Members of streams groups want all subtopologies.

    Args:
        members: `group_id`, `group_type`, `subscribed_topics`, `subscribed_regex`, and what is kept
            (`MEMBER_FIELDS` but the last two, and `span` where there is one).
        expressions: `resolved_expressions`.
        parts: `subtopologies`.
    """
    tasks = parts.groupBy("group_id").agg(F.collect_set("subtopology_id").alias("tasks"))
    known = members.join(expressions, ["group_id", "subscribed_regex"], "left").join(
        tasks, "group_id", "left"
    )
    resolved = F.coalesce("resolved", F.array().cast("array<string>"))
    is_known = F.col("subscribed_regex").isNull() | F.col("resolved").isNotNull()
    names = F.when(is_known, F.array_union("subscribed_topics", resolved))
    span = [name for name in members.columns if name == "span"]
    return known.select(
        "group_id",
        *span,
        *MEMBER_FIELDS[:-2],
        F.when(F.col("group_type") == "streams", F.col("tasks")).otherwise(names).alias("wants"),
    )


def owned(assignments: DataFrame, topics: DataFrame) -> DataFrame:
    """Return what members have now: `group_id`, `member_id`, `topic`, `partitions` (array).

    `topic` is a name only where that topic lives; a subtopology for tasks; else an id.
    """
    gone = topics.where("deleted_at is not null and topic_id is not null").select(
        "topic_id", F.lit(col=True).alias("is_gone")
    )
    current = assignments.where("kind = 'current' and coalesce(role, 'active') = 'active'")
    name = F.when(~F.coalesce("is_gone", F.lit(col=False)), F.col("topic"))
    return (
        current.join(F.broadcast(gone.distinct()), "topic_id", "left")
        .withColumn("topic", F.coalesce("subtopology_id", name, "topic_id"))
        .groupBy("group_id", "member_id", "topic")
        .agg(partition_list())
    )


def partition_list() -> Column:
    """Return the distinct values of `partition`, ascending, as `partitions`."""
    return F.sort_array(F.collect_set("partition")).alias("partitions")


def needed_topics(wants: DataFrame, has: DataFrame) -> DataFrame:
    """Return the topics that members want or have: `SPAN`, `topic`."""
    return (
        wants.select(*SPAN, F.explode("wants").alias("topic"))
        .unionByName(has.select(*SPAN, "topic"))
        .distinct()
    )


def tasks_of(sources: DataFrame) -> DataFrame:
    """Return subtopologies as topics: as many tasks as the largest source has partitions.

    Args:
        sources: `SPAN`, `subtopology_id`, `by_regex`, and of each source topic `partitions` and
            `counted_by`, null where not known.

    Returns:
        `SPAN` and `TOPIC_FIELDS`; `partitions` null where a source's are.
    """
    is_known = ~F.bool_or("by_regex") & (F.count("partitions") == F.count(F.lit(1)))
    return sources.groupBy(*SPAN, F.col("subtopology_id").alias("topic")).agg(
        F.lit(None).cast("string").alias("topic_id"),
        F.when(is_known, F.max("partitions")).alias("partitions"),
        F.coalesce(F.max_by("counted_by", "partitions"), F.lit("unknown")).alias("counted_by"),
        F.lit(None).cast("array<int>").alias("assignable"),
    )


def with_assignable(known: DataFrame, share_partitions: DataFrame) -> DataFrame:
    """Fill in `assignable` for share groups: the partitions that are initialized for them.

    Args:
        known: `SPAN` and `TOPIC_FIELDS`.
        share_partitions: The table. A group with nothing in it is not told what it may be given.
    """
    is_ready = F.col("phase") == "initialized"
    told = share_partitions.where("phase in ('initialized', 'initializing')")
    ready = told.groupBy("group_id", "topic").agg(
        F.sort_array(F.collect_set(F.when(is_ready, F.col("partition")))).alias("ready")
    )
    return (
        known.drop("assignable")
        .join(ready, ["group_id", "topic"], "left")
        .withColumnRenamed("ready", "assignable")
        .select(*SPAN, *TOPIC_FIELDS)
    )


def _is_whole(topics: DataFrame) -> DataFrame:
    from_log = F.bool_or(F.col("source") == METADATA_LOG)
    return topics.agg(F.coalesce(from_log, F.lit(col=False)).alias("is_whole"))
