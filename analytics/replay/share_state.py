"""The state of every share partition that the share coordinator held, one row each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.replay.share_fold import KEY, RECORDS, SNAPSHOT, STATES, TOMBSTONE, UPDATE, fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame

EARLY_LAYOUT = "4.0"  # snapshots without times, epochs of 16 bits


def share_states(decoded: Mapping[str, DataFrame]) -> DataFrame:
    """Replay ``share_snapshot`` and ``share_update``, already cut; the columns are `STATES`.

    Only what follows the last snapshot or tombstone of a key can matter, so nothing else is moved;
    the rest is folded in numpy, each internal partition on one task. A caller that makes several
    tables from the result keeps it in memory meanwhile.
    """
    snapshots = _records(
        decoded["share_snapshot"], F.when(F.col("is_tombstone"), TOMBSTONE).otherwise(SNAPSHOT)
    )
    # Brokers never write an update without a value, and could not replay one.
    updates = _records(decoded["share_update"].where("not is_tombstone"), F.lit(UPDATE))
    last = snapshots.groupBy(*KEY).agg(
        F.max("record_offset").alias("last"),
        F.max_by("kind", "record_offset").alias("last_kind"),
    )
    records = (
        snapshots.unionByName(updates)
        .drop("base")
        .join(last, list(KEY), "left")
        .where("last is null or record_offset >= last")
        .withColumn("base", F.when(F.col("last_kind") == SNAPSHOT, F.col("last")))
    )
    # The snapshot says whose it is; the updates behind it need not carry that along.
    is_behind = F.col("base") < F.col("record_offset")
    named = {name: F.when(~F.coalesce(is_behind, F.expr("false")), F.col(name)) for name in KEY[1:]}
    moved = records.withColumns(named).select(*RECORDS.names).repartition(KEY[0])
    return moved.mapInArrow(_fold_all, from_arrow_schema(STATES))


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
