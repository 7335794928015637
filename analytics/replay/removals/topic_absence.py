"""Whether a topic was gone when its offsets went, of which the metadata log may not tell."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.metadata.topics import METADATA_LOG, PARTITION_METADATA
from schemas import ZERO_UUID

if TYPE_CHECKING:
    from analytics.replay.metadata.log_beginning import Beginning


def with_topic_absence(
    removed: pl.DataFrame,
    topics: pl.DataFrame,
    log: Beginning,
    present: Collection[str] | None = None,
) -> pl.DataFrame:
    """Add whether a topic is gone for which no metadata log says when it went.

    Snapshots cut the metadata log: of what was removed before its first record it only tells which
    topics outlived that, and a topic of that name may be another one by then.

    Args:
        removed: Of `removed_offsets`.
        topics: The state table, at the same instant.
        log: How the metadata log begins.
        present: The topics of the data directories in the dump; None where others may be there too.

    Returns:
        The rows with `topic_absent`: false where a metadata log tells of that time or the topic
        under that id is there, null where nothing says. A directory of that name may be of a topic
        that was created again.
    """
    there = _ids(topics.filter(pl.col("source") == PARTITION_METADATA), "ids_there", present or ())
    at_its_start = (pl.col("source") == METADATA_LOG) & pl.col("created_at").is_null()
    outliving = _ids(topics.filter(at_its_start), "ids")
    nothing = pl.lit(None, pl.Boolean)
    is_absent = nothing if present is None else pl.col("ids_there").is_null()
    tells_then = pl.lit(value=log.has_log)
    if log.tells_from is not None:
        tells_then &= pl.col("at") >= pl.lit(log.tells_from)
    named = pl.col("removed_topic_id")
    named = pl.when(named != ZERO_UUID).then(named)
    is_another = pl.when(named.is_not_null() & (pl.col("ids_there").list.len() > 0)).then(
        ~pl.col("ids_there").list.contains(named)
    )
    without_log = pl.when(pl.col("ids_there").is_not_null()).then(is_another).otherwise(is_absent)
    # Whether it was gone when the log began; null where names hide it.
    went_before = (
        pl.when(pl.col("ids").is_null())
        .then(pl.lit(value=True))
        .when(named.is_not_null())
        .then(~pl.col("ids").list.contains(named))
    )
    told = (
        pl.when(tells_then.fill_null(value=False))
        .then(pl.lit(value=False))
        .otherwise(went_before if log.has_log else without_log)
    )
    return (
        removed.join(there, on="topic", how="left")
        .join(outliving, on="topic", how="left")
        .with_columns(told.alias("topic_absent"))
        .drop("ids_there", "ids")
    )


def _ids(topics: pl.DataFrame, name: str, unnamed: Collection[str] = ()) -> pl.DataFrame:
    """Return by topic the ids that are known of it, none perhaps."""
    bare = pl.DataFrame(
        {"topic": sorted(unnamed), "topic_id": None},
        schema={"topic": pl.String, "topic_id": pl.String},
    )
    return (
        pl.concat([topics.select("topic", "topic_id"), bare])
        .group_by("topic")
        .agg(pl.col("topic_id").drop_nulls().unique().alias(name))
    )
