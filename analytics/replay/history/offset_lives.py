"""Commits from the moment they take effect until the next commit or a tombstone ends them.

Within a partition of `__consumer_offsets` order is exact. A commit outside transactions takes
effect at once; one inside a transaction with its COMMIT marker, and only where no later commit is
in force (``OffsetMetadataManager.replayEndTransactionMarker``). A tombstone ends what is in force;
since 4.0 also what is pending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.log.as_of import Decoded
from analytics.replay.log.latest import NEVER
from analytics.replay.log.record_position import POSITION
from analytics.replay.log.rules import ReplayRules
from analytics.replay.log.transactions import with_end

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY = ("coordinator_partition", "group_id", "topic", "partition")
OFFSETS_TOPIC = "__consumer_offsets"
NO_PRODUCER = -1
COMMITTED, REMOVED = "commit", "tombstone"

PLACE = (*POSITION, "batch_offset")
SAID = (
    "record_offset",
    "committed_offset",
    "commit_ms",
    "expire_ms",
    "value_version",
    "topic_id",
    "committed_leader_epoch",
    "committed_at",
    "commit_epoch",
    "producer_id",
)
"""What a commit said, in the stored numbers: `commit_ms` and `expire_ms` are Kafka's longs."""


def offset_events(decoded: Decoded, rules: ReplayRules) -> DataFrame:
    """Return what changed each committed offset, each with what was in force before it.

    Args:
        decoded: Decoded tables, cut at an instant.
        rules: Of the release.

    Returns:
        `KEY`; `position` (bigint: offset of the record by which it happened, the marker of a
        transaction) and `at` (its timestamp); `event` (commit, tombstone); of a commit `SAID`; of
        both `PLACE`; `removed`, a struct of `SAID` and `position` of the commit in force before,
        null where there was none; `next_position`, `next_at` and `next_event` of what ended it.
        A commit that never took effect has no row, every tombstone has one that removes what is
        in force.
    """
    events = _plain(decoded, rules).unionByName(_by_marker(decoded, rules))
    order = Window.partitionBy(*KEY).orderBy("position")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    is_tombstone = F.col("event") == REMOVED
    # Tombstones so far: what takes effect behind one may be a record that lies before it.
    life = F.coalesce(F.sum(is_tombstone.cast("int")).over(before), F.lit(0))
    in_force = F.when(~is_tombstone, F.struct("life", "record_offset"))
    events = (
        events.withColumn("life", life)
        .withColumn("since", F.max(in_force).over(before))
        .withColumn("ended", F.max(F.when(is_tombstone, F.col("position"))).over(before))
        .fillna(NEVER, ["ended"])
    )
    # Of what took effect since the last tombstone the greatest record offset is in force.
    own, since = F.col("record_offset"), F.col("since")
    newest = since.isNull() | (since["life"] < F.col("life")) | (own > since["record_offset"])
    if rules.tombstones_remove_everything:
        newest &= own > F.col("ended")
    events = events.where(is_tombstone | F.coalesce(newest, F.lit(col=False)))
    said = F.struct(*SAID, "position", "at", "event")
    following = F.struct("position", "at", "event")
    return (
        events.withColumn("last", F.lag(said).over(order))
        .withColumn("next", F.lead(following).over(order))
        .withColumn("removed", F.when(F.col("last.event") == COMMITTED, F.col("last")))
        .withColumn("next_position", F.col("next.position"))
        .withColumn("next_at", F.col("next.at"))
        .withColumn("next_event", F.col("next.event"))
        .drop("last", "next", "ended", "since", "life")
    )


def pending_spans(decoded: Decoded, rules: ReplayRules) -> DataFrame:
    """Return from where to where commits in transactions were pending.

    Returns:
        `KEY`, `producer_id`, `record_offset`, `until_position` (bigint) and `until_at`, both null
        while it is open, `outcome` (COMMIT, ABORT, tombstone or null).
    """
    commits = transactional_commits(decoded, rules)
    if rules.tombstones_remove_everything:
        tombstones = _tombstones(decoded).select(
            *KEY, F.col("position").alias("gone_at"), F.col("at").alias("gone_time")
        )
        first = F.min_by(F.struct("gone_at", "gone_time"), "gone_at")
        removed = (
            commits.join(tombstones, list(KEY), "left")
            .where(F.col("gone_at") > F.col("record_offset"))
            .groupBy(*KEY, "record_offset")
            .agg(first.alias("gone"))
        )
        commits = commits.join(removed, [*KEY, "record_offset"], "left")
        sooner = F.col("gone.gone_at") < F.coalesce(F.col("end_offset"), F.col("gone.gone_at") + 1)
        gone = F.struct(
            F.col("gone.gone_at").alias("end_offset"),
            F.col("gone.gone_time").alias("end_at"),
            F.lit(REMOVED).alias("outcome"),
        )
        ended = F.struct("end_offset", "end_at", _outcome().alias("outcome"))
        end = F.when(sooner, gone).otherwise(ended)
    else:
        end = F.struct("end_offset", "end_at", _outcome().alias("outcome"))
    return commits.withColumn("end", end).select(
        *KEY,
        "producer_id",
        "record_offset",
        F.col("end.end_offset").alias("until_position"),
        F.col("end.end_at").alias("until_at"),
        F.col("end.outcome").alias("outcome"),
    )


def _outcome() -> Column:
    return F.when(F.col("is_commit"), "COMMIT").when(~F.col("is_commit"), "ABORT")


def _plain(decoded: Decoded, rules: ReplayRules) -> DataFrame:
    """Return commits that take effect by themselves, and all tombstones."""
    waits = _waits(rules) & ~F.col("is_tombstone")
    return (
        decoded["offset_commit"]
        .where(~waits)
        .select(
            *_key(),
            F.col("offset").alias("position"),
            F.col("timestamp").alias("at"),
            F.when(F.col("is_tombstone"), REMOVED).otherwise(COMMITTED).alias("event"),
            *_said(),
            *PLACE,
        )
    )


def _by_marker(decoded: Decoded, rules: ReplayRules) -> DataFrame:
    """Return commits that take effect by a COMMIT marker: the last one of each transaction."""
    entries = transactional_commits(decoded, rules).where("is_commit")
    columns = (*SAID, *PLACE, "end_at")
    last = F.max_by(F.struct(*columns), "record_offset").alias("last")
    return (
        entries.groupBy(*KEY, "producer_id", "end_offset")
        .agg(last)
        .select(
            *KEY,
            F.col("end_offset").alias("position"),
            F.col("last.end_at").alias("at"),
            F.lit(COMMITTED).alias("event"),
            *(F.col(f"last.{name}").alias(name) for name in (*SAID, *PLACE)),
        )
    )


def transactional_commits(decoded: Decoded, rules: ReplayRules) -> DataFrame:
    """Return commits in transactions with `end_offset`, `end_at` and `is_commit` of the marker.

    Returns:
        `KEY`, `SAID`, `PLACE`, `offset`, and what is null while a transaction is open.
    """
    entries = (
        decoded["offset_commit"]
        .where(_waits(rules) & ~F.col("is_tombstone"))
        .select(*_key(), "offset", *_said(), *PLACE)
    )
    markers = decoded["control_markers"].where(F.col("topic") == OFFSETS_TOPIC)
    ended = with_end(entries, markers)
    times = markers.select(
        F.col("partition").alias("coordinator_partition"),
        F.col("offset").alias("end_offset"),
        F.col("timestamp").alias("end_at"),
    )
    return ended.join(times, ["coordinator_partition", "end_offset"], "left")


def _tombstones(decoded: Decoded) -> DataFrame:
    return (
        decoded["offset_commit"]
        .where("is_tombstone")
        .select(*_key(), F.col("offset").alias("position"), F.col("timestamp").alias("at"))
    )


def _waits(rules: ReplayRules) -> Column:
    """Whether a record waits for a marker (archived rows do not say, and do not wait)."""
    if rules.pending_by == "transactional_bit":
        return F.coalesce(F.col("is_transactional"), F.lit(col=False))
    return F.coalesce(F.col("producer_id"), F.lit(NO_PRODUCER)) != NO_PRODUCER


def _key() -> list[Column]:
    return [
        F.col("partition").alias("coordinator_partition"),
        F.col("key.group").alias("group_id"),
        F.col("key.topic").alias("topic"),
        F.col("key.partition").alias("partition"),
    ]


def _said() -> list[Column | str]:
    value = F.col("value")
    return [
        F.col("offset").alias("record_offset"),
        value["offset"].alias("committed_offset"),
        value["commit_timestamp"].alias("commit_ms"),
        value["expire_timestamp"].alias("expire_ms"),
        "value_version",
        value["topic_id"].alias("topic_id"),
        value["leader_epoch"].alias("committed_leader_epoch"),
        F.col("timestamp").alias("committed_at"),
        F.col("leader_epoch").alias("commit_epoch"),
        "producer_id",
    ]
