"""Keys belong to the internal partitions that Kafka's coordinators choose for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.internal_partitions import internal_partition, share_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_50 = {
    "": 0,
    "group": 47,
    "my-group": 12,
    "console-consumer-12345": 6,
    "gruppe-ä": 48,
    "😀": 49,
    "polygenelubricants": 0,
    "test-group:AAAAAAAAAAAAAAAAAAAAAQ:0": 22,
    "G1:Lwh6iXlUTdGLeFDrCWF_2g:3": 8,
}


def test_the_partition_is_that_of_javas_hash_over_utf_16(spark: SparkSession) -> None:
    keys = spark.createDataFrame([(key,) for key in OF_50], "key string")
    found = keys.select("key", internal_partition(F.col("key"), 50).alias("partition"))
    assert {row.key: row.partition for row in found.collect()} == OF_50


def test_share_state_is_hashed_by_group_topic_id_and_partition(spark: SparkSession) -> None:
    given = spark.createDataFrame([("a:b", "id", 3)], "g string, t string, p int")
    (row,) = given.select(share_key(F.col("g"), F.col("t"), F.col("p")).alias("key")).collect()
    assert row.key == "a:b:id:3"
