"""The history of offsets without what other tests hold to account: causes and elections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.replay.graph import needed_for, resolve
from analytics.replay.groups.group_records import KINDS
from analytics.replay.history.tables import HISTORY
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.rules import replay_rules
from schemas import table
from tests.support.decoded_frames import frames_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

TABLES = (*KINDS, "offset_commit", "control_markers")
NO_REMOVALS = (
    "coordinator_partition int, group_id string, record_offset bigint, cause string, "
    "confidence string"
)
NO_ELECTIONS = (
    "topic string, partition int, leader_epoch int, unclean boolean, takes_over boolean, "
    "since timestamp"
)


def told_offset_history(
    spark: SparkSession,
    rows: Mapping[str, list[dict[str, Any]]],
    release: str,
    coverage: Coverage = WHOLE,
) -> DataFrame:
    """Return `offset_history` of decoded rows by table, with no removals told and no elections."""
    given = {
        "cut": frames_of(spark, rows, TABLES),
        "topics": spark.createDataFrame([], table("topics").ddl(not_null=False)),
        "rules": replay_rules(release),
        "coverage": coverage,
        "removals": spark.createDataFrame([], NO_REMOVALS),
        "elections": spark.createDataFrame([], NO_ELECTIONS),
    }
    steps = [step for step in needed_for(HISTORY, ["offset_history"]) if step.output not in given]
    history: DataFrame = resolve(steps, given)["offset_history"]
    return history
