"""Groups at an instant, one row each, with all that judging their balance needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SPAN = ("group_id", "span")
"""What tells rows apart: a group, and a text for the stretch of time looked at."""

MEMBER_FIELDS = (
    "member_id",
    "group_instance_id",
    "rack_id",
    "member_epoch",
    "state",
    "wants",
    "has",
)
TOPIC_FIELDS = ("topic", "topic_id", "partitions", "counted_by", "assignable")


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
            F.lit("").alias("span"),
            F.lit(None).cast("timestamp").alias("from_timestamp"),
            F.lit(None).cast("timestamp").alias("to_timestamp"),
        )
    )
    wants = wanted(state["members"], expressions, parts).withColumn("span", F.lit(""))
    has = owned(state["assignments"], state["topics"]).withColumn("span", F.lit(""))
    known = topics_of_groups(counts, parts, state["share_partitions"])
    return assembled(groups, wants, has, known, state["topics"])


def assembled(
    groups: DataFrame, wants: DataFrame, has: DataFrame, known: DataFrame, topics: DataFrame
) -> DataFrame:
    """Put groups together with their members, what these have, and the topics.

    Args:
        groups: One row a span.
        wants: `wanted`, with `span`.
        has: `owned`, with `span`.
        known: `topics_of_groups`.
        topics: The table `topics`.

    Returns:
        The columns of `groups`, `members`, `topics` (arrays of structs) and `is_whole` (boolean: a
        topic that is not listed does not exist).
    """
    held = has.groupBy(*SPAN, "member_id").agg(
        F.collect_list(F.struct("topic", "partitions")).alias("has")
    )
    with_held = wants.join(held, [*SPAN, "member_id"], "left")
    members = with_held.groupBy(*SPAN).agg(
        F.collect_list(F.struct(*MEMBER_FIELDS)).alias("members")
    )
    named = (
        wants.select(*SPAN, F.explode("wants").alias("topic"))
        .unionByName(has.select(*SPAN, "topic"))
        .distinct()
    )
    own = known.where("group_id is not null").withColumn("own", F.struct(*TOPIC_FIELDS[1:]))
    everywhere = known.where("group_id is null").withColumn("any", F.struct(*TOPIC_FIELDS[1:]))
    about = (
        named.join(everywhere.select("topic", "any"), "topic", "left")
        .join(own.select("group_id", "topic", "own"), ["group_id", "topic"], "left")
        .select(*SPAN, "topic", F.coalesce("own", "any").alias("about"))
        .where("about is not null")
        .select(*SPAN, "topic", "about.*")
        .groupBy(*SPAN)
        .agg(F.collect_list(F.struct(*TOPIC_FIELDS)).alias("topics"))
    )
    return (
        groups.join(members, list(SPAN))
        .join(about, list(SPAN), "left")
        .join(F.broadcast(_is_whole(topics)), how="cross")
    )


def wanted(members: DataFrame, expressions: DataFrame, parts: DataFrame) -> DataFrame:
    """Return members with `wants`: names of all topics they want, null where it cannot be read.

    Members of streams groups want all subtopologies.
    """
    tasks = parts.groupBy("group_id").agg(F.collect_set("subtopology_id").alias("tasks"))
    known = members.join(expressions, ["group_id", "subscribed_regex"], "left").join(
        tasks, "group_id", "left"
    )
    names = F.when(
        F.col("subscribed_regex").isNull() | F.col("resolved").isNotNull(),
        F.array_union("subscribed_topics", F.coalesce("resolved", F.array().cast("array<string>"))),
    )
    return known.select(
        "group_id",
        "member_id",
        "group_instance_id",
        "rack_id",
        "member_epoch",
        "state",
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
    name = F.when(F.coalesce("is_gone", F.lit(col=False)), F.col("topic_id"))
    return (
        current.join(F.broadcast(gone.distinct()), "topic_id", "left")
        .withColumn("topic", F.coalesce("subtopology_id", name, "topic", "topic_id"))
        .groupBy("group_id", "member_id", "topic")
        .agg(F.sort_array(F.collect_set("partition")).alias("partitions"))
    )


def topics_of_groups(counts: DataFrame, parts: DataFrame, share_partitions: DataFrame) -> DataFrame:
    """Return counts of topics, and of what only some groups have: tasks, assignable partitions.

    Returns:
        `group_id` (null: for all groups), `topic`, `topic_id`, `partitions` (null: not known),
        `counted_by`, `assignable` (array; null: all).
    """
    nothing = F.lit(None).cast("array<int>").alias("assignable")
    everywhere = counts.select(
        F.lit(None).cast("string").alias("group_id"), *counts.columns, nothing
    )
    sources = parts.select(
        "group_id", "subtopology_id", "by_regex", F.explode("sources").alias("topic")
    )
    tasks = (
        sources.join(counts, "topic", "left")
        .groupBy("group_id", F.col("subtopology_id").alias("topic"))
        .agg(
            F.lit(None).cast("string").alias("topic_id"),
            # As many tasks as the largest source has partitions.
            F.when(
                ~F.bool_or("by_regex") & (F.count("partitions") == F.count(F.lit(1))),
                F.max("partitions"),
            ).alias("partitions"),
            F.coalesce(F.max_by("counted_by", "partitions"), F.lit("unknown")).alias("counted_by"),
            nothing,
        )
    )
    ready = (
        share_partitions.where("phase in ('initialized', 'initializing')")
        .groupBy("group_id", "topic")
        .agg(
            F.sort_array(
                F.collect_set(F.when(F.col("phase") == "initialized", F.col("partition")))
            ).alias("assignable")
        )
    )
    shared = ready.join(counts, "topic").select(
        "group_id", "topic", "topic_id", "partitions", "counted_by", "assignable"
    )
    return everywhere.unionByName(tasks).unionByName(shared)


def _is_whole(topics: DataFrame) -> DataFrame:
    from_log = F.bool_or(F.col("source") == "metadata_log")
    return topics.agg(F.coalesce(from_log, F.lit(col=False)).alias("is_whole"))
