"""Tables of runs in a schema of a catalog: each run there once, whole or not named."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from analytics import open_dump
from analytics.errors import EnvironmentUnfitError, OutputRefusedError, SettingRefusedError
from analytics.library.saved_runs import Run
from analytics.library.saved_tables import Target, columns_of
from schemas import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "history_of_runs"
AS_OF = datetime(2026, 11, 23, 5, 30, tzinfo=UTC)
ROW = {
    "question": "replay",
    "settings": "null",
    "kafka_version": "4.3",
    "groupscope_version": "0",
    "cluster_ids": ["an-id"],
    "is_end": True,
    "filters": [],
    "lacks": [{"topic": "__consumer_offsets", "partition": 7, "words": "is not in the dump"}],
    "whole_partitions": None,
}
RUN = Run("prod", "run-1", AS_OF, ROW)
GAPS = "gaps"


@pytest.fixture
def target(spark: SparkSession, tmp_path: Path) -> Iterator[Target]:
    spark.sql(f"CREATE DATABASE {SCHEMA} LOCATION '{tmp_path / 'warehouse'}'")
    yield Target(spark, SCHEMA)
    spark.sql(f"DROP DATABASE {SCHEMA} CASCADE")


def gaps(spark: SparkSession, *codes: str) -> DataFrame:
    contract = table(GAPS)
    values = {"question": "lag", "parameters": "{}", "words": "it's unknown"}
    rows = [
        tuple({**values, "code": code}.get(each.name) for each in contract.columns)
        for code in codes
    ]
    return spark.createDataFrame(rows, contract.ddl(not_null=False))


def save(target: Target, run: Run, *codes: str, name: str = GAPS) -> None:
    target.save(run, {name: gaps(target.spark, *codes)}, {name: len(codes)})


def codes_of_runs(target: Target) -> list[tuple[str, str]]:
    rows = target.spark.table(target.place(GAPS)).collect()
    return sorted((row.run_id, row.code) for row in rows)


def tables_of(target: Target) -> list[str]:
    """The tables of the schema; views of the session, which Spark lists too, are in no schema."""
    there = target.spark.catalog.listTables(SCHEMA)
    return [each.name for each in there if not each.isTemporary]


def saved(target: Target) -> dict[str, dict[str, int]]:
    rows = target.spark.table(target.place("saved_runs")).collect()
    return {row.run_id: {each["table"]: each["rows"] for each in row.saved_tables} for row in rows}


def test_a_run_takes_its_own_place_and_no_others(target: Target) -> None:
    other = replace(RUN, run_id="run-2")
    save(target, RUN, "a", "b")
    save(target, other, "c")
    save(target, RUN, "d")
    assert codes_of_runs(target) == [("run-1", "d"), ("run-2", "c")]
    save(target, RUN)
    assert codes_of_runs(target) == [("run-2", "c")]
    assert saved(target) == {"run-1": {GAPS: 0}, "run-2": {GAPS: 1}}


@pytest.mark.long
@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_it_does_so_however_the_session_overwrites(target: Target, mode: str) -> None:
    setting = "spark.sql.sources.partitionOverwriteMode"
    target.spark.conf.set(setting, mode)
    try:
        save(target, replace(RUN, cluster="test"), "c")
        for code in ("a", "b"):
            save(target, RUN, code)
    finally:
        target.spark.conf.unset(setting)
    assert codes_of_runs(target) == [("run-1", "b"), ("run-1", "c")]


@pytest.mark.long
def test_the_instant_is_the_same_in_every_time_zone(target: Target) -> None:
    save(target, RUN, "a")
    zone = "spark.sql.session.timeZone"
    target.spark.conf.set(zone, "America/New_York")
    try:
        save(target, replace(RUN, run_id="run-2"), "a")
        for name in (GAPS, "saved_runs"):
            rows = target.spark.table(target.place(name))
            milliseconds = rows.selectExpr("unix_millis(as_of) as at").collect()
            assert {row["at"] for row in milliseconds} == {int(AS_OF.timestamp() * 1000)}
    finally:
        target.spark.conf.set(zone, "UTC")


def test_what_broke_off_is_not_named_until_it_was_made_again(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(target, RUN, "a")
    save(target, replace(RUN, run_id="run-2"), "b")
    written = Target._overwrite

    def breaks_off(self: Target, run: Run, name: str, frame: DataFrame) -> None:
        if name == GAPS:
            raise OSError(name)
        written(self, run, name, frame)

    with monkeypatch.context() as patch:
        patch.setattr(Target, "_overwrite", breaks_off)
        with pytest.raises(OSError, match=GAPS):
            save(target, RUN, "c")
    assert saved(target) == {"run-2": {GAPS: 1}}
    save(target, RUN, "c")
    assert codes_of_runs(target) == [("run-1", "c"), ("run-2", "b")]
    assert set(saved(target)) == {"run-1", "run-2"}


@pytest.mark.long
def test_other_tables_of_a_run_stay(target: Target) -> None:
    save(target, RUN, "a")
    rows = target.spark.createDataFrame([], table("topics").ddl(not_null=False))
    target.save(RUN, {"topics": rows}, {"topics": 0})
    assert saved(target) == {"run-1": {GAPS: 1, "topics": 0}}
    assert codes_of_runs(target) == [("run-1", "a")]


def made(target: Target, columns: Sequence[Any], more: str = "") -> None:
    names = ", ".join(f"`{each.name}` {each.type}" for each in columns)
    target.spark.sql(
        f"CREATE TABLE {target.place(GAPS)} ({names}{more}) USING parquet "
        "PARTITIONED BY (cluster, run_id)"
    )


def test_a_column_that_the_contract_got_since_is_added(target: Target) -> None:
    newest = "words"
    old = [each for each in columns_of(GAPS) if each.name != newest]
    made(target, old)
    target.spark.sql(
        f"INSERT INTO {target.place(GAPS)} (question, code, cluster, run_id) "
        "VALUES ('lag', 'old', 'prod', 'run-0')"
    )
    save(target, RUN, "new")
    rows = target.spark.table(target.place(GAPS)).collect()
    assert {row.code: row[newest] for row in rows} == {"old": None, "new": "it's unknown"}


OTHERS: Mapping[str, tuple[dict[str, str], str]] = {
    "a column that the contract has not": ({}, ", `mood` string"),
    "a column of another type": ({"partition": "bigint"}, ""),
    "no instant": ({"as_of": ""}, ""),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_table_with_other_columns_is_left_alone(target: Target, what: str) -> None:
    kinds, more = OTHERS[what]
    columns = [
        replace(each, type=kinds.get(each.name, each.type))
        for each in columns_of(GAPS)
        if kinds.get(each.name) != ""
    ]
    made(target, columns, more)
    with pytest.raises(OutputRefusedError, match=f"{SCHEMA}.gaps has other columns"):
        save(target, RUN, "a")
    assert tables_of(target) == [GAPS]
    assert codes_of_runs(target) == []


@pytest.mark.long
def test_two_clusters_do_not_share_a_name(target: Target) -> None:
    save(target, RUN, "a")
    another = replace(RUN, run_id="run-2", row={**ROW, "cluster_ids": ["another-id"]})
    with pytest.raises(OutputRefusedError, match=r"are those of an-id, .* of another-id"):
        save(target, another, "b")
    save(target, replace(another, cluster="test"), "b")
    save(target, replace(RUN, run_id="run-3", row={**ROW, "cluster_ids": []}), "c")
    assert [run for run, _ in codes_of_runs(target)] == ["run-1", "run-2", "run-3"]


@pytest.mark.parametrize(
    ("schema", "table_format", "error", "words"),
    [
        ("nowhere", "parquet", OutputRefusedError, "nowhere: there is no such schema"),
        ("no_catalog.ops", "parquet", OutputRefusedError, "no_catalog.ops"),
        ("no.such.place", "parquet", OutputRefusedError, "no.such.place"),
        ("a b", "parquet", SettingRefusedError, "is no schema"),
        (SCHEMA, "par quet", SettingRefusedError, "is no format"),
        (SCHEMA, "delta", OutputRefusedError, f"{SCHEMA}.gaps: Spark has no such format"),
        (SCHEMA, "iceberg", OutputRefusedError, f"{SCHEMA}.gaps: Spark has no such format"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(
    target: Target, schema: str, table_format: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as refused:
        save(Target(target.spark, schema, table_format), RUN, "a")
    assert "\n" not in str(refused.value)
    assert tables_of(target) == []


def test_a_state_and_its_answers_are_saved_from_a_notebook(
    target: Target, failover_workspace: Path
) -> None:
    names = ["groups", "committed_offsets"]
    with open_dump(str(failover_workspace)) as dump:
        state = dump.replay(target.spark, assume=["clean-elections"])
        run = state.save(SCHEMA, tables=names)
        assert state.save(SCHEMA, tables=names) == run
        answer = state.lag()
        of_answer = answer.save(SCHEMA, tables=["lag", "gaps"])
        for name in names:
            rows = target.spark.table(target.place(name))
            assert rows.count() == state.table(name).count() > 0
            assert {each.run_id for each in rows.select("run_id").distinct().collect()} == {run}
        assert codes_of_runs(target) == sorted(
            (of_answer, row.code) for row in answer.gaps.collect()
        )
        with pytest.raises(KeyError, match="no table 'groups'"):
            answer.save(SCHEMA, tables=["groups"])
    assert set(saved(target)) == {run, of_answer}


def test_without_a_session_there_is_no_catalog(failover_dump: Path) -> None:
    with (
        open_dump(str(failover_dump)) as dump,
        pytest.raises(EnvironmentUnfitError, match="give replay"),
    ):
        dump.replay(tables=["groups", "topics"]).save(SCHEMA)
