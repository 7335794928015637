"""The data source `kafka_dump` gives the rows that `decode` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from analytics import KafkaDump
from analytics.decode.tables import schema_of_dump, table_schema
from analytics.decode.tasks import Settings, SliceReport, decode_slice
from analytics.dump.copies.plan import plan
from analytics.tables.table_readers import FilteringSliceReader
from tests.support.archived import rows_of_partition, write_parquet
from tests.support.damaged_dump import damaged_dump

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


WHERE = ["partition", "offset", "copy"]


@pytest.fixture
def load(spark: SparkSession, failover_dump: Path) -> Load:
    spark.dataSource.register(KafkaDump)
    return Load(spark, failover_dump)


class Load:
    def __init__(self, spark: SparkSession, dump: Path) -> None:
        self.spark = spark
        self.dump = dump

    def __call__(self, **options: str) -> DataFrame:
        reader = self.spark.read.format("kafka_dump").options(**options)
        return reader.load(str(self.dump))


def test_every_decoded_table_is_a_dataframe_of_its_contract(load: Load) -> None:
    for table in ("group_metadata", "share_snapshot", "control_markers", "undecoded"):
        frame = load(table=table)
        assert frame.columns == table_schema(table).names
        frame.collect()


def commits_of(dump: Path, line: str) -> set[tuple[int, int, str]]:
    """Decode without Spark: partition, offset and copy of each commit of a line."""
    found = set()
    for each in plan([str(dump)]).slices:
        if each.line == line and each.topic == "__consumer_offsets":
            for decoded in decode_slice(each, Settings(""), SliceReport(0)):
                batch = decoded.batches.get("offset_commit")
                rows = [] if batch is None else batch.select(WHERE).to_pylist()
                found |= {(row["partition"], row["offset"], row["copy"]) for row in rows}
    return found


@pytest.mark.parametrize("line", ["", "broker-1"])
def test_the_surviving_line_and_a_lost_one_are_told_apart(
    load: Load, failover_dump: Path, line: str
) -> None:
    rows = load(line=line, columns=",".join(WHERE)).collect()
    assert len(rows) == len(set(rows)) > 0
    assert {tuple(row) for row in rows} == commits_of(failover_dump, line)


def test_only_the_columns_that_are_asked_for_are_given(load: Load) -> None:
    frame = load(columns="partition, offset").where("partition = 9")
    assert frame.columns == ["partition", "offset"]
    assert {row.partition for row in frame.collect()} == {9}


def test_filters_on_topic_and_partition_skip_whole_segments(failover_dump: Path) -> None:
    from pyspark.sql.datasource import EqualTo, In  # noqa: PLC0415

    slices = list(plan([str(failover_dump)]).slices)
    reader = FilteringSliceReader("offset_commit", table_schema("offset_commit"), slices)
    wanted = [EqualTo(("topic",), "__consumer_offsets"), In(("partition",), (5, 9))]
    assert list(reader.pushFilters(wanted)) == wanted  # Spark still checks each row
    assert {(each.topic, each.partition) for each in reader.slices} == {
        ("__consumer_offsets", 5),
        ("__consumer_offsets", 9),
    }


def test_filters_are_taken_where_spark_hands_them_on(load: Load) -> None:
    of_two = "partition in (5, 9)"
    rows = sorted(load(columns="partition,offset,copy").where(of_two).collect())
    load.spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = load(columns="partition,offset,copy", pushFilters="true").where(of_two)
        assert sorted(pushed.collect()) == rows
    finally:
        load.spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.parametrize(
    "dump",
    # What is damaged is of the release of the last one.
    ["kafka-2.0.1-v1", "damaged", pytest.param("kafka-4.3.1-failover", marks=pytest.mark.long)],
)
def test_what_the_schema_calls_not_nullable_no_row_lacks(
    dump: str, repository: Path, tmp_path: Path
) -> None:
    folder = repository / "tests" / "data" / "dumps" / dump
    if dump == "damaged":
        folder = damaged_dump(folder.with_name("kafka-4.3.1-story"), tmp_path / dump).log_dir
    missing, tables = [], set()
    for each in plan([str(folder)]).slices:
        for decoded in decode_slice(each, Settings(""), SliceReport(0)):
            for table, batch in decoded.batches.items():
                for field in schema_of_dump(table_schema(table)):
                    missing += [(table, path) for path in lacking(field, batch[field.name])]
                tables.add(table)
    assert not missing
    assert "offset_commit" in tables
    assert ("undecoded" in tables) == (dump == "damaged")


def lacking(field: pa.Field, array: pa.Array) -> Iterator[str]:
    """The paths at which something is null that its schema says never is."""
    if array.null_count and not field.nullable:
        yield field.name
    if pa.types.is_struct(field.type):
        for number, child in enumerate(field.type):
            for path in lacking(child, array.field(number)):
                yield f"{field.name}.{path}"


def test_a_table_that_does_not_exist_is_refused(load: Load) -> None:
    with pytest.raises(Exception, match="there is no table 'offsets': did you mean"):
        load(table="offsets").count()


def test_several_folders_are_one_dump(load: Load) -> None:
    folders = sorted(str(each) for each in load.dump.iterdir() if each.is_dir())
    reader = load.spark.read.format("kafka_dump").option("columns", ",".join(WHERE))
    assert sorted(reader.load(folders).collect()) == sorted(load(columns=",".join(WHERE)).collect())


def test_archived_rows_are_an_error_and_not_no_rows(
    spark: SparkSession, load: Load, tmp_path: Path
) -> None:
    rows = rows_of_partition(load.dump / "broker-3" / "__consumer_offsets-9")
    archive = write_parquet(tmp_path / "rows.parquet", rows)
    with pytest.raises(AnalysisException, match="archived rows, which kafka_dump does not read"):
        Load(spark, archive)().collect()
