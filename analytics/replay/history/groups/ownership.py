"""What was known of a group and of who owned a partition, from record to record.

Commits are looked at beside these: both are light rows at offsets of the coordinator's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.groups.group_records import CURRENT, GROUP_KEY, STREAMS
from analytics.replay.groups.item_kinds import PENDING, PRESENCE

if TYPE_CHECKING:
    from analytics.replay.history.groups.held_items import Held

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


def group_moments(held: Held) -> pl.DataFrame:
    """Return when groups changed their type, epoch or number of members.

    Args:
        held: Of `held_items`.

    Returns:
        `MOMENTS`: `position` (offset), `group` (its `family` and `epoch`, both null once the group
        is gone, the epoch while no record tells it, and `offset`; null where neither changed) and
        `joins` (members that came, less those that went).
    """
    starts, ends, is_epoch = (pl.col(name) for name in ("starts", "ends", "is_epoch"))
    group = pl.struct(
        pl.when(~ends).then("family").alias("family"),
        pl.when(~ends & is_epoch).then("epoch").alias("epoch"),
        "offset",
    )
    told = (
        held.steps.select(*GROUP_KEY, "offset", "family", "epoch", starts, ends, is_epoch)
        .filter(starts | ends | is_epoch)
        .select(
            *GROUP_KEY,
            pl.col("offset").alias("position"),
            group.alias("group"),
            pl.lit(0, pl.Int32).alias("joins"),
        )
    )
    there = held.runs.select("kind", "at", "until").filter(pl.col("kind") == PRESENCE)
    counted = (
        pl.DataFrame(held.columns_at(rows, *GROUP_KEY, "offset")).with_columns(
            joins=pl.lit(joins, pl.Int32)
        )
        for rows, joins in ((there["at"], 1), (there["until"].drop_nulls(), -1))
    )
    moved = pl.concat(counted).rename({"offset": "position"})
    return pl.concat([told, moved], how="diagonal")


def owners(held: Held, sources: pl.DataFrame) -> pl.DataFrame:
    """Return when partitions of topics got an owner, its epoch changed, or they lost it.

    What is being given back is owned until it is. The partitions of a streams task are those of the
    source topics of its subtopology.

    Args:
        held: Of `held_items`; what has no name of a topic cannot be told.
        sources: `GROUP_KEY`, `subtopology_id` and `topic`: what subtopologies read from.

    Returns:
        `OWNERS`: `position` (offset), `owner` (both null where it lost its owner).
    """
    nobody = pl.struct(pl.lit(None, kind).alias(name) for name, kind in _OWNER.items())
    had = _owned(held, held.rows, "at", pl.struct("member_id", "epoch"))
    lost = _owned(held, held.runs.filter(pl.col("until").is_not_null()), "until", nobody)
    return pl.concat(
        _with_sources(owned, sources).filter(pl.col("topic").is_not_null()).select(OWNERS.names())
        for owned in (had, lost)
    )


def _owned(held: Held, rows: pl.DataFrame, place: str, owner: pl.Expr) -> pl.DataFrame:
    """Return of which partitions and tasks something is told in some of `rows` or `runs`."""
    is_active = (pl.col("role") == _ACTIVE).fill_null(value=True)
    owned = pl.col("kind").is_in([CURRENT, PENDING]) & is_active
    kept = rows.filter(held.items.select(owned.gather(rows["entry"])).to_series())
    position, *key = held.columns_at(kept[place], "offset", *GROUP_KEY)
    return pl.DataFrame(
        [
            *key,
            *held.columns_at(kept["at"], "family", "epoch"),
            *held.named(kept, "member_id", "subtopology_id", "topic"),
            kept["partition"],
            position.alias("position"),
        ]
    ).with_columns(owner.alias("owner"))


def _with_sources(owned: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Turn tasks into the partitions of what their subtopologies read from."""
    is_task = pl.col("family") == STREAMS
    tasks = owned.filter(is_task).drop("topic")
    if tasks.is_empty():
        return owned
    of_sources = tasks.join(sources, on=(*GROUP_KEY, "subtopology_id"))
    return pl.concat([owned.filter(~is_task), of_sources], how="diagonal")


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
