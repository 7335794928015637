"""The table `rebalance_storms`: so many epochs of a group in so many minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.contract import as_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CHURN = ("joined", "left", "restarted", "fenced", "subscription_changed")
"""Changes of `membership_changes` that can make a rebalance necessary."""

WORDS = {
    "joined": "joined",
    "left": "left or timed out",
    "restarted": "restarted",
    "fenced": "fenced",
    "subscription_changed": "subscribed to something else",
}
_MINUTE = 60_000_000
_HOUR = 3600.0
_SHORTEST = 60.0
"""Seconds: what happened in less counts as if it had taken that long."""


def rebalance_storms(
    epochs: DataFrame, changes: DataFrame, storm_epochs: int, storm_minutes: float
) -> DataFrame:
    """Return the table `rebalance_storms`.

    Generations that left no record count: they began after the one before them.

    Args:
        epochs: The table `group_epochs`, as far as the time asked about goes.
        changes: The table `membership_changes`.
        storm_epochs: So many epochs,
        storm_minutes: that begin within so many minutes, are a storm, or a part of one.
    """
    begun = _begun(epochs)
    storms = _islands(_hot(begun, storm_epochs, storm_minutes))
    inside = F.col("at").between(F.col("from_timestamp"), F.col("to_timestamp"))
    counted = (
        storms.join(begun, "group_id")
        .where(inside)
        .groupBy("group_id", "from_timestamp", "to_timestamp")
        .agg(
            (F.count(F.lit(1)) + _missing_inside()).cast("int").alias("epochs"),
            _missing_inside().alias("missing"),
        )
    )
    who = _who(storms, changes)
    rows = counted.join(who, ["group_id", "from_timestamp"], "left")
    seconds = (F.unix_micros("to_timestamp") - F.unix_micros("from_timestamp")) / F.lit(1_000_000.0)
    hours = F.greatest(seconds, F.lit(_SHORTEST)) / _HOUR
    nobody = F.array().cast("array<string>")
    return as_table(
        rows.withColumns(
            {
                "per_hour": F.col("epochs") / hours,
                "members_involved": F.coalesce("members_involved", nobody),
                "cause": _cause(),
            }
        ),
        "rebalance_storms",
    )


def _begun(epochs: DataFrame) -> DataFrame:
    return epochs.where("from_timestamp is not null").select(
        "group_id",
        F.col("from_timestamp").alias("at"),
        "from_offset",
        F.coalesce("missing_before", F.lit(0)).alias("missing"),
    )


def _missing_inside() -> Column:
    """Count generations without a record; those before the first epoch were before the storm."""
    return F.sum("missing") - F.min_by("missing", F.struct("at", "from_offset"))


def _hot(begun: DataFrame, storm_epochs: int, storm_minutes: float) -> DataFrame:
    """Return the epochs with which enough have begun, and when the first of these did."""
    reach = round(storm_minutes * _MINUTE)
    lately = (
        Window.partitionBy("group_id").orderBy("micros").rangeBetween(-reach, Window.currentRow)
    )
    before = F.min(F.struct("at", "from_offset", "missing")).over(lately)
    count = F.count(F.lit(1)).over(lately) + F.sum("missing").over(lately)
    return (
        begun.withColumn("micros", F.unix_micros("at"))
        .withColumn("first", before)
        .withColumn("count", count - F.col("first.missing"))
        .where(F.col("count") >= storm_epochs)
        .select("group_id", "at", F.col("first.at").alias("since"))
    )


def _islands(hot: DataFrame) -> DataFrame:
    """Put stretches that overlap together: `group_id`, `from_timestamp`, `to_timestamp`."""
    order = Window.partitionBy("group_id").orderBy("at")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    starts = F.coalesce(F.col("since") > F.lag("at").over(order), F.lit(col=True))
    return (
        hot.withColumn("starts", starts)
        .withColumn("island", F.sum(F.col("starts").cast("int")).over(so_far))
        .groupBy("group_id", "island")
        .agg(F.min("since").alias("from_timestamp"), F.max("at").alias("to_timestamp"))
        .drop("island")
    )


def _who(storms: DataFrame, changes: DataFrame) -> DataFrame:
    """Return who came and went in each storm, and how often."""
    churn = changes.where(F.col("change").isin(*CHURN)).select(
        "group_id", "at", "change", "member_id", "client_id"
    )
    inside = F.col("at").between(F.col("from_timestamp"), F.col("to_timestamp"))
    there = storms.join(churn, "group_id").where(inside)
    key = ("group_id", "from_timestamp")
    clients = (
        there.where("client_id is not null")
        .groupBy(*key, "client_id")
        .agg(F.count(F.lit(1)).alias("changes"))
        .groupBy(*key)
        .agg(F.min_by("client_id", F.struct(-F.col("changes"), "client_id")).alias("top_client_id"))
    )
    counts = (F.count(F.when(F.col("change") == word, 1)).alias(f"times_{word}") for word in CHURN)
    members = F.sort_array(F.collect_set("member_id")).alias("members_involved")
    return there.groupBy(*key).agg(*counts, members).join(clients, list(key), "left")


def _cause() -> Column:
    told = [
        F.when(F.col(f"times_{word}") > 0, F.concat_ws(" ", f"times_{word}", F.lit(text)))
        for word, text in WORDS.items()
    ]
    missing = F.when(
        F.col("missing") > 0,
        F.concat_ws(" ", "missing", F.lit("generations were joined and left no record")),
    )
    words = F.concat_ws(", ", *told, missing)
    nothing = F.lit(
        "no member came or went: topics, assignors or joins again by members themselves"
    )
    return F.when(words == "", nothing).otherwise(words)
