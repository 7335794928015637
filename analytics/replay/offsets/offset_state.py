"""Committed and pending offsets (``OffsetMetadataManager``; before 4.0 ``GroupMetadataManager``).

Of the commits that took effect the one with the greatest record offset is in force, because a
commit outside transactions overwrites what is there and one that takes effect by a marker does so
only where its own record is the later one. A tombstone removes what came before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.log.archived_commits import removed_for_now, with_range
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.latest import (
    last_offsets,
    last_record,
    later,
    records_among,
    records_at,
    value_at,
)
from analytics.replay.log.losses import may_be_superseded, uncompacted_from, with_missing
from analytics.replay.log.rules import ReplayRules
from analytics.replay.log.stored_values import instant, present, uuid
from analytics.replay.log.transaction_owners import with_owner
from analytics.replay.log.transactions import with_end
from analytics.replay.offsets.outlived_removals import with_outlived_removal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY = ("coordinator_partition", "group_id", "topic", "partition")
NO_PRODUCER = -1


def committed_offsets(
    decoded: Decoded,
    rules: ReplayRules,
    gone: DataFrame | None = None,
    coverage: Coverage = WHOLE,
    pending: DataFrame | None = None,
) -> DataFrame:
    """Return the table `committed_offsets` of decoded tables that are cut at an instant.

    Args:
        decoded: The decoded tables.
        rules: Of the release.
        gone: What `groups_gone` returns; nothing is answered for these groups.
        coverage: What the dump holds.
        pending: The table `pending_offsets`, of the same.
    """
    latest = _in_force(decoded, rules)
    if coverage.undecided and not rules.tombstones_remove_everything:
        latest = latest.unionByName(removed_for_now(_commits(decoded), coverage))
    latest = _of_groups_there(latest, gone)
    found = records_among(decoded["offset_commit"], latest.select(KEY[0], "record_offset"))
    told = with_range(_meaning(found, rules), decoded["offset_commit"], rules, coverage)
    told = with_outlived_removal(told, decoded, rules, coverage)
    told = _with_unsettled(told, pending)
    lost = may_be_superseded(coverage, F.col("record_offset"))
    return as_table(_with_completeness(told, lost, "unsettled"), "committed_offsets")


def pending_offsets(
    decoded: Decoded,
    rules: ReplayRules,
    gone: DataFrame | None = None,
    coverage: Coverage = WHOLE,
) -> DataFrame:
    """Return the table `pending_offsets`, of the same as `committed_offsets`."""
    entries = _of_groups_there(_entries(decoded, rules), gone).where(F.col("end_offset").isNull())
    if rules.tombstones_remove_everything:
        entries = _outliving_tombstones(entries, decoded, rules, F.col("last_value"))
    places = entries.select(KEY[0], F.col("last_value").alias("record_offset"))
    found = _meaning(records_at(decoded["offset_commit"], places), rules)
    found = found.withColumn("undecided", F.lit(None).cast("string"))
    found = with_outlived_removal(found, decoded, rules, coverage)
    found = with_owner(found, decoded["transaction_log"])
    lost = may_be_superseded(coverage, F.col("record_offset"))
    return as_table(_with_completeness(found, lost, _may_have_ended(coverage)), "pending_offsets")


def _of_groups_there(entries: DataFrame, gone: DataFrame | None) -> DataFrame:
    if gone is None:
        return entries
    return entries.join(F.broadcast(gone), ["coordinator_partition", "group_id"], "left_anti")


def _in_force(decoded: Decoded, rules: ReplayRules) -> DataFrame:
    """Commits in force: the key, which no two have, and `record_offset`.

    All in one aggregation of all commits, which is what a replay of offsets costs.
    """
    nothing = F.lit(None).cast("bigint")
    by_itself = (
        _commits(decoded)
        .where(~_is_pending(rules))
        .select(
            *KEY,
            last_record(F.col("offset"), F.col("is_tombstone")).alias("last"),
            nothing.alias("by_marker"),
        )
    )
    ended = _entries(decoded, rules).where("is_commit")
    if rules.tombstones_remove_everything:
        # One record after the other, whatever made it count: a tombstone outdoes those before it.
        of_value = last_record(F.col("last_value"), F.lit(col=False))
        by_marker = ended.select(*KEY, of_value.alias("last"), nothing.alias("by_marker"))
    else:
        # What a tombstone leaves pending takes effect behind it, when the marker comes.
        left = _outliving_tombstones(ended, decoded, rules, F.col("end_offset"))
        by_marker = left.select(*KEY, nothing.alias("last"), F.col("last_value").alias("by_marker"))
    latest = (
        by_itself.unionByName(by_marker)
        .groupBy(*KEY)
        .agg(F.max("last").alias("last"), F.max("by_marker").alias("by_marker"))
    )
    record_offset = F.greatest(value_at(F.col("last")), F.col("by_marker"))
    return latest.select(*KEY, record_offset.alias("record_offset")).where(
        F.col("record_offset").isNotNull()
    )


def _entries(decoded: Decoded, rules: ReplayRules) -> DataFrame:
    """Pending commits at the end of their transaction, or of the log.

    Returns:
        The key, `producer_id`, `end_offset`, `is_commit`, `last_value`.
    """
    pending = _commits(decoded).where(_is_pending(rules)).drop("is_transactional")
    ended = with_end(pending, _markers(decoded))
    last = last_offsets(ended, (*KEY, "producer_id", "end_offset", "is_commit"))
    return last.where(later(F.col("last_value"), F.col("last_tombstone")))


def _outliving_tombstones(
    entries: DataFrame, decoded: Decoded, rules: ReplayRules, effect: Column
) -> DataFrame:
    """Keep entries with an `effect` (an offset) after the last plain tombstone of their key."""
    plain = _commits(decoded).where(~_is_pending(rules) & F.col("is_tombstone"))
    removed = (
        plain.join(entries.select(*KEY).distinct(), list(KEY), "left_semi")
        .groupBy(*KEY)
        .agg(F.max("offset").alias("removed_at"))
    )
    return entries.join(removed, list(KEY), "left").where(later(effect, F.col("removed_at")))


def _is_pending(rules: ReplayRules) -> Column:
    """Whether a record waits for a marker (archived rows do not say, and do not wait).

    Written as Parquet can filter by it: most files have no such record, and are then not read.
    """
    if rules.pending_by == "transactional_bit":
        waits = F.col("is_transactional").eqNullSafe(F.lit(col=True))
    else:
        waits = F.col("producer_id").isNotNull() & (F.col("producer_id") != NO_PRODUCER)
    if rules.tombstones_remove_everything:
        return waits & ~F.col("is_tombstone")
    return waits


def _commits(decoded: Decoded) -> DataFrame:
    return decoded["offset_commit"].select(
        F.col("partition").alias("coordinator_partition"),
        F.col("key.group").alias("group_id"),
        F.col("key.topic").alias("topic"),
        F.col("key.partition").alias("partition"),
        "offset",
        "is_tombstone",
        "producer_id",
        "is_transactional",
    )


def _markers(decoded: Decoded) -> DataFrame:
    return decoded["control_markers"].where(F.col("topic") == "__consumer_offsets")


def _may_have_ended(coverage: Coverage) -> Column:
    """Return why a transaction may have ended all the same, null where it has not.

    Where the log cleaner has been offsets are missing anyway: they do not show that a marker is
    lost. There only the transaction log tells that the transaction is still open.
    """
    shown = uncompacted_from(coverage)
    text = "its marker may be missing: the log cleaner has been there, and no transaction log that "
    text += "is in the dump has the transaction open"
    return F.when(~F.col("is_open") & (F.col("record_offset") < shown), F.lit(text))


def _with_unsettled(offsets: DataFrame, pending: DataFrame | None) -> DataFrame:
    """Add `unsettled`: the later commit that has replaced this one if its transaction committed."""
    if pending is None:
        return offsets.withColumn("unsettled", F.lit(None).cast("string"))
    may_count = (
        pending.where("not complete")
        .groupBy(*KEY)
        .agg(F.max(F.struct("record_offset", "missing")).alias("later"))
    )
    text = F.concat(
        F.lit("the commit in record "),
        F.col("later.record_offset"),
        F.lit(" may have replaced it: "),
        F.col("later.missing"),
    )
    is_later = F.col("later.record_offset") > F.col("record_offset")
    return (
        offsets.join(F.broadcast(may_count), list(KEY), "left")
        .withColumn("unsettled", F.when(is_later, text))
        .drop("later")
    )


def _with_completeness(offsets: DataFrame, *lost: Column | str) -> DataFrame:
    """Add `complete` and `missing`: whether no lost record can have changed what a row says.

    A commit that a marker made count is judged by its own record, too: behind that, the marker
    that ended its transaction first may be lost.
    """
    return with_missing(offsets, F.concat_ws("; ", "undecided", "outlived", *lost))


def _meaning(found: DataFrame, rules: ReplayRules) -> DataFrame:
    """Turn stored commits into the columns that committed and pending offsets share."""
    return found.select(
        F.col("key.group").alias("group_id"),
        F.col("key.topic").alias("topic"),
        uuid(F.col("value.topic_id")).alias("topic_id"),
        F.col("key.partition").alias("partition"),
        F.col("value.offset").alias("committed_offset"),
        present(F.col("value.leader_epoch")).alias("committed_leader_epoch"),
        F.col("value.metadata").alias("metadata"),
        instant(F.col("value.commit_timestamp")).alias("commit_timestamp"),
        instant(F.col("value.expire_timestamp")).alias("expire_timestamp"),
        F.when(_is_pending(rules), "transaction").otherwise("plain").alias("via"),
        "coordinator_partition",
        "record_offset",
        "leader_epoch",
        "producer_id",
        "producer_epoch",
    )
