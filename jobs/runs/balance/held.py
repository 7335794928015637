"""What members held in every epoch, which no stored table tells: made of the records by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from analytics.replay.graph import TableStep
from jobs.runs.evaluated import Evaluation, evaluate
from jobs.runs.replay.whole_groups import frame_of

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import DataFrame

    from jobs.cli.console import Console
    from jobs.runs.replay.replayed import Replayed


def held_in_epochs(console: Console, state: Replayed, **options: Any) -> pl.DataFrame:  # noqa: ANN401
    """Return what `cases_of_history` takes as `held`.

    Raises:
        GroupscopeError: Spark is not what it has to be.
    """
    options = {**options, "out": None}
    wanted = Evaluation(
        (TableStep("held_in_epochs", numbered, ("owned",)),), ("held_in_epochs",), {}
    )
    return frame_of(evaluate(console, state, wanted, **options)["held_in_epochs"])


def numbered(runs: DataFrame) -> DataFrame:
    """Return `analytics.replay.history.assignment_intervals` as `cases_of_history` takes them."""
    number = F.col("until.epoch_no")
    last = F.when(F.col("until.is_closing"), number).otherwise(number - 1)
    return runs.where(F.col("until").isNull() | number.isNotNull()).select(
        *("coordinator_partition", "group_id", "life", "member_id", "kind", "role"),
        *("subtopology_id", "topic", "topic_id", "partition"),
        F.col("about.group_instance_id").alias("group_instance_id"),
        F.coalesce("at.epoch_no", F.lit(0)).alias("first_epoch_no"),
        F.when(F.col("until").isNotNull(), last).alias("last_epoch_no"),
    )
