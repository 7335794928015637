"""Topics by name and id, one row per life of a name, from every source that knows some.

Records name a topic by its id alone where members held it or a group depends on it: `topic_names`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame, uuid
from analytics.replay.history.partition_history import broker_starts
from analytics.replay.log.topic_homes import NOT_SEEN, Era
from analytics.replay.metadata_log import CERTAIN

if TYPE_CHECKING:
    from analytics.replay.log.log_times import Decoded
    from analytics.replay.metadata_log import MetadataLog


# How many partitions an internal topic had in which era, from the metadata log.
#
# Partitions that are added later have records of their own. Coordinators go by the number that
# their broker knew when it was started, so the era of a new number begins when every broker has
# registered anew after it.


def partition_eras(log: MetadataLog, topic: str) -> tuple[Era, ...]:
    """Return the eras of a topic; none where the log does not name it.

    Args:
        log: The metadata log, up to its end.
        topic: The internal topic.
    """
    counts = _counts(log, topic)
    if counts.is_empty():
        return ()
    starts = broker_starts(log)
    eras: list[Era] = []
    for at, since, number in counts.iter_rows():
        first: datetime | None = None
        if eras:
            eras[-1] = Era(eras[-1].partitions, eras[-1].first, since)
            first = _all_started_after(log, starts, at)
        eras.append(Era(number, first))
    return tuple(eras)


def _counts(log: MetadataLog, topic: str) -> pl.DataFrame:
    """Return `at`, `since` and the number of partitions: when the topic was made, and altered."""
    value = pl.col("value").struct
    named = log.visible("topic_record").select(value.field("name"), value.field("topic_id"), "at")
    ids = named.filter(pl.col("name") == topic).sort("at")["topic_id"]
    if ids.is_empty():
        return pl.DataFrame(schema={"at": pl.Int64, "since": pl.Datetime, "number": pl.Int64})
    made = (
        log.visible("partition_record")
        .select(value.field("topic_id"), value.field("partition_id"), "at", "since")
        .filter(pl.col("topic_id") == ids[-1])
        .sort("at")
        .unique("partition_id", keep="first", maintain_order=True)
    )
    # What is made at once has records one behind the other, and a snapshot tells all at once.
    is_later = (pl.col("at") - pl.col("at").shift(1)).fill_null(0) > 1
    return (
        made.with_row_index("nth")
        .group_by(is_later.cum_sum().alias("act"), maintain_order=True)
        .agg(pl.col("at").max(), pl.col("since").min(), (pl.col("nth").max() + 1).alias("number"))
        .select("at", "since", "number")
    )


def _all_started_after(log: MetadataLog, starts: pl.DataFrame, at: int) -> datetime:
    """Return when the last broker was started after a record; `NOT_SEEN` while one was not."""
    value = pl.col("value").struct
    brokers = log.visible("register_broker_record").select(value.field("broker_id").alias("leader"))
    gone = log.visible("unregister_broker_record").select(value.field("broker_id").alias("leader"))
    first = (
        brokers.unique()
        .join(gone, on="leader", how="anti")
        .join(
            starts.filter(pl.col("at") > at).group_by("leader").agg(pl.col("since").min()),
            on="leader",
            how="left",
        )["since"]
    )
    found = None if first.null_count() or first.is_empty() else first.max()
    return found if isinstance(found, datetime) else NOT_SEEN


UNKNOWN_NAME: Final = "<UNKNOWN>"
"""What a broker writes into share state metadata for an id that it cannot name."""

NAMING: Final = (
    ("consumer_group_partition_metadata", "topics"),
    ("share_group_partition_metadata", "topics"),
    ("share_group_state_partition_metadata", "initializing_topics"),
    ("share_group_state_partition_metadata", "initialized_topics"),
    ("share_group_state_partition_metadata", "deleting_topics"),
)
"""Lists, by table, that have names and ids side by side."""
METADATA_LOG, PARTITION_METADATA = "metadata_log", "partition_metadata"
SNAPSHOT, SIDE_FILE, RECORD = "snapshot", "side_file", "record"
SOURCES = (METADATA_LOG, PARTITION_METADATA, SNAPSHOT, SIDE_FILE, RECORD)
"""Best first."""


def topics(log: MetadataLog, others: Sequence[pl.DataFrame], named: pl.DataFrame) -> pl.DataFrame:
    """Return the table `topics`.

    Args:
        log: The metadata log at an instant.
        others: Further sources: `topic`, `topic_id` (null where not known), `partitions` (null
            where not known) and `source`.
        named: Of `named_in_records`, of all records.
    """
    of_records = named.unique().with_columns(pl.lit(RECORD).alias("source"))
    told = pl.concat([_from_metadata_log(log), *others, of_records], how="diagonal")
    # An id is removed once; where a log says it again, the first time counts.
    removed = (
        log.logged("remove_topic_record")
        .group_by(pl.col("value").struct.field("topic_id"))
        .agg(pl.col("since").min().alias("deleted_at"))
    )
    ids = told.filter(pl.col("topic_id").is_not_null())
    # A name without an id adds nothing where some source gives it one.
    bare = told.filter(pl.col("topic_id").is_null()).join(ids, on="topic", how="anti")
    # A lesser source is asked only for a number of partitions that no better one has.
    best = (
        pl.concat([ids, bare])
        .sort(pl.col("source").cast(pl.Enum(SOURCES)), maintain_order=True)
        .group_by("topic", "topic_id")
        .agg(
            pl.col("created_at", "source").first(),
            pl.col("partitions").drop_nulls().first(),
        )
    )
    rows = best.join(removed, on="topic_id", how="left")
    return contract_frame(rows.with_columns(CERTAIN), "topics")


def named_in_records(decoded: Decoded) -> pl.DataFrame:
    """Return `topic` and `topic_id` that records of groups carry side by side, each pair once.

    Args:
        decoded: Of any records: `offset_commit` and the tables of `NAMING`.
    """
    name, topic_id = (pl.element().struct.field(each) for each in ("topic_name", "topic_id"))
    pairs = [
        decoded["offset_commit"]
        .select(pl.col("value").struct.field("topic_id"), pl.col("key").struct.field("topic"))
        .drop_nulls("topic_id")
        .select("topic", "topic_id")
        .unique()
    ]
    for table, column in NAMING:
        listed = pl.col("value").struct.field(column)
        pairs.append(
            decoded[table]
            .select(listed.list.eval(name).alias("topic"), listed.list.eval(topic_id))
            .rename({column: "topic_id"})
            .explode("topic", "topic_id")
            .unique()
        )
    is_one = (pl.col("topic") != UNKNOWN_NAME) & uuid(pl.col("topic_id")).is_not_null()
    return pl.concat(pairs).filter(is_one).unique()


def named_topics(topics: pl.DataFrame) -> pl.DataFrame:
    """Return `topic_id` and `topic`, each pair once, of the table `topics`."""
    return topics.select("topic_id", "topic").drop_nulls("topic_id").unique()


def topic_names(named: pl.DataFrame) -> pl.DataFrame:
    """Return `topic_id` and `name`, each id once.

    Args:
        named: Of `named_topics`.
    """
    return named.group_by("topic_id").agg(pl.col("topic").max().alias("name"))


def _from_metadata_log(log: MetadataLog) -> pl.DataFrame:
    value = pl.col("value").struct
    created = (
        _visible_and_logged(log, "topic_record")
        .group_by(value.field("name").alias("topic"), value.field("topic_id"))
        .agg(pl.col("since").min().alias("created_at"))
    )
    counted = (
        _visible_and_logged(log, "partition_record")
        .group_by(value.field("topic_id"))
        .agg(value.field("partition_id").n_unique().cast(pl.Int32).alias("partitions"))
    )
    return created.join(counted, on="topic_id", how="left").with_columns(
        pl.lit(METADATA_LOG).alias("source")
    )


def _visible_and_logged(log: MetadataLog, name: str) -> pl.DataFrame:
    return pl.concat([log.visible(name), log.logged(name)])
