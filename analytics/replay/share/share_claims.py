"""Which share partitions the groups claim (``ShareGroupStatePartitionMetadata``).

Each such record is the whole picture of its group, not a change. 4.0 never writes one: there a
share group that lives is all the claim there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.replay.log.as_of import Decoded

INITIALIZED, INITIALIZING, DELETING, ORPHAN = "initialized", "initializing", "deleting", "orphan"
UNKNOWN: Final = "unknown"
PICTURED, LIVING = "pictured", "living"
"""Claims of a group as a whole: it had pictures written; its last metadata are there."""
CLAIMS: Final = pl.Schema(
    {
        "group_id": pl.String(),
        "topic_id": pl.String(),
        "partition": pl.Int32(),
        "claim": pl.String(),
        "record_offset": pl.Int64(),
    }
)
"""What groups say. `topic_id` is null of a group as a whole; `partition` also of topics."""

_PICTURES, _METADATA = "share_group_state_partition_metadata", "share_group_metadata"


def claims_of(decoded: Decoded) -> pl.DataFrame:
    """Return what whole groups claim; the columns are `CLAIMS`.

    `initialized` and `initializing` are of partitions, `deleting` is of topics. `pictured` has
    the offset of the last record of a group's picture, be it a tombstone.
    """
    pictures, living = _last_records(decoded[_PICTURES]), _last_records(decoded[_METADATA])
    told = pictures.filter(~pl.col("is_tombstone")).unnest("value")
    rows = [
        pictures.with_columns(claim=pl.lit(PICTURED)),
        living.filter(~pl.col("is_tombstone")).with_columns(claim=pl.lit(LIVING)),
        _partitions(told, INITIALIZED),
        _partitions(told, INITIALIZING),
        _topics(told, DELETING),
    ]
    return pl.concat(
        frame.select(
            (pl.col(name) if name in frame.columns else pl.lit(None)).cast(type_).alias(name)
            for name, type_ in CLAIMS.items()
        )
        for frame in rows
    )


def merged_claims(claims: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the claims of all groups, from those of buckets of whole groups."""
    return pl.concat(claims)


def claimed_partitions(claims: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id`, `topic_id`, `partition` and `claim`: initialized or initializing."""
    claimed = claims.filter(pl.col("claim").is_in([INITIALIZED, INITIALIZING]))
    # A partition in both has its state already; "initialized" comes first.
    return claimed.group_by("group_id", "topic_id", "partition").agg(pl.col("claim").min())


def deleted_topics(claims: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id` and `topic_id` of topics whose state is being deleted."""
    return claims.filter(pl.col("claim") == DELETING).select("group_id", "topic_id").unique()


def early_groups(claims: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id` of share groups that live and never had a picture written."""
    living = claims.filter(pl.col("claim") == LIVING).select("group_id").unique()
    return living.join(pictured_groups(claims), on="group_id", how="anti")


def pictured_groups(claims: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id` and `pictured_at`, the offset of the last record of its picture."""
    pictured = claims.filter(pl.col("claim") == PICTURED)
    return pictured.group_by("group_id").agg(pl.col("record_offset").max().alias("pictured_at"))


def _last_records(records: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id`, `record_offset`, `is_tombstone` and `value` of each group's last one."""
    named = records.select(
        pl.col("key").struct.field("group_id"),
        pl.col("offset").alias("record_offset"),
        "partition",
        "is_tombstone",
        "value",
    )
    last = named.sort("record_offset").unique(["partition", "group_id"], keep="last")
    return last.drop("partition")


def _partitions(claims: pl.DataFrame, claim: str) -> pl.DataFrame:
    listed = pl.col("topic").struct.field("partitions").alias("partition")
    rows = _topics(claims, claim).with_columns(listed).explode("partition")
    return rows.drop_nulls("partition")


def _topics(claims: pl.DataFrame, claim: str) -> pl.DataFrame:
    """Return the topics of one kind of claim, as `topic` and by their ids."""
    topics = claims.select("group_id", pl.col(f"{claim}_topics").alias("topic")).explode("topic")
    topic_id = pl.col("topic").struct.field("topic_id")
    return topics.drop_nulls("topic").with_columns(topic_id, claim=pl.lit(claim))
