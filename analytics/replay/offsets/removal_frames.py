"""The causes of offset tombstones of decoded tables on Spark: whole groups handed to polars."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    GROUP,
    KINDS,
    MEMBER,
    STREAMS,
    TOPOLOGY,
    table_name,
)
from analytics.replay.log.arrow_rows import arrow_rows, arrow_schema, polars_rows
from analytics.replay.log.group_buckets import group_rows
from analytics.replay.metadata.visible_records import FIRST_TABLES, beginning
from analytics.replay.offsets.commit_rows import COMMITS, MARKERS
from analytics.replay.offsets.effective_commits import ended_commits
from analytics.replay.removals.causes_in_history import (
    CAUSES,
    REMOVED,
    causes_in_history,
    removed_and_times,
)
from analytics.replay.removals.removed_offsets import SAID_TIMES
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import Column, DataFrame

    from analytics.replay.log.as_of import Decoded
    from analytics.replay.log.coverage import Coverage
    from analytics.replay.log.group_buckets import Frames
    from analytics.replay.log.rules import ReplayRules
    from analytics.replay.metadata.visible_records import Beginning

_MADE = {"removed": REMOVED, "said": SAID_TIMES}
_SAYING = (
    table_name(CLASSIC, GROUP),
    table_name(CONSUMER, MEMBER),
    "consumer_group_regular_expression",
    table_name(STREAMS, MEMBER),
    table_name(STREAMS, TOPOLOGY),
)
"""The tables of whose records more matters than that they are there."""
_PLACE = ("partition", "offset", "timestamp", "is_tombstone")


def removals(
    decoded: Decoded,
    commits: Mapping[str, DataFrame],
    topics: DataFrame,
    rules: ReplayRules,
    coverage: Coverage,
) -> DataFrame:
    """Return why offsets were deleted: `CAUSES`.

    Args:
        decoded: Decoded tables, cut at an instant.
        commits: Of `commit_frames`.
        topics: The state table at that instant.
        rules: Of the release.
        coverage: What the dump holds.
    """
    spark = topics.sparkSession
    gone = commits["commits"].where("is_tombstone")
    if gone.isEmpty():
        return spark.createDataFrame([], from_arrow_schema(arrow_schema(CAUSES)))
    rows = group_rows({**commits, **_of_groups(decoded)})
    timeless = None
    if rows.here is None:
        without = gone.where("committed_at is null").select("coordinator_partition").distinct()
        timeless = [partition for (partition,) in without.collect()]
    make = partial(_removed, rules=rules, timeless=timeless)
    made = rows.brought(make, _MADE)
    causes = causes_in_history(
        made["removed"],
        made["said"],
        polars_rows(topics.toArrow()),
        _beginning(decoded),
        rules,
        present=coverage.data_topics,
        coverage=coverage,
    )
    told = arrow_rows(causes)
    return spark.createDataFrame(told if len(told) else [], from_arrow_schema(told.schema))


def _of_groups(decoded: Decoded) -> dict[str, DataFrame]:
    """Return the records of groups: those that say more one by one, the others as `others`."""
    told = {name: decoded[name].select(*_names(name), *_PLACE, "key", "value") for name in _SAYING}
    others = [
        decoded[name].select(*_names(name), *_PLACE, F.lit(name).alias("table"))
        for name in KINDS
        if name not in _SAYING
    ]
    return {**told, "others": union_all(others)}


def _names(name: str) -> list[Column]:
    group = "key.group" if KINDS[name].family == CLASSIC else "key.group_id"
    return [F.col("partition").alias("coordinator_partition"), F.col(group).alias("group_id")]


def _removed(
    rows: Frames, rules: ReplayRules, timeless: Collection[int] | None
) -> dict[str, pl.DataFrame]:
    commits, markers = rows["commits"].select(COMMITS.names()), rows["markers"]
    ended = ended_commits(commits, markers.select(MARKERS.names()), rules)
    others = rows["others"].with_columns(pl.struct("group_id").alias("key"))
    decoded = {
        name: rows[name] if name in _SAYING else others.filter(pl.col("table") == name)
        for name in KINDS
    }
    removed, said = removed_and_times(ended, decoded, rules, timeless)
    return {"removed": removed, "said": said}


def _beginning(decoded: Decoded) -> Beginning:
    columns = ("topic", "offset", "segment", "timestamp")
    return beginning(
        {name: polars_rows(decoded[name].select(*columns).toArrow()) for name in FIRST_TABLES}
    )
