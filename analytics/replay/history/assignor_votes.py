"""Which assignor a consumer group used in each epoch: the one that most of its members named.

As ``ConsumerGroup.preferredServerAssignor`` has it; `analytics.replay.groups.group_rows` tells
the same of the present.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.groups.coordinator_log import ASSIGNOR
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.epoch_counts import EPOCH_KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LIFE = (*GROUP_KEY, "life")


def with_preferred_assignor(epochs: DataFrame, runs: DataFrame) -> DataFrame:
    """Add `assignor`: what most members that were there at the end of an epoch named, or null.

    Args:
        epochs: `EPOCH_KEY` and more.
        runs: Of `runs`, computed already.
    """
    named = runs.where(F.col("kind") == ASSIGNOR)
    if named.isEmpty():
        return epochs.withColumn("assignor", F.lit(None).cast("string"))
    gone = named.where(F.col("until").isNotNull() & ~F.col("until.is_closing"))
    changes = (
        _changes(named, "at", 1)
        .unionByName(_changes(gone, "until", -1))
        .groupBy(*EPOCH_KEY, "assignor")
        .agg(F.sum("delta").alias("delta"))
    )
    so_far = Window.partitionBy(*_LIFE, "assignor").orderBy("epoch_no")
    votes = F.sum(F.coalesce("delta", F.lit(0))).over(so_far)
    preferred = (
        epochs.select(*EPOCH_KEY)
        .join(changes.select(*_LIFE, "assignor").distinct(), list(_LIFE))
        .join(changes, [*EPOCH_KEY, "assignor"], "left")
        .withColumn("votes", votes)
        .where("votes > 0")
        .groupBy(*EPOCH_KEY)
        .agg(F.max_by("assignor", F.struct("votes", "assignor")).alias("assignor"))
    )
    return epochs.join(preferred, list(EPOCH_KEY), "left")


def _changes(runs: DataFrame, place: str, delta: int) -> DataFrame:
    return runs.select(
        *_LIFE,
        f"{place}.epoch_no",
        F.col("topic").alias("assignor"),
        F.lit(delta).alias("delta"),
    )
