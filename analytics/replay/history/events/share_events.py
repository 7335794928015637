"""Events of share partitions: initialised, altered, snapshots, records archived, deleted."""

from __future__ import annotations

import polars as pl

from analytics.replay.history.events.event_frames import (
    event_rows,
    first_word,
    with_word,
    words,
)
from analytics.replay.history.neighbours import at, in_order, last_before
from analytics.replay.history.share_partition_epochs import KEY, SNAPSHOT, TOMBSTONE, UPDATE
from schemas import SHARE_GROUP_STATE


def share_events(epochs: pl.DataFrame, archived: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Return share_initialized, _offset_altered, _snapshot, _archived and _deleted.

    Args:
        epochs: The table `share_partition_epochs`.
        archived: Updates that archive records: `KEY`, `record_offset`, `at`, where the record lies,
            and `archived`: the `first_offset` and `last_offset` of each range.
        names: Of topics: `topic_id` and `name`, each id once.
    """
    return pl.concat([_of_epochs(epochs), _archived(archived, names)])


def _of_epochs(epochs: pl.DataFrame) -> pl.DataFrame:
    told = in_order(epochs, KEY, "record_offset").with_columns(
        last_before(pl.col("kind") != UPDATE).alias("before")
    )
    kind = pl.col("kind")
    begins = pl.col("before").is_null() | (at("before", "kind") == TOMBSTONE)
    renewed = pl.col("state_epoch") > at("before", "state_epoch")
    event = first_word(
        {
            "share_deleted": kind == TOMBSTONE,
            "share_initialized": (kind == SNAPSHOT) & begins & (pl.col("snapshot_epoch") == 0),
            "share_offset_altered": (kind == SNAPSHOT) & renewed,
            "share_snapshot": kind == SNAPSHOT,
        }
    )
    detail = words(
        with_word("start offset ", pl.col("start_offset")),
        with_word("state epoch ", pl.col("state_epoch")),
        with_word("snapshot ", pl.col("snapshot_epoch")),
        pl.when("cold").then(pl.lit("idle")),
        between="; ",
    )
    # Times are in the records, not in the table: a snapshot says when it was written.
    rows = told.with_columns(
        event.alias("event"),
        _partition_name(),
        detail.alias("detail"),
        pl.col("coordinator_epoch").alias("leader_epoch"),
    )
    return event_rows(rows, SHARE_GROUP_STATE)


def _archived(archived: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    first, last = (
        pl.col("archived").list.eval(pl.element().struct.field(f"{each}_offset"))
        for each in ("first", "last")
    )
    count = last.list.sum() - first.list.sum() + first.list.len()
    detail = words(count, " records from ", first.list.min(), " to ", last.list.max())
    rows = archived.join(names, on="topic_id", how="left").with_columns(
        pl.lit("share_archived").alias("event"), detail.alias("detail")
    )
    named = rows.rename({"name": "topic"}).with_columns(_partition_name())
    return event_rows(named, SHARE_GROUP_STATE)


def _partition_name() -> pl.Expr:
    return words(pl.col("topic"), pl.col("partition"), between="-").alias("subject")
