"""What kind of group a name was, from record to record, and which topics it was subscribed to.

A span reaches from the record that began it to the one that ended it. Brokers keep offsets of
topics that a group is subscribed to, and count the retention from what kind of group it is
(``ClassicGroup``, ``ConsumerGroup`` and ``StreamsGroup``, each ``offsetExpirationCondition`` and
``isSubscribedToTopic``). A rebalance under way leaves no record: a group that is not empty counts
as stable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.groups.coordinator_log import coordinator_log
from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    GROUP,
    GROUP_KEY,
    KINDS,
    MEMBER,
    STREAMS,
    table_name,
)
from analytics.replay.history.takeovers import with_takeovers
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.stored_values import text
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FOREVER = 2**63 - 1
"""The end of a span that nothing has ended."""

SPAN = ("from_offset", "to_offset", "from_at", "to_at")

_READ_BY_BROKERS = 2
"""Fields of a subscription that brokers read: topics and user data."""

SUBSCRIBED, UNPARSEABLE, OTHER_PROTOCOL, ACTIVE = (
    "subscribed",
    "unparseable_subscription",
    "other_protocol_type",
    "active",
)
"""What may keep offsets: of one topic the first, of all topics the others."""


def group_spans(decoded: Decoded, commits: DataFrame | None = None) -> DataFrame:
    """Return what kind of group each name was.

    Args:
        decoded: Decoded tables, cut at an instant.
        commits: Their `offset_commit`; None where tombstones take no simple group over, before
            4.0, or where it does not matter: such a group keeps and counts as a simple one does.

    Returns:
        `GROUP_KEY`, `SPAN` (offsets of the coordinator's partition, `to_offset` exclusive, and the
        times of those records), `family` (null: no group of its own), and of a classic group
        `protocol_type` (null where it has none), `member_count`, `state_ms` (bigint, null where
        not stored) and `topics` (null where its subscription cannot be parsed).
    """
    steps = [_classic_steps(decoded)]
    for name, kind in KINDS.items():
        # Any value that makes a group where there is none: compaction may have left that alone.
        if kind.family == CLASSIC or not kind.creates:
            continue
        ends = F.col("is_tombstone")
        records = decoded[name]
        steps.append(
            _located(records if kind.role == GROUP else records.where(~ends), "key.group_id")
            .withColumn("family", F.when(~ends, kind.family))
            .drop("is_tombstone")
        )
    if commits is not None:
        steps.append(_takeovers(decoded, commits))
    told = union_all(steps, missing_as_null=True)
    order = Window.partitionBy(*GROUP_KEY).orderBy("from_offset")
    same = (F.col("family") != CLASSIC) & F.col("family").eqNullSafe(F.lag("family").over(order))
    changes = told.withColumn("repeats", F.coalesce(same, F.lit(col=False))).where("not repeats")
    return _until_next(changes, GROUP_KEY).select(
        *GROUP_KEY, *SPAN, "family", "protocol_type", "member_count", "state_ms", "topics"
    )


def protection_spans(decoded: Decoded, groups: DataFrame) -> DataFrame:
    """Return from where to where something may keep offsets of a group.

    Args:
        decoded: Decoded tables, cut at an instant.
        groups: Their `group_spans`.

    Returns:
        `GROUP_KEY`, `topic` (null: all of them), `why`, `SPAN`. Spans of one group, topic and
        reason neither touch nor overlap.
    """
    spans = (
        _of_classic(groups)
        .unionByName(_of_consumer_groups(decoded))
        .unionByName(_of_streams_groups(decoded))
    )
    return joined_spans(spans, (*GROUP_KEY, "topic", "why"))


def joined_spans(spans: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Join spans of a key that touch or overlap.

    Args:
        spans: `key` and `SPAN`.
        key: What tells apart; null is a value of its own.
    """
    order = Window.partitionBy(*key).orderBy("from_offset", "to_offset")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    reached = F.max("to_offset").over(before)
    begins = F.when(F.col("from_offset") <= reached, 0).otherwise(1)
    marked = spans.withColumn("begins", begins)
    numbered = marked.withColumn("island", F.sum("begins").over(order))
    return (
        numbered.groupBy(*key, "island")
        .agg(
            F.min("from_offset").alias("from_offset"),
            F.max("to_offset").alias("to_offset"),
            F.min_by("from_at", "from_offset").alias("from_at"),
            F.max_by("to_at", "to_offset").alias("to_at"),
        )
        .drop("island")
    )


def _classic_steps(decoded: Decoded) -> DataFrame:
    value = F.col("value")
    state = value["current_state_timestamp"]
    return _located(
        decoded["group_metadata"],
        "key.group",
        text(value["protocol_type"]).alias("protocol_type"),
        F.size(value["members"]).alias("member_count"),
        F.when(state >= 0, state).alias("state_ms"),
        _classic_topics(value).alias("topics"),
    ).select(
        *GROUP_KEY,
        "from_offset",
        "from_at",
        F.when(~F.col("is_tombstone"), CLASSIC).alias("family"),
        "protocol_type",
        "member_count",
        "state_ms",
        "topics",
    )


def _takeovers(decoded: Decoded, commits: DataFrame) -> DataFrame:
    """Return the tombstones that made a consumer or streams group of a simple one."""
    # Of what steps say only what makes a classic group simple is looked at.
    items = F.when(F.col("family") == CLASSIC, F.col("items")).alias("items")
    steps = coordinator_log(decoded).select(
        *GROUP_KEY,
        *("offset", "timestamp", "family", "role", "creates", "is_tombstone", "protocol_type"),
        items,
    )
    # That of the group itself ends at once what it took over.
    taken = F.col("takes_over").isNotNull() & (F.col("role") != GROUP)
    return (
        with_takeovers(steps, commits)
        .where(taken)
        .select(
            *GROUP_KEY,
            F.col("offset").alias("from_offset"),
            F.col("timestamp").alias("from_at"),
            "family",
        )
    )


def _classic_topics(value: Column) -> Column:
    """Return what members of a group of consumers are subscribed to; null if one is unreadable."""
    read = F.transform(
        value["members"], lambda member: _topics_read(member["subscription_decoded"])
    )
    unread = F.exists(read, F.isnull) | value["protocol"].isNull()
    is_consumer = value["protocol_type"] == CONSUMER_PROTOCOL
    return F.when(is_consumer & ~unread, F.array_distinct(F.flatten(read)))


def _topics_read(subscription: Column) -> Column:
    """Return the topics as a broker reads them: to the user data, and none where that is missing.

    It takes every subscription for one of version 0 (``ClassicGroup.computeSubscribedTopics``).
    """
    written = F.coalesce(subscription["fields_written"], F.lit(_READ_BY_BROKERS))
    return F.when(written >= _READ_BY_BROKERS, subscription["topics"])


def _located(records: DataFrame, group: str, *columns: Column) -> DataFrame:
    return records.select(
        F.col("partition").alias("coordinator_partition"),
        F.col(group).alias("group_id"),
        F.col("offset").alias("from_offset"),
        F.col("timestamp").alias("from_at"),
        "is_tombstone",
        *columns,
    )


def _until_next(records: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Add `to_offset` and `to_at`: where the next record of the key lies."""
    order = Window.partitionBy(*key).orderBy("from_offset")
    return records.withColumn(
        "to_offset", F.coalesce(F.lead("from_offset").over(order), F.lit(FOREVER))
    ).withColumn("to_at", F.lead("from_at").over(order))


def _of_classic(groups: DataFrame) -> DataFrame:
    filled = groups.where((F.col("family") == CLASSIC) & (F.col("member_count") > 0))
    is_consumer = F.col("protocol_type").eqNullSafe(F.lit(CONSUMER_PROTOCOL))
    why = F.when(~is_consumer, OTHER_PROTOCOL).when(F.col("topics").isNull(), UNPARSEABLE)
    no_topic = F.lit(None).cast("string")
    subscribed = F.transform("topics", lambda topic: _kept(topic, F.lit(SUBSCRIBED)))
    whole = F.when(why.isNotNull(), F.array(_kept(no_topic, why))).otherwise(subscribed)
    kept = F.concat(F.array(_kept(no_topic, F.lit(ACTIVE))), whole)
    return filled.select(*GROUP_KEY, *SPAN, F.explode(kept).alias("kept")).select(
        *GROUP_KEY, "kept.topic", "kept.why", *SPAN
    )


def _kept(topic: Column, why: Column) -> Column:
    return F.struct(topic.alias("topic"), why.alias("why"))


def _of_consumer_groups(decoded: Decoded) -> DataFrame:
    value = F.col("value")
    members = _member_spans(
        decoded,
        CONSUMER,
        value["subscribed_topic_names"].alias("topics"),
        text(value["subscribed_topic_regex"]).alias("regex"),
    )
    resolved = _located(
        decoded["consumer_group_regular_expression"],
        "key.group_id",
        F.col("key.regular_expression").alias("regex"),
        value["topics"].alias("topics"),
    )
    resolved = _until_next(resolved, (*GROUP_KEY, "regex")).where(~F.col("is_tombstone"))
    matched = _overlap(
        members.where("regex is not null").drop("topics"), resolved, (*GROUP_KEY, "regex")
    )
    return _subscribed(members).unionByName(_subscribed(matched))


def _of_streams_groups(decoded: Decoded) -> DataFrame:
    source = F.flatten(
        F.transform(
            "value.subtopologies",
            lambda each: F.concat(
                each["source_topics"],
                F.transform(each["repartition_source_topics"], lambda topic: topic["name"]),
            ),
        )
    )
    topologies = _located(decoded["streams_group_topology"], "key.group_id", source.alias("topics"))
    topologies = _until_next(topologies, GROUP_KEY).where(~F.col("is_tombstone"))
    filled = joined_spans(_member_spans(decoded, STREAMS).select(*GROUP_KEY, *SPAN), GROUP_KEY)
    return _subscribed(_overlap(filled, topologies, GROUP_KEY))


def _member_spans(decoded: Decoded, family: str, *columns: Column) -> DataFrame:
    """Return from which record to which each member was as it was."""
    records = _located(
        decoded[table_name(family, MEMBER)],
        "key.group_id",
        F.col("key.member_id").alias("member_id"),
        *columns,
    )
    return _until_next(records, (*GROUP_KEY, "member_id")).where(~F.col("is_tombstone"))


def _overlap(one: DataFrame, other: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Return where spans of two frames overlap, with the `topics` of the other."""
    renamed = other.select(*key, "topics", *(F.col(name).alias(f"other_{name}") for name in SPAN))
    begins_later = F.col("other_from_offset") > F.col("from_offset")
    ends_sooner = F.col("other_to_offset") < F.col("to_offset")

    def chosen(which: Column, name: str) -> Column:
        return F.when(which, F.col(f"other_{name}")).otherwise(F.col(name)).alias(name)

    return (
        one.join(renamed, list(key))
        .where(
            (F.col("other_from_offset") < F.col("to_offset"))
            & (F.col("from_offset") < F.col("other_to_offset"))
        )
        .select(
            *GROUP_KEY,
            "topics",
            chosen(begins_later, "from_offset"),
            chosen(ends_sooner, "to_offset"),
            chosen(begins_later, "from_at"),
            chosen(ends_sooner, "to_at"),
        )
    )


def _subscribed(spans: DataFrame) -> DataFrame:
    return spans.select(
        *GROUP_KEY,
        F.explode("topics").alias("topic"),
        F.lit(SUBSCRIBED).alias("why"),
        *SPAN,
    )
