"""The state of every share partition that the share coordinator held, one row each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.replay.share_fold import fold
from analytics.replay.share_records import (
    KEY,
    RECORDS,
    SNAPSHOT,
    STATES,
    TOMBSTONE,
    UNCHANGED,
    UPDATE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame

EARLY_LAYOUT = "4.0"  # snapshots without times, epochs of 16 bits

_TOLD = ("updates", "mismatches")


def share_states(decoded: Mapping[str, DataFrame]) -> DataFrame:
    """Replay ``share_snapshot`` and ``share_update``, already cut; the columns are `STATES`.

    Only what follows the last snapshot or tombstone of a key can matter, and of it no ranges that
    a later start offset cut away: nothing else is moved. The rest is folded in numpy, each internal
    partition on one task. A caller that makes several tables from the result keeps it in memory
    meanwhile.
    """
    snapshots = _records(
        decoded["share_snapshot"], F.when(F.col("is_tombstone"), TOMBSTONE).otherwise(SNAPSHOT)
    )
    # Brokers never write an update without a value, and could not replay one.
    updates = _records(decoded["share_update"].where("not is_tombstone"), F.lit(UPDATE))
    last = snapshots.groupBy(*KEY).agg(
        F.max("record_offset").alias("last"),
        F.max_by("kind", "record_offset").alias("last_kind"),
        F.max_by("snapshot_epoch", "record_offset").alias("epoch"),
    )
    heads = snapshots.drop("base", *_TOLD).join(last, list(KEY)).where("record_offset = last")
    heads = heads.withColumn("base", F.when(F.col("last_kind") == SNAPSHOT, F.col("last")))
    heads = heads.withColumns(dict.fromkeys(_TOLD, F.lit(None).cast("long")))
    records = heads.select(*RECORDS.names).unionByName(_living(updates, _behind(updates, last)))
    return records.repartition(KEY[0]).mapInArrow(_fold_all, from_arrow_schema(STATES))


def _behind(updates: DataFrame, last: DataFrame) -> DataFrame:
    """Tell of each key with updates behind its last snapshot or tombstone what they add up to.

    Columns: the key; ``last`` and ``base``, null where there is none; ``updates`` and
    ``mismatches``, how many there are and how many name another snapshot epoch; ``led_at``, the
    offset of the last that sets a leader epoch; ``cut`` and ``cut_at``, the greatest start offset
    and a record that sets it. ``cut_at`` is null where some record leaves the start offset
    unchanged, so that the one before it is in force, or where there is no snapshot before them.
    """
    offset, start = F.col("record_offset"), F.col("start_offset")
    base = F.when(F.col("last_kind") == SNAPSHOT, F.col("last"))
    is_other = ~F.col("snapshot_epoch").eqNullSafe(F.col("epoch"))
    sets_start = F.coalesce(start != UNCHANGED, F.expr("false"))
    return (
        updates.drop("state_batches", "base", *_TOLD)
        .join(last, list(KEY), "left")
        .where("last is null or record_offset > last")
        .groupBy(*KEY)
        .agg(
            F.max("last").alias("last"),
            F.max(base).alias("base"),
            F.count("*").alias("updates"),
            F.count_if(is_other).alias("mismatches"),
            F.max(F.when(F.col("leader_epoch") != UNCHANGED, offset)).alias("led_at"),
            F.max(start).alias("cut"),
            F.max_by(offset, start).alias("cut_at"),
            F.bool_and(sets_start).alias("sets_start"),
        )
        .withColumn("cut_at", F.when(F.expr("sets_start and base is not null"), F.col("cut_at")))
    )


def _living(updates: DataFrame, behind: DataFrame) -> DataFrame:
    """Return the updates that the states cannot be told without; the columns are `RECORDS`."""
    offset = F.col("record_offset")
    farthest = F.coalesce(F.array_max("state_batches.last_offset"), F.col("cut") - 1)
    # Up to the record that cut farthest all ranges below that are gone, and nothing else of a
    # record lasts but the last leader epoch.
    is_cut_away = (offset < F.col("cut_at")) & (farthest < F.col("cut"))
    is_cut_away &= ~offset.eqNullSafe(F.col("led_at"))
    told = {name: F.when(offset == F.col("cut_at"), F.col(f"all.{name}")) for name in _TOLD}
    # The snapshot says whose it is; the updates behind it need not carry that along.
    named = {name: F.when(F.col("base").isNull(), F.col(name)) for name in KEY[1:]}
    return (
        updates.drop("base", *_TOLD)
        # A row for each share partition; Spark would take the updates to be smaller.
        .join(F.broadcast(behind.alias("all")), list(KEY))
        .where("last is null or record_offset > last")
        .where(~F.coalesce(is_cut_away, F.expr("false")))
        .withColumns(told | named)
        .select(*RECORDS.names)
    )


def _fold_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fold what one task holds: whole internal partitions."""
    held = list(batches)
    if held:
        yield from fold(pa.Table.from_batches(held)).to_batches()


def _records(frame: DataFrame, kind: Column) -> DataFrame:
    value = frame.select("value.*").columns
    given = {
        "coordinator_partition": F.col("partition"),
        "group_id": F.col("key.group_id"),
        "topic_id": F.col("key.topic_id"),
        "partition": F.col("key.partition"),
        "record_offset": F.col("offset"),
        "kind": kind.cast("tinyint"),
        "is_early_layout": F.col("value_layout").eqNullSafe(EARLY_LAYOUT),
    }
    types = {field.name: field.dataType for field in from_arrow_schema(RECORDS)}
    columns = []
    for name in RECORDS.names:
        column = given.get(name)
        if column is None:
            column = F.col(f"value.{name}") if name in value else F.lit(None)
        columns.append(column.cast(types[name]).alias(name))
    return frame.select(*columns)
