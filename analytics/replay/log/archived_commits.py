"""Commits of archived rows, of which no producer id and no marker tells whether they took effect.

A commit in a transaction counts only once a COMMIT marker follows, and never where it was aborted.
Archived rows show neither, so that any commit may be of that kind. Two things are certain: a
tombstone is written by the coordinator itself; and a commit that names its topic's id did not come
in a transaction, as no release up to 4.4 gives the id to those that do
(``OffsetAndMetadata.fromRequest``). Of a key, what is certain is the last of these two. Any commit
after that may or may not be in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.dump.inspection.archived_losses import UNDECIDED
from analytics.replay.history.shown_from import shown_from
from analytics.replay.log.latest import last_offsets, later
from analytics.replay.log.losses import HOME, lost_between
from analytics.replay.log.stored_values import uuid

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from analytics.replay.log.coverage import Coverage
    from analytics.replay.log.rules import ReplayRules

KEY = (HOME, "group_id", "topic", "partition")
UNKNOWN = "unknown"


def is_undecided(coverage: Coverage, topic_id: Column, *, is_commit: Column) -> Column:
    """Return whether nothing tells if a commit was in a transaction.

    Args:
        coverage: What the dump holds; rows have `coordinator_partition`.
        topic_id: The topic's id in the commit's value, null or zero where there is none.
        is_commit: Whether the row is a commit, not a tombstone.
    """
    if not coverage.undecided:
        return F.lit(col=False)
    is_archived = F.col(HOME).isin(*sorted(coverage.undecided))
    return is_archived & is_commit & uuid(topic_id).isNull()


def with_range(
    committed: DataFrame, commits: DataFrame, rules: ReplayRules, coverage: Coverage
) -> DataFrame:
    """Add `undecided` to commits in force: what else may be in force, in words; null if certain.

    The `via` of such a commit is `unknown`.

    Args:
        committed: The last commit of each key (`KEY`, `via`).
        commits: The decoded table `offset_commit`, cut at the instant.
        rules: Of the release.
        coverage: What the dump holds.
    """
    if not coverage.undecided:
        return committed.withColumn("undecided", F.lit(None).cast("string"))
    told = committed.join(_ranges(commits, rules, coverage), list(KEY), "left")
    via = F.when(F.col("undecided").isNull(), F.col("via")).otherwise(UNKNOWN)
    return told.withColumn("via", via)


def removed_for_now(commits: DataFrame, coverage: Coverage) -> DataFrame:
    """Return keys whose last record is a tombstone, behind which a commit may be in force again.

    Up to 3.9 a tombstone leaves what is pending, which takes effect with a marker behind it. Where
    no offset behind the tombstone is without a row, there is no such marker.

    Args:
        commits: `KEY`, `offset`, `is_tombstone`.
        coverage: What the dump holds.

    Returns:
        `KEY` and the `record_offset` of the last commit.
    """
    last = last_offsets(commits.where(F.col(HOME).isin(*sorted(coverage.undecided))), KEY)
    may_be = F.col("last_value").isNotNull() & later(F.col("last_tombstone"), F.col("last_value"))
    return last.where(may_be & (F.col("last_tombstone") < shown_from(coverage))).select(
        *KEY, F.col("last_value").alias("record_offset")
    )


def _ranges(commits: DataFrame, rules: ReplayRules, coverage: Coverage) -> DataFrame:
    undecided = is_undecided(coverage, F.col("topic_id"), is_commit=~F.col("is_tombstone"))
    rows = (
        commits.where(F.col("partition").isin(*sorted(coverage.undecided)))
        .select(
            F.col("partition").alias(HOME),
            F.col("key.group").alias("group_id"),
            F.col("key.topic").alias("topic"),
            F.col("key.partition").alias("partition"),
            "offset",
            "is_tombstone",
            F.col("value.offset").alias("committed"),
            F.col("value.topic_id").alias("topic_id"),
        )
        .withColumn("undecided", undecided)
    )
    is_certain = ~F.col("undecided")
    if not rules.tombstones_remove_everything:
        # A tombstone ends nothing for sure while a marker may follow it.
        is_certain &= ~F.col("is_tombstone") | (F.col("offset") >= shown_from(coverage))
    certain = F.when(is_certain, F.struct("offset", "committed"))
    last = F.max(certain).over(Window.partitionBy(*KEY))
    open_ones = (
        rows.withColumn("last", last)
        .where("undecided")
        .where(F.col("last").isNull() | (F.col("offset") > F.col("last.offset")))
    )
    found = open_ones.groupBy(*KEY).agg(
        F.count_distinct("committed").alias("values"),
        F.min("committed").alias("least"),
        F.max("committed").alias("most"),
        F.min("offset").alias("first"),
        F.first("last").alias("last"),
    )
    is_lost = lost_between(coverage, F.coalesce("last.offset", F.lit(-1)), F.col("first"))
    before = F.coalesce(F.col("last.committed").cast("string"), F.lit("none"))
    otherwise = F.when(is_lost.isNull(), before).otherwise(
        F.concat(before, F.lit(", or one that is not in the rows"))
    )
    one = F.col("values") == 1
    several = F.concat(
        F.lit("any of "),
        F.col("values").cast("string"),
        F.lit(" offsets from "),
        F.col("least").cast("string"),
        F.lit(" to "),
        F.col("most").cast("string"),
    )
    what = F.when(one, F.col("most").cast("string")).otherwise(several)
    words = F.concat(F.lit(f"{UNDECIDED}: it may be "), what, F.lit(", or "), otherwise)
    return found.select(*KEY, words.alias("undecided"))
