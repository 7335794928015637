"""Decoded tables of a workspace, as far as their records are wanted.

A dump is filtered while it is read; a workspace that holds everything is filtered here, by the
same rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.decode.selection import Selection, is_name, names_wanted
from schemas import record_types

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_GROUPS = ("group", "group_id")
_TOPIC = ("topic",)
_WITH_GROUPS = ("__consumer_offsets", "__share_group_state")


def selected_frames(
    spark: SparkSession,
    frames: Mapping[str, DataFrame],
    selection: Selection,
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
) -> dict[str, DataFrame]:
    """Keep the records that are wanted.

    Args:
        spark: The session.
        frames: Decoded tables by name.
        selection: Of groups, and of topics that offsets are committed for.
        topics: Internal topics that are read; empty is all.
        partitions: Their partitions; empty is all.
    """
    kept = {name: _of_partitions(frame, topics, partitions) for name, frame in frames.items()}
    kept |= _with_names(spark, kept, _GROUPS, selection.groups, selection.exclude_groups)
    kept |= _with_names(spark, kept, _TOPIC, selection.topics, ())
    return kept


def _of_partitions(frame: DataFrame, topics: Sequence[str], partitions: Sequence[int]) -> DataFrame:
    if topics:
        frame = frame.where(F.col("topic").isin(*topics))
    if partitions:
        frame = frame.where(F.col("partition").isin(*partitions))
    return frame


def _with_names(
    spark: SparkSession,
    frames: Mapping[str, DataFrame],
    fields: Sequence[str],
    include: Sequence[str],
    exclude: Sequence[str],
) -> dict[str, DataFrame]:
    """Return the frames whose keys have one of the fields, with the names that are wanted."""
    if not (include or exclude):
        return {}
    named = {
        kind.table: field.column
        for topic in _WITH_GROUPS
        for kind in record_types(topic).values()
        for field in kind.key.fields
        if field.column in fields and kind.table in frames
    }
    if all(is_name(each) for each in (*include, *exclude)):
        return {
            name: frames[name].where(_is_wanted(F.col(f"key.{column}"), include, exclude))
            for name, column in named.items()
        }
    keys = [frames[name].select(f"key.{column}") for name, column in named.items()]
    distinct = reduce(lambda all_, each: all_.union(each), keys).toDF("name").distinct()
    # Patterns are Python's, here as in a dump: each distinct name is matched once, on the driver.
    every = {row["name"] for row in distinct.toLocalIterator()}
    wanted = names_wanted(every, include, exclude, every)
    names = F.broadcast(spark.createDataFrame([(name,) for name in wanted], "name string"))
    return {
        name: frames[name].join(names, F.col(f"key.{column}") == F.col("name"), "left_semi")
        for name, column in named.items()
    }


def _is_wanted(name: Column, include: Sequence[str], exclude: Sequence[str]) -> Column:
    wanted = name.isin(*include) if include else F.lit(True)  # noqa: FBT003 - a literal column
    return wanted & ~name.isin(*exclude) if exclude else wanted
