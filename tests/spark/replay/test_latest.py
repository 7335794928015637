"""Records looked up by their offsets, as bits: at the edges of words, and in every partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.latest import last_record, records_among, value_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAST = 2**63 - 1
OFFSETS = (0, 1, 62, 63, 64, 65, 127, 128, 2**31, 2**46 + 63, LAST - 1, LAST)


def test_those_records_are_found_whose_places_are_given(spark: SparkSession) -> None:
    records = [
        (number, offset, f"{number}/{offset}") for number in (0, 1, 49) for offset in OFFSETS
    ]
    wanted = [(0, 0), (0, 63), (0, 128), (1, 64), (1, 2**46 + 63), (49, 62), (49, LAST)]
    missing = [(0, 66), (2, 0), (49, 2**46)]

    found = records_among(
        spark.createDataFrame(records, "partition int, offset bigint, said string"),
        spark.createDataFrame(wanted + missing, "coordinator_partition int, record_offset bigint"),
    )

    assert found.columns == [
        "partition", "offset", "said", "coordinator_partition", "record_offset",
    ]  # fmt: skip
    assert sorted(map(tuple, found.collect())) == [
        (number, offset, f"{number}/{offset}", number, offset) for number, offset in wanted
    ]


def test_the_last_record_of_a_key_is_its_value_or_none(spark: SparkSession) -> None:
    log = [
        *(("kept", 3, True), ("kept", 4, False)),
        *(("gone", 5, False), ("gone", 6, True)),
        *(("great", 2**62 - 2, True), ("great", 2**62 - 1, False)),
    ]
    records = spark.createDataFrame(log, "key string, offset bigint, is_tombstone boolean")

    last = records.groupBy("key").agg(F.max(last_record(F.col("offset"), F.col("is_tombstone"))))
    value = value_at(F.col(last.columns[1])).alias("offset")

    assert {row["key"]: row["offset"] for row in last.select("key", value).collect()} == {
        "kept": 4,
        "gone": None,
        "great": 2**62 - 1,
    }
