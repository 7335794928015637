"""Since when share partitions are being initialised, and topics being deleted, in their groups.

Each ``ShareGroupStatePartitionMetadata`` record is the whole picture of its group: something is in
a phase since the first of those records, up to the last, that all name it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.log.arrow_rows import polars_rows
from analytics.replay.log.log_clocks import doubtful_times

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from analytics.replay.log.log_clocks import LogClock

COLUMNS: Final = ("partition", "offset", "timestamp", "is_tombstone", "key", "value")
"""What is needed of the decoded table ``share_group_state_partition_metadata``."""

INITIALIZING: Final = "initializing"
DELETING: Final = "deleting"
PHASES: Final = pl.Schema(
    {
        **dict.fromkeys(("group_id", "topic_id", "topic"), pl.String()),
        "partition": pl.Int32(),
        "phase": pl.String(),
        "phase_since": pl.Datetime("us", "UTC"),
        "is_exact": pl.Boolean(),
        "coordinator_partition": pl.Int32(),
        "record_offset": pl.Int64(),
    }
)
"""Of topics that are being deleted `partition` is null. `record_offset` is the first record of the
phase; `is_exact` is false where the log of the group begins with it."""


def phases(pictures: pa.Table) -> pl.DataFrame:
    """Return what each group initialises and deletes at the instant: `PHASES`.

    Args:
        pictures: `COLUMNS`, cut at the instant.
    """
    if not pictures.num_rows:
        return PHASES.to_frame()
    records = (
        polars_rows(pictures.select(list(COLUMNS)))
        .sort("partition", "offset")
        .with_row_index("place")
        .with_columns(pl.col("key").struct.field("group_id"))
        .with_columns(
            # Groups in the order in which they come, each with its records one after the other.
            group=pl.col("place").min().over("group_id"),
            number=pl.int_range(pl.len()).over("group_id"),
            last=pl.len().cast(pl.Int64).over("group_id") - 1,
        )
        .sort("group", "place")
    )
    return pl.concat([_of_phase(records, phase) for phase in (INITIALIZING, DELETING)])


def parted_by_clock(
    found: pl.DataFrame, clocks: Mapping[int, LogClock]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the phases whose times measure something, and those whose times do not.

    Args:
        found: Of `phases`.
        clocks: By partition of `__consumer_offsets`, where its clocks were set or wrong.
    """
    places = (found[name].to_numpy() for name in ("coordinator_partition", "record_offset"))
    is_set = pl.Series(doubtful_times(clocks, *places), dtype=pl.Boolean)
    return found.filter(~is_set), found.filter(is_set)


def _of_phase(records: pl.DataFrame, phase: str) -> pl.DataFrame:
    """Return what the last record of each group names in a phase, with the first record since."""
    value = records.schema["value"]
    assert isinstance(value, pl.Struct)
    topics = f"{phase}_topics"
    if topics not in {field.name for field in value.fields}:
        return PHASES.to_frame()
    each = pl.col("topics").struct
    partitions = each.field("partitions") if phase == INITIALIZING else pl.lit(None)
    named = (
        records.select(
            *("group_id", "group", "number", "last", "place"),
            topics=pl.col("value").struct.field(topics),
        )
        .filter(pl.col("topics").list.len() > 0)
        .explode("topics")
        .with_columns(
            topic_id=each.field("topic_id"), topic=each.field("topic_name"), partition=partitions
        )
    )
    if phase == INITIALIZING:
        named = named.filter(pl.col("partition").list.len() > 0).explode("partition")
    # Things, too, are in the order in which they come; a record may name one twice.
    named = named.with_columns(pl.col("partition").cast(pl.Int32)).with_row_index("row")
    thing = ["group", "topic_id", "partition"]
    named = named.with_columns(
        topic_place=pl.col("row").min().over("topic_id"),
        partition_place=pl.col("row").min().over("partition"),
    ).unique([*thing, "number"], keep="first", maintain_order=True)
    is_new = (pl.col("number") > pl.col("number").shift(1).over(thing) + 1).fill_null(value=True)
    begun = pl.when(is_new).then("number").forward_fill().over(thing)
    still = named.with_columns(begun=begun).filter(pl.col("number") == pl.col("last"))
    first = records.select(
        "group",
        pl.col("number").alias("begun"),
        phase_since="timestamp",
        coordinator_partition="partition",
        record_offset="offset",
    )
    return (
        still.join(first, ["group", "begun"], "inner")
        .sort("group", "topic_place", "partition_place")
        .with_columns(phase=pl.lit(phase), is_exact=pl.col("begun") > 0)
        .select(pl.col(name).cast(kind) for name, kind in PHASES.items())
    )
