"""Checkpoint folders that Structured Streaming itself wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.seeds.region.merge import merged
from analytics.seeds.region.recognized import read_checkpoints

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def checkpoint(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query over files that was run twice: two batches."""
    folder = tmp_path_factory.mktemp("query")
    (folder / "in").mkdir()
    for name in ("one", "two"):
        (folder / "in" / f"{name}.txt").write_text(name)
        lines = spark.readStream.text(str(folder / "in"))
        query = (
            lines.writeStream.format("parquet")
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return folder / "checkpoint"


def test_the_batches_of_a_query_are_its_checkpoints(checkpoint: Path) -> None:
    found = merged(read_checkpoints([str(checkpoint)], "etl"), 15_000)
    assert [each.key.sequence_id for each in found] == [0, 1]
    assert [each.is_merged for each in found] == [True, True]
    assert [each.contributors for each in found] == [["source 0"], ["source 0"]]
    assert all(each.offsets == {} for each in found), "files have no offsets of Kafka"
    assert all((each.made_at or 0) > 1_700_000_000_000 for each in found)


def test_a_batch_that_spark_has_not_committed_is_not_finished(checkpoint: Path) -> None:
    (checkpoint / "commits" / "1").rename(checkpoint / "commits" / ".1.kept")
    try:
        found = merged(read_checkpoints([str(checkpoint)], "etl"), 15_000)
    finally:
        (checkpoint / "commits" / ".1.kept").rename(checkpoint / "commits" / "1")
    assert [each.is_merged for each in found] == [True, False]
