"""Archived rows as a DataFrame, as a table and as files are the same dump."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from analytics import open_dump
from analytics.errors import InputNotRecognizedError
from tests.support.archived import rows_of, rows_of_topics, write_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


TABLES = ("committed_offsets", "groups", "members", "offset_history")
VIEW = "offsets_raw"


@pytest.fixture(scope="module")
def files(failover_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    return write_parquet(folder / "rows.parquet", rows_of_topics(failover_dump / "broker-2"))


@pytest.fixture(scope="module")
def frame(spark: SparkSession, files: Path) -> DataFrame:
    """With the columns of Spark's Kafka source that say nothing here, and one of the lake's."""
    read = spark.read.parquet(str(files))
    return read.withColumns(
        {
            "timestampType": F.lit(0),
            "headers": F.lit(None).cast("array<struct<key:string,value:binary>>"),
            "ingested": F.current_date(),
        }
    )


@pytest.fixture(scope="module")
def of_files(spark: SparkSession, files: Path) -> dict[str, list[str]]:
    with open_dump(str(files)) as opened:
        found = rows_of(opened.replay(spark, tables=TABLES), TABLES)
    assert all(found.values())
    return found


def test_a_dataframe_is_the_dump_that_its_rows_are_as_files(
    frame: DataFrame, of_files: dict[str, list[str]]
) -> None:
    with open_dump(frame) as opened:
        assert opened.said == ("a DataFrame: archived rows",)
        state = opened.replay(tables=TABLES)
        assert rows_of(state, TABLES) == of_files
        assert any("archived rows" in each for each in state.manifest["unanswerable"])


@pytest.fixture
def in_new_york(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(
    "timestamp",
    ["timestamp", "convert_timezone('UTC', timestamp::timestamp_ntz)", "unix_millis(timestamp)"],
)
@pytest.mark.usefixtures("in_new_york")
def test_a_view_is_one_too_whatever_its_times_are_and_where_its_session_lives(
    spark: SparkSession, frame: DataFrame, of_files: dict[str, list[str]], timestamp: str
) -> None:
    frame.withColumn("timestamp", F.expr(timestamp)).createOrReplaceTempView(VIEW)
    with open_dump(table=VIEW) as opened:
        assert rows_of(opened.replay(spark, tables=TABLES), TABLES) == of_files


def test_rows_of_a_dataframe_that_files_have_too_are_there_once(
    spark: SparkSession, frame: DataFrame, files: Path, of_files: dict[str, list[str]]
) -> None:
    with open_dump(str(files), frame.where("partition > 3")) as opened:
        assert rows_of(opened.replay(spark, tables=TABLES), TABLES) == of_files


@pytest.mark.parametrize(
    ("column", "cast", "error"),
    [
        ("value", "string", r"column value is string, and must be binary \(text of hex or base64"),
        ("key", "string", "column key is string, and must be binary"),
        ("partition", "string", "column partition is string, and must be int"),
        ("offset", "double", "column offset is double, and must be bigint"),
        ("timestamp", "string", "column timestamp is string, and must be timestamp"),
        ("topic", "binary", "column topic is binary, and must be string"),
    ],
)
def test_a_column_of_another_type_is_refused_by_name_and_type(
    frame: DataFrame, column: str, cast: str, error: str
) -> None:
    with pytest.raises(InputNotRecognizedError, match=error):
        open_dump(frame.withColumn(column, F.col(column).cast(cast)))


@pytest.mark.parametrize("column", ["key", "value", "topic", "partition", "offset"])
def test_a_column_that_is_missing_is_refused_by_name(frame: DataFrame, column: str) -> None:
    with pytest.raises(InputNotRecognizedError, match=f"missing: {column}; found"):
        open_dump(frame.drop(column))


def test_two_columns_of_one_name_are_refused(frame: DataFrame) -> None:
    with pytest.raises(InputNotRecognizedError, match="two columns are named value"):
        open_dump(frame.select("*", F.col("key").alias("value")))


def test_what_is_no_table_of_spark_is_refused(spark: SparkSession, files: Path) -> None:
    with pytest.raises(InputNotRecognizedError, match="Table: neither a path nor a DataFrame"):
        open_dump(pq.read_table(files))
    with (
        open_dump(table="ops.of_nobody") as opened,
        pytest.raises(InputNotRecognizedError, match=r"table ops\.of_nobody: Spark cannot read"),
    ):
        opened.replay(spark)
    with pytest.raises(InputNotRecognizedError, match="nothing was given"):
        open_dump()


def without_places(folder: Path, frame: DataFrame, kind: str) -> Path:
    """Write rows whose topic and partition only folders name, as Spark writes them."""
    plain = frame.select("key", "value", "topic", "partition", "offset", "timestamp")
    if kind == "json":
        plain = plain.withColumn("timestamp", F.unix_millis("timestamp"))
    out = folder / kind
    plain.write.partitionBy("topic", "partition").format(kind).save(str(out))
    return out


ALL_OF_THEM = "topic=__consumer_offsets/partition=*"


@pytest.mark.parametrize(
    ("kind", "folders"),
    [
        ("parquet", ALL_OF_THEM),
        ("json", ""),
        pytest.param("parquet", "", marks=pytest.mark.long),
        pytest.param("json", ALL_OF_THEM, marks=pytest.mark.long),
    ],
)
def test_folders_may_name_topic_and_partition(
    spark: SparkSession,
    frame: DataFrame,
    of_files: dict[str, list[str]],
    tmp_path: Path,
    kind: str,
    folders: str,
) -> None:
    folder = without_places(tmp_path, frame, kind)
    with open_dump(str(folder / folders)) as opened:
        assert rows_of(opened.replay(spark, tables=TABLES), TABLES) == of_files


def test_a_row_that_names_another_partition_than_its_folder_is_not_decoded(
    spark: SparkSession, files: Path, tmp_path: Path
) -> None:
    rows = pq.read_table(files)
    nine = rows.filter(pc.equal(rows["partition"], 9))
    folder = tmp_path / "rows" / "partition=3"
    folder.mkdir(parents=True)
    pq.write_table(nine, folder / "part-0.parquet")
    with open_dump(str(tmp_path / "rows")) as opened:
        manifest = opened.replay(spark, tables=["groups"]).manifest
    flaws = {each["flaw"] for each in manifest["unplaced_rows"]}
    assert flaws == {"its folder says partition=3, it says 9"}
    assert sum(each["undecoded"].get("unplaced_row", 0) for each in manifest["reconciliation"]) == (
        nine.num_rows
    )
