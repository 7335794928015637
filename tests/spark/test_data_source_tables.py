"""Spark reads every table of the data source `kafka_dump`, and the page about it says what is so.

Rows are compared in tests/unit/library/test_source_rows.py; here it is Spark that asks.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from analytics import KafkaDump, open_dump
from tests.support.value_order import in_value_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EARLY = "2026-11-21T09:20:00Z"
EARLY_IN_SHARE = "2026-11-21T09:29:00Z"


@pytest.fixture(scope="module", autouse=True)
def _registered(spark: SparkSession) -> None:
    spark.dataSource.register(KafkaDump)


def loaded(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("kafka_dump").options(**options).load(str(path))


def same(found: DataFrame, wanted: DataFrame) -> bool:
    assert found.columns == wanted.columns
    return in_value_order(found.toArrow()).equals(in_value_order(wanted.toArrow()))


@pytest.mark.parametrize("folder", ["decoded/share_snapshot", "history/offset_history"])
def test_tables_of_a_workspace_are_what_spark_reads_of_its_files(
    spark: SparkSession, failover_workspace: Path, folder: str
) -> None:
    found = loaded(spark, failover_workspace, table=folder.rpartition("/")[2])
    wanted = spark.read.parquet(str(failover_workspace / folder))
    assert same(found.select(wanted.columns), wanted)
    assert found.count() > 0


@pytest.mark.parametrize(
    ("dump", "table"),
    [
        ("share", "share_partitions"),
        pytest.param("failover", "groups", marks=pytest.mark.long),
    ],
)
def test_state_of_a_dump_is_that_of_open_dump(
    spark: SparkSession, repository: Path, failover_dump: Path, dump: str, table: str
) -> None:
    share_dump = repository / "tests" / "data" / "dumps" / "kafka-4.2.1-share"
    folder, instant = (failover_dump, EARLY) if dump == "failover" else (share_dump, EARLY_IN_SHARE)
    with open_dump(str(folder)) as opened:
        wanted = opened.replay(spark, as_of=instant).table(table)
        assert same(loaded(spark, folder, table=table, asOf=instant), wanted)
        assert wanted.count() > 0


def test_a_question_and_its_gaps_are_tables(spark: SparkSession, failover_dump: Path) -> None:
    folder = failover_dump / "broker-2" / "__consumer_offsets-9"
    with open_dump(str(folder)) as opened:
        answer = opened.replay(spark).lag(by="group")
        assert same(loaded(spark, folder, table="lag", by="group"), answer.lag)
        gaps = loaded(spark, folder, table="gaps", question="lag")
        assert same(gaps, answer.gaps)
        assert gaps.count() > 0


def test_a_table_is_a_view_of_sql(spark: SparkSession, failover_workspace: Path) -> None:
    spark.sql(
        "CREATE TEMPORARY VIEW groups_of_dump USING kafka_dump "
        f"OPTIONS (table 'groups', path '{failover_workspace}')"
    )
    try:
        (row,) = spark.sql(
            "SELECT state FROM groups_of_dump WHERE group_id = 'fleet-telemetry'"
        ).collect()
        assert row.state == "Stable"
    finally:
        spark.catalog.dropTempView("groups_of_dump")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "group"}, "there is no table 'group': did you mean 'groups'"),
        ({"table": "groups", "as_of": EARLY}, "did you mean 'asOf'"),
        ({"table": "groups", "columns": "group"}, "did you mean 'group_id'"),
        ({"table": "changed_members"}, "is of diff, which no option can ask"),
    ],
)
def test_what_is_wrong_is_said_and_by_whom(
    spark: SparkSession, failover_workspace: Path, options: dict[str, str], words: str
) -> None:
    with pytest.raises(AnalysisException, match=words):
        loaded(spark, failover_workspace, **options).collect()


def test_what_the_page_shows_runs(
    spark: SparkSession,
    repository: Path,
    failover_dump: Path,
    failover_workspace: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (repository / "docs" / "data-source.md").read_text("utf-8")
    names: dict[str, object] = {"spark": spark}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        code = block.replace("/path/to/dump", str(failover_dump))
        exec(code.replace("/path/to/workspace", str(failover_workspace)), names)
    assert names["commits"].count() > 100  # type: ignore[attr-defined]
    assert "| parcel-router" in re.sub(r" +", " ", capsys.readouterr().out)
