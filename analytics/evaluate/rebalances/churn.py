"""The table `group_churn`: how often each group rebalanced, and who came and went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.evaluate.rebalances.storms import CHURN
from analytics.replay.contract import as_table
from analytics.replay.history.shown_from import NEVER
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import lost_between

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

_HOUR = 3600.0
_SHORTEST = 60.0
"""Seconds: a rate over less says nothing."""


def group_churn(
    rebalances: DataFrame,
    changes: DataFrame,
    storms: DataFrame,
    until: datetime | None,
    coverage: Coverage = WHOLE,
) -> DataFrame:
    """Return the table `group_churn`.

    Args:
        rebalances: The table, as far as the time asked about goes.
        changes: The table `membership_changes`, likewise.
        storms: The table `rebalance_storms`, likewise.
        until: The end of that time; None: when the last epoch of all began.
        coverage: What the dump holds.
    """
    missing = F.coalesce("missing_before", F.lit(0))
    # Those before the first epoch began at a time that nobody knows: they have no part in the rate.
    before_first = F.min_by(missing, F.struct("at", "from_offset"))
    anything = lost_between(coverage, F.lit(-1), F.lit(NEVER))
    counted = rebalances.groupBy("group_id").agg(
        F.max(anything).alias("incomplete_because"),
        F.max_by("group_type", F.struct("life", "from_offset")).alias("group_type"),
        F.count(F.lit(1)).cast("int").alias("epochs"),
        F.sum(missing).cast("int").alias("missing"),
        (F.sum(missing) - before_first).alias("missing_since"),
        F.count(F.when(F.col("missing_is_compacted"), 1)).cast("int").alias("compacted"),
        F.min("at").alias("from_timestamp"),
        F.max("at").alias("to_timestamp"),
        (F.median("since_previous_ms") / 1000).alias("median_seconds_between"),
        F.sum("stored_again").cast("int").alias("stored_again"),
        F.count("coordinator_change").cast("int").alias("coordinator_changes"),
    )
    rows = (
        counted.join(_comings_and_goings(changes), "group_id", "left")
        .join(_top_clients(changes), "group_id", "left")
        .join(
            storms.groupBy("group_id").agg(F.count(F.lit(1)).cast("int").alias("storms")),
            "group_id",
            "left",
        )
    )
    end = F.lit(until) if until is not None else F.col("to_timestamp")
    seconds = (F.unix_micros(end) - F.unix_micros("from_timestamp")) / F.lit(1_000_000.0)
    rate = (F.col("epochs") + F.col("missing_since")) / (seconds / _HOUR)
    numbers = (*CHURN, "storms")
    return as_table(
        rows.withColumns({name: F.coalesce(name, F.lit(0)) for name in numbers})
        .withColumn("per_hour", F.when(seconds >= _SHORTEST, rate))
        .withColumn("complete", F.col("incomplete_because").isNull()),
        "group_churn",
    )


def _comings_and_goings(changes: DataFrame) -> DataFrame:
    return changes.groupBy("group_id").agg(
        *(F.count(F.when(F.col("change") == word, 1)).cast("int").alias(word) for word in CHURN)
    )


def _top_clients(changes: DataFrame) -> DataFrame:
    """Return the client id behind most changes of a group, and how many these are."""
    told = changes.where(F.col("change").isin(*CHURN) & F.col("client_id").isNotNull())
    counted = told.groupBy("group_id", "client_id").agg(
        F.count(F.lit(1)).cast("int").alias("changes")
    )
    first = F.struct(-F.col("changes"), "client_id")
    return counted.groupBy("group_id").agg(
        F.min_by("client_id", first).alias("top_client_id"),
        F.max("changes").alias("top_client_changes"),
    )
