"""The records of groups gathered from decoded tables, and what is made of them group by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from pyspark.sql import functions as F

from analytics.replay.contract_frame import contract_schema
from analytics.replay.groups.group_records import CLASSIC, GROUP_KEY
from analytics.replay.history.assignment_intervals import INTERVALS
from analytics.replay.history.group_history import (
    OF_GROUPS,
    faults_of,
    group_history,
    intervals_of,
)
from analytics.replay.history.load_faults import TOPICS
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.coverage import Coverage
from analytics.replay.log.group_buckets import Frames, GroupRows, group_rows
from analytics.replay.log.record_position import IN_DUMP
from analytics.replay.log.rules import ReplayRules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OF_STATE: Final = ("kind", "batch_offset", "previous_epoch", "state_ms", "members")
"""Columns of the coordinator's log that history makes nothing of."""
_OF_UNDECODED: Final = ("topic", "offset", "timestamp", "reason", "detail", *IN_DUMP)


def gathered_groups(log: DataFrame, decoded: Decoded) -> GroupRows:
    """Gather the records of groups; several tables are made of them.

    Args:
        log: Of `coordinator_log`, computed already.
        decoded: The decoded tables that it is of.
    """
    home = F.col("partition").alias("coordinator_partition")
    modern = log.where(F.col("family") != CLASSIC).select(*GROUP_KEY).distinct()
    commits = (
        decoded["offset_commit"]
        .where(~F.col("is_tombstone"))
        .select(home, F.col("key.group").alias("group_id"), "offset")
        .join(F.broadcast(modern), list(GROUP_KEY), "left_semi")
    )
    topologies = decoded["streams_group_topology"].select(
        home, "key.group_id", F.col("value.subtopologies").alias("subtopologies")
    )
    frames = {"log": log.drop(*_OF_STATE), "commits": commits, "topologies": topologies}
    return group_rows(frames, {"log": _weight()})


def made_of_groups(
    rows: GroupRows, names: pl.DataFrame, rules: ReplayRules, coverage: Coverage
) -> dict[str, DataFrame]:
    """Return `OF_GROUPS` of all groups."""

    def make(here: Frames) -> Frames:
        return group_history(here, names, rules, coverage)

    return rows.made(make, OF_GROUPS)


def owned(rows: GroupRows, names: pl.DataFrame, rules: ReplayRules) -> DataFrame:
    """Return what members of all groups held, from when to when: of `assignment_intervals`."""
    return rows.made(lambda here: intervals_of(here, names, rules), {"owned": INTERVALS})["owned"]


def load_faults(rows: GroupRows, decoded: Decoded, rules: ReplayRules) -> DataFrame:
    """Return the table `load_faults`."""
    undecoded = (
        decoded["undecoded"]
        .where(F.col("topic").isin(*TOPICS))
        .select(
            F.col("partition").alias("coordinator_partition"),
            F.lit(None).cast("string").alias("group_id"),
            *_OF_UNDECODED,
        )
    )
    schema = {"load_faults": contract_schema("load_faults")}
    with_undecoded = rows.beside({"undecoded": undecoded})
    return with_undecoded.made(lambda here: faults_of(here, rules), schema)["load_faults"]


def _weight() -> Column:
    """Return for how many rows a record of the log counts: each thing that it holds is one."""
    items = F.aggregate(
        "items",
        F.lit(0),
        lambda total, item: total + F.greatest(F.size(item["partitions"]), F.lit(0)),
    )
    return F.coalesce(items, F.lit(0)) + 1
