"""Groups that are looked at bucket after bucket are told what those looked at all at once are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.log.group_buckets import Frames, group_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUPS, RECORDS = 40, 5
TOLD = pl.Schema(
    {
        "coordinator_partition": pl.Int32,
        "group_id": pl.String,
        "records": pl.Int64,
        "items": pl.List(pl.String),
        "last": pl.Struct({"at": pl.Datetime("us", "UTC"), "name": pl.String}),
    }
)
COMMITTED = pl.Schema({"group_id": pl.String, "commits": pl.Int64})


def frames(spark: SparkSession, groups: int) -> dict[str, DataFrame]:
    told = [(number, record) for number in range(groups) for record in range(RECORDS)]
    key = {
        "coordinator_partition": pa.array([number % 3 for number, _ in told], pa.int32()),
        "group_id": [f"group {number}" for number, _ in told],
    }
    log = key | {
        "offset": [record for _, record in told],
        "at": pa.array([record for _, record in told], pa.timestamp("us", "UTC")),
        "items": [[f"{number}-{record}"] * (record % 3) for number, record in told],
    }
    commits = key | {"offset": [record for _, record in told]}
    return {
        "log": spark.createDataFrame(pa.table(log)),
        "commits": spark.createDataFrame(pa.table(commits)).where("offset > 1"),
    }


def told(rows: Frames) -> Frames:
    log = rows["log"].sort("offset").with_columns(pl.struct("at", name="group_id").alias("last"))
    last = pl.col("last").last()
    items = pl.col("items").explode(empty_as_null=False)
    key = list(GROUP_KEY)
    counted = log.group_by(key).agg(pl.len().cast(pl.Int64).alias("records"), items, last)
    commits = rows["commits"].group_by("group_id").agg(pl.len().cast(pl.Int64).alias("commits"))
    return {"told": counted, "committed": commits}


@pytest.mark.parametrize("groups", [0, GROUPS])
def test_buckets_of_whole_groups_tell_what_all_rows_tell(spark: SparkSession, groups: int) -> None:
    schemas = {"told": TOLD, "committed": COMMITTED}
    given = frames(spark, groups)
    whole, bucketed = group_rows(given), group_rows(given, {"log": F.size("items") + 1}, 20)
    assert whole.buckets == 1
    assert (bucketed.here is None) == (bucketed.buckets > GROUPS // 10) == (groups > 0)
    here, there = whole.made(told, schemas), bucketed.made(told, schemas)
    for name in schemas:
        assert here[name].schema == there[name].schema
        order = list(here[name].columns)
        assert here[name].orderBy(order).collect() == there[name].orderBy(order).collect()
        assert here[name].count() == groups
