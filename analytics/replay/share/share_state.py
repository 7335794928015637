"""The state of every share partition that the share coordinator held, one row each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.replay.share.share_fold import fold
from analytics.replay.share.share_records import (
    KEY,
    RECORDS,
    SNAPSHOT,
    STATES,
    TOMBSTONE,
    UNCHANGED,
    UPDATE,
)
from analytics.spark_worker import on_worker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

EARLY_LAYOUT = "4.0"  # snapshots without times, epochs of 16 bits

_TOLD = ("updates", "mismatches")
_ADDED = ("base", *_TOLD)


def share_states(decoded: Mapping[str, DataFrame], epoch_without_snapshot: int = 0) -> DataFrame:
    """Replay ``share_snapshot`` and ``share_update``, already cut; the columns are `STATES`.

    Only what follows the last snapshot or tombstone of a key can matter, and of it no ranges that
    a later start offset cut away: nothing else is moved. The rest is folded in numpy, each internal
    partition on one task. A caller that makes several tables from the result keeps it in memory
    meanwhile.

    Args:
        decoded: Cut at an instant.
        epoch_without_snapshot: The state epoch where there are only updates, which name none.
    """
    kind = f"if(is_tombstone, {TOMBSTONE}, {SNAPSHOT})"
    snapshots = _records(decoded["share_snapshot"], kind)
    # Brokers never write an update without a value, and could not replay one.
    updates = _records(decoded["share_update"].where("not is_tombstone"), str(UPDATE))
    # No key lacks a part. Spark says so to itself where it joins, and takes two queries for what is
    # one unless it is said everywhere.
    heads = _heads(snapshots.where(" and ".join(f"{name} is not null" for name in KEY)))
    records = heads.unionByName(_living(updates, _behind(updates, heads)))
    states = records.repartition(KEY[0]).mapInArrow(_fold_all, from_arrow_schema(STATES))
    epoch = F.expr(f"if(has_snapshot, state_epoch, {epoch_without_snapshot})")
    return states.withColumn("state_epoch", epoch)


def _heads(snapshots: DataFrame) -> DataFrame:
    """Return the last snapshot or tombstone of each key; the columns are `RECORDS`."""
    others = ", ".join(name for name in RECORDS.names if name not in {*KEY, *_ADDED})
    head = F.expr(f"max_by(struct({others}), record_offset)").alias("head")
    base = f"if(kind = {SNAPSHOT}, record_offset, null) as base"
    found = snapshots.groupBy(*KEY).agg(head).select(*KEY, "head.*")
    return found.selectExpr("*", base, *(f"cast(null as long) as {name}" for name in _TOLD))


def _behind(updates: DataFrame, heads: DataFrame) -> DataFrame:
    """Tell of each key with updates behind its last snapshot or tombstone what they add up to.

    Columns: the key; ``last`` and ``base``, null where there is none; ``updates`` and
    ``mismatches``, how many there are and how many name another snapshot epoch; ``led_at``, the
    offset of the last that sets a leader epoch; ``cut`` and ``cut_at``, the greatest start offset
    and a record that sets it. ``cut_at`` is null where some record leaves the start offset
    unchanged, so that the one before it is in force, or where there is no snapshot before them.
    """
    unset = f"start_offset <=> {UNCHANGED} or start_offset is null"
    is_cut = f"count_if({unset}) = 0 and max(base) is not null"
    last = heads.selectExpr(*KEY, "record_offset as last", "base", "snapshot_epoch as epoch")
    return (
        updates.select(*KEY, "record_offset", "snapshot_epoch", "leader_epoch", "start_offset")
        .join(last, list(KEY), "left")
        .where("last is null or record_offset > last")
        .groupBy(*KEY)
        .agg(
            F.expr("max(last) as last"),
            F.expr("max(base) as base"),
            F.expr("count(*) as updates"),
            F.expr("count_if(not snapshot_epoch <=> epoch) as mismatches"),
            F.expr(f"max(if(leader_epoch != {UNCHANGED}, record_offset, null)) as led_at"),
            F.expr("max(start_offset) as cut"),
            F.expr(f"if({is_cut}, max_by(record_offset, start_offset), null) as cut_at"),
        )
    )


def _living(updates: DataFrame, behind: DataFrame) -> DataFrame:
    """Return the updates that the states cannot be told without; the columns are `RECORDS`."""
    # Up to the record that cut farthest all ranges below that are gone, and nothing else of a
    # record lasts but the last leader epoch.
    is_cut_away = """
        record_offset < cut_at and not record_offset <=> led_at
        and coalesce(array_max(state_batches.last_offset) < cut, true)
    """
    # The snapshot says whose it is; the updates behind it need not carry that along.
    named = {name: f"if(base is null, {name}, null)" for name in KEY[1:]}
    told = {name: f"if(record_offset = cut_at, {name}, null)" for name in _TOLD}
    columns = {name: name for name in RECORDS.names} | named | told
    return (
        updates.join(F.broadcast(behind), list(KEY))  # Spark would take the updates to be smaller.
        .where(f"(last is null or record_offset > last) and not coalesce({is_cut_away}, false)")
        .selectExpr(*(f"{expression} as {name}" for name, expression in columns.items()))
    )


@on_worker
def _fold_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fold what one task holds: whole internal partitions."""
    held = list(batches)
    if held:
        yield from fold(pa.Table.from_batches(held)).to_batches()


def _records(frame: DataFrame, kind: str) -> DataFrame:
    """Return rows of a decoded table under the names of `RECORDS`, but those added later."""
    named = {name: f"value.{name}" for name in frame.select("value.*").columns} | {
        "coordinator_partition": "partition",
        "group_id": "key.group_id",
        "topic_id": "key.topic_id",
        "partition": "key.partition",
        "record_offset": "offset",
        "kind": kind,
        "is_early_layout": f"value_layout <=> '{EARLY_LAYOUT}'",
    }
    types = {each.name: each.dataType.simpleString() for each in from_arrow_schema(RECORDS)}
    return frame.selectExpr(
        *(
            f"cast({named.get(name, 'null')} as {type_}) as {name}"
            for name, type_ in types.items()
            if name not in _ADDED
        )
    )
