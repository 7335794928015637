"""What was known of a group and of who owned a partition, from record to record.

Commits are looked at beside these: both are light rows at offsets of the coordinator's log.
"""

from __future__ import annotations

import polars as pl

from analytics.replay.groups.group_records import CURRENT, GROUP_KEY, STREAMS
from analytics.replay.groups.item_kinds import PENDING, PRESENCE

_ACTIVE = "active"
_KEY = {"coordinator_partition": pl.Int32(), "group_id": pl.String()}
_GROUP = {"family": pl.String(), "epoch": pl.Int32(), "offset": pl.Int64()}
_OWNER = {"member_id": pl.String(), "epoch": pl.Int32()}
MOMENTS = pl.Schema(
    {**_KEY, "position": pl.Int64(), "group": pl.Struct(_GROUP), "joins": pl.Int32()}
)
"""Of `group_moments`."""
OWNERS = pl.Schema(
    {
        **_KEY,
        "topic": pl.String(),
        "partition": pl.Int32(),
        "position": pl.Int64(),
        "owner": pl.Struct(_OWNER),
    }
)
"""Of `owners`."""


def group_moments(steps: pl.DataFrame, intervals: pl.DataFrame) -> pl.DataFrame:
    """Return when groups changed their type, epoch or number of members.

    Args:
        steps: Of `group_incarnations`.
        intervals: Of `assignment_intervals`.

    Returns:
        `MOMENTS`: `position` (offset), `group` (its `family` and `epoch`, both null once the group
        is gone, the epoch while no record tells it, and `offset`; null where neither changed) and
        `joins` (members that came, less those that went).
    """
    lives = ~pl.col("ends")
    group = pl.struct(
        pl.when(lives).then("family").alias("family"),
        pl.when(lives & pl.col("is_epoch")).then("epoch").alias("epoch"),
        "offset",
    )
    told = steps.filter(pl.col("starts") | pl.col("is_epoch") | pl.col("ends")).select(
        *GROUP_KEY,
        pl.col("offset").alias("position"),
        group.alias("group"),
        pl.lit(0, pl.Int32).alias("joins"),
    )
    there = intervals.filter(pl.col("kind") == PRESENCE)
    gone = there.filter(pl.col("until").is_not_null())
    counted = [
        frame.select(
            *GROUP_KEY,
            pl.col(place).struct.field("offset").alias("position"),
            pl.lit(joins, pl.Int32).alias("joins"),
        )
        for place, frame, joins in (("at", there, 1), ("until", gone, -1))
    ]
    return pl.concat([told, *counted], how="diagonal")


def owners(steps: pl.DataFrame, held: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Return when partitions of topics got an owner, its epoch changed, or they lost it.

    What is being given back is owned until it is. The partitions of a streams task are those of the
    source topics of its subtopology.

    Args:
        steps: Of `group_incarnations`.
        held: Of `held_items`; what has no name of a topic cannot be told.
        sources: `GROUP_KEY`, `subtopology_id` and `topic`: what subtopologies read from.

    Returns:
        `OWNERS`: `position` (offset), `owner` (both null where it lost its owner).
    """
    owned = pl.col("kind").is_in([CURRENT, PENDING])
    active = (pl.col("role") == _ACTIVE).fill_null(value=True)
    kept = held.filter(owned & active)
    had = kept.select(
        *GROUP_KEY,
        "family",
        "subtopology_id",
        "topic",
        "partition",
        steps["offset"].gather(kept["at"]).alias("position"),
        pl.struct("member_id", "epoch").alias("owner"),
        _lost_at(steps, kept).alias("lost_at"),
    )
    is_task = pl.col("family") == STREAMS
    tasks = had.filter(is_task).drop("topic").join(sources, on=(*GROUP_KEY, "subtopology_id"))
    told = pl.concat([had.filter(~is_task), tasks], how="diagonal").filter(
        pl.col("topic").is_not_null()
    )
    nobody = pl.struct(pl.lit(None, kind).alias(name) for name, kind in _OWNER.items())
    lost = told.filter(pl.col("lost_at").is_not_null()).with_columns(
        pl.col("lost_at").alias("position"), nobody.alias("owner")
    )
    return pl.concat([told, lost]).select(OWNERS.names())


def _lost_at(steps: pl.DataFrame, held: pl.DataFrame) -> pl.Series:
    """Return the offset where a run ends that a row closes: a snapshot, or the end of the life."""
    offset = steps["offset"]
    ended = offset.gather(steps["ending"].gather(held["at"]))
    here = offset.gather(held["at"])
    ends = pl.DataFrame({"next": offset.gather(held["next"]), "end": ended, "here": here})
    later = pl.when(pl.col("end") > pl.col("here")).then("end")
    return ends.select(pl.when(held["closes"]).then(pl.coalesce("next", later))).to_series()


def source_topics(topologies: pl.DataFrame) -> pl.DataFrame:
    """Return `GROUP_KEY`, `subtopology_id` and `topic`: what subtopologies read from.

    Args:
        topologies: `GROUP_KEY` and `subtopologies`, as decoded.
    """
    parts = topologies.explode("subtopologies", empty_as_null=False, keep_nulls=False)
    told = parts.select(*GROUP_KEY, pl.col("subtopologies").struct.unnest())
    repartitioned = pl.col("repartition_source_topics").list.eval(pl.element().struct.field("name"))
    return (
        told.select(
            *GROUP_KEY,
            "subtopology_id",
            pl.concat_list("source_topics", repartitioned).alias("topic"),
        )
        .explode("topic", empty_as_null=False, keep_nulls=False)
        .unique()
    )
