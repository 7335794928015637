"""How transactions in a coordinator's log end, told by their markers (KIP-98).

A commit made in a transaction is pending until the first marker of its producer id, whatever the
producer epoch. Order matters only for records of producers: the others never come here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COMMIT, ABORT = "COMMIT", "ABORT"


def with_end(entries: DataFrame, markers: DataFrame) -> DataFrame:
    """Find the marker that ends the transaction of each record.

    Args:
        entries: Records of producers: `coordinator_partition`, `producer_id`, `offset` and others.
        markers: `control_markers` of the same topic.

    Returns:
        The entries with `end_offset` (bigint) and `is_commit` (boolean), null while the
        transaction is open.
    """
    ends = markers.where(F.col("control_type").isin(COMMIT, ABORT)).select(
        F.col("partition").alias("coordinator_partition"),
        "producer_id",
        "offset",
        F.struct(
            F.col("offset").alias("end_offset"),
            (F.col("control_type") == COMMIT).alias("is_commit"),
        ).alias("end"),
    )
    # From the log's end backwards, the marker seen last is the first one after a record.
    backwards = (
        Window.partitionBy("coordinator_partition", "producer_id")
        .orderBy(F.col("offset").desc())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        entries.withColumn("is_entry", F.lit(col=True))
        .unionByName(ends, allowMissingColumns=True)
        .withColumn("end", F.last("end", ignorenulls=True).over(backwards))
        .where("is_entry")
        .select(*entries.columns, "end.end_offset", "end.is_commit")
    )
