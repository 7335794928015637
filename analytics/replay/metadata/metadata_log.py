"""The metadata log: which of its records are in force, and from which snapshot on (KIP-630, 868).

Records of a metadata transaction become visible together at its end; those of one that was aborted
or is open are never seen. Where the log does not begin at its start, the oldest whole snapshot is
what it is applied to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.log.as_of import Decoded, snapshot_end
from analytics.replay.log.record_position import POSITION
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TOPIC = "__cluster_metadata"

FIRST_TABLES = (
    "control_markers",
    "begin_transaction_record",
    "feature_level_record",
    "register_broker_record",
)
"""Of what is found at the very start of any log: leader change, bootstrap, features, brokers."""


@dataclass(frozen=True)
class MetadataLog:
    """Decoded tables cut at an instant, and what decides which metadata records are in force.

    Attributes:
        decoded: The tables.
        base_end: The end offset of the snapshot to begin with, if the log has to.
        hidden: Transactions that are not visible: `begun_at`, `over_at` (null while open); None
            where there are none, which saves each table a join.
    """

    decoded: Decoded
    base_end: int | None
    hidden: DataFrame | None

    def visible(self, name: str) -> DataFrame:
        """Return the records of a metadata table ("topic_record") that are in force.

        Returns:
            `at` (bigint: the record's place in the order of events), `since` (timestamp),
            `metadata_offset` and `position` (struct of `POSITION`; these three null for what a
            snapshot holds), `value`.
        """
        end = snapshot_end()
        tail = end.isNull() & (F.col("offset") >= (self.base_end or 0))
        return self._chosen(name, tail if self.base_end is None else tail | (end == self.base_end))

    def told(self, name: str) -> DataFrame:
        """Return what the log itself tells, also before the snapshot to begin with.

        Returns:
            The columns of `visible`. Snapshots say what there is, only the log when it came to be;
            files of it are kept until all of their records lie before the oldest snapshot.
        """
        return self._chosen(name, snapshot_end().isNull())

    def _chosen(self, name: str, chosen: Column) -> DataFrame:
        records = self.decoded[name].where(chosen)
        is_log = snapshot_end().isNull()
        if self.hidden is not None:
            inside = (F.col("offset") > F.col("begun_at")) & (
                F.col("over_at").isNull() | (F.col("offset") < F.col("over_at"))
            )
            records = records.join(F.broadcast(self.hidden), is_log & inside, "left_anti")
        place = F.when(is_log, F.col("offset"))
        last_of_snapshot = None if self.base_end is None else self.base_end - 1
        return records.select(
            F.coalesce(place, F.lit(last_of_snapshot).cast("bigint")).alias("at"),
            F.when(is_log, F.col("timestamp")).alias("since"),
            place.alias("metadata_offset"),
            F.when(is_log, F.struct(*POSITION)).alias("position"),
            "value",
        )


def metadata_log(decoded: Decoded) -> MetadataLog:
    """Decide which records of the metadata log are in force.

    Many tables are made from the result, so it is computed here and now.

    Args:
        decoded: Cut at an instant.
    """
    hidden = _transactions(decoded).where(~F.coalesce("is_ended", F.lit(col=False)))
    hidden = hidden.select("begun_at", "over_at").localCheckpoint()
    return MetadataLog(decoded, _base_end(decoded), None if hidden.isEmpty() else hidden)


def _base_end(decoded: Decoded) -> int | None:
    """Return the end offset of the snapshot to begin with, if the log has to."""
    (beginning,) = _beginning(decoded).collect()
    base_end: int | None = beginning["oldest"] if beginning["is_cut"] else None
    return base_end


def _beginning(decoded: Decoded) -> DataFrame:
    """Return one row: how the log at hand begins.

    Returns:
        `tells` (boolean: there is a log), `is_cut` (boolean: not from its start on), `oldest` (end
        offset of the oldest snapshot) and `first_at` (timestamp of the first record).
    """
    columns = ("offset", "segment", "timestamp")
    markers, *others = (decoded[name] for name in FIRST_TABLES)
    of_log = (markers.where(F.col("topic") == TOPIC), *others)
    first = union_all(each.select(*columns) for each in of_log)
    end = snapshot_end()
    is_log = end.isNull()
    # An end offset of zero is that of a bootstrap file, which is no state of the log.
    is_snapshot = end > 0
    log_start = F.min(F.when(is_log, F.col("offset")))
    return first.agg(
        (F.count(F.lit(1)) > 0).alias("tells"),
        (F.coalesce(log_start, F.lit(1)) > 0).alias("is_cut"),
        F.min(F.when(is_snapshot, end)).alias("oldest"),
        F.min(F.when(is_log | is_snapshot, F.col("timestamp"))).alias("first_at"),
    )


def _transactions(decoded: Decoded) -> DataFrame:
    """Return metadata transactions: `begun_at`, `over_at` and `is_ended` (null while open)."""
    steps = (
        _step(decoded, "begin_transaction_record", is_ended=None)
        .unionByName(_step(decoded, "end_transaction_record", is_ended=True))
        .unionByName(_step(decoded, "abort_transaction_record", is_ended=False))
    )
    # One transaction at a time: the step after a beginning is its end. They are few.
    order = Window.partitionBy(F.lit(0)).orderBy("offset")
    return (
        steps.withColumn("over_at", F.lead("offset").over(order))
        .withColumn("outcome", F.lead("is_ended").over(order))
        .where("is_ended is null")
        .select(F.col("offset").alias("begun_at"), "over_at", F.col("outcome").alias("is_ended"))
    )


def _step(decoded: Decoded, name: str, *, is_ended: bool | None) -> DataFrame:
    return (
        decoded[name]
        .where(snapshot_end().isNull())
        .select("offset", F.lit(is_ended).cast("boolean").alias("is_ended"))
    )
