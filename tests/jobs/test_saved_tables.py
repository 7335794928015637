"""`--save-tables`: audits of several instants become a history, which SQL reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from analytics import open_dump
from analytics.library.audited_runs import audited_run, saved_audits
from analytics.library.saved_runs import run_of
from analytics.library.saved_tables import Target

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

    from tests.conftest import Groupscope

SCHEMA = "history_of_audits"
OF_REPLAYS = "history_of_replays"
LAB = ("--cluster", "lab")
BEFORE = "2026-11-21T09:18:30.000Z"


@pytest.fixture(scope="module", autouse=True)
def _schema(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    for each in (SCHEMA, OF_REPLAYS):
        folder = tmp_path_factory.mktemp("warehouse")
        spark.sql(f"CREATE DATABASE {each} LOCATION '{folder}'")
    yield
    for each in (SCHEMA, OF_REPLAYS):
        spark.sql(f"DROP DATABASE {each} CASCADE")


@pytest.fixture(scope="module")
def audits(
    groupscope: Groupscope, failover_workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Two instants of a dump; the workspaces, whose tables were saved."""
    folder = tmp_path_factory.mktemp("audits")
    at = {"before": ("--as-of", BEFORE), "end": ("--as-of", "end")}
    for name, instant in at.items():
        ran = groupscope(
            *("audit", failover_workspace, *instant, "--out", folder / name),
            *("--save-tables", SCHEMA, "--fail-on", "never"),
        )
        assert ran.returncode in {0, 3}, ran.stderr
        assert f"saved to {SCHEMA} as run-" in ran.stderr
    return {name: folder / name for name in at}


def asked(spark: SparkSession, repository: Path, query: str) -> list[Row]:
    text = (repository / "examples" / "history" / f"{query}.sql").read_text(encoding="utf-8")
    used = spark.catalog.currentDatabase()
    spark.sql(f"USE {SCHEMA}")
    try:
        return spark.sql(text).collect()
    finally:
        spark.sql(f"USE {used}")


def groups_in(workspace: Path) -> set[str]:
    return set(pq.read_table(workspace / "state" / "groups")["group_id"].to_pylist())


@pytest.mark.long
def test_each_table_has_the_rows_of_both_workspaces(
    spark: SparkSession, audits: dict[str, Path]
) -> None:
    runs = {row.as_of: row for row in spark.table(f"{SCHEMA}.saved_runs").collect()}
    assert len(runs) == 2
    for name in ("groups", "committed_offsets", "findings", "lag", "offset_history", "gaps"):
        rows = spark.table(f"{SCHEMA}.{name}").groupBy("run_id").count().collect()
        saved = sorted(row["count"] for row in rows)
        theirs = [
            sum(pq.read_table(each).num_rows for each in path.glob(f"*/{name}"))
            for path in audits.values()
        ]
        assert saved == sorted(count for count in theirs if count), name
        for run in runs.values():
            assert name in {each.table for each in run.saved_tables}


@pytest.mark.long
def test_the_lag_of_each_group_is_there_at_both_instants(
    spark: SparkSession, repository: Path, audits: dict[str, Path]
) -> None:
    rows = asked(spark, repository, "lag_over_time")
    for workspace in audits.values():
        theirs = pq.read_table(workspace / "evaluations" / "audited_groups").to_pylist()
        for each in theirs:
            of_group = [row for row in rows if row.group_id == each["group_id"]]
            is_told = each["lag_not_told"] == 0 and each["complete"]
            assert (each["lag"] if is_told else None) in [row.lag for row in of_group]
    assert any(row.lag is not None for row in rows)
    assert len({row.as_of for row in rows}) == 2


@pytest.mark.long
def test_new_groups_are_told_only_where_the_other_dump_is_whole(
    spark: SparkSession, repository: Path, audits: dict[str, Path]
) -> None:
    rows = {row.group_id: row.became for row in asked(spark, repository, "groups_new_or_gone")}
    before, end = groups_in(audits["before"]), groups_in(audits["end"])
    assert set(rows) == before ^ end
    assert {rows[each] for each in end - before} <= {"new", "cannot tell"}
    assert {rows[each] for each in before - end} <= {"gone", "cannot tell"}
    assert {"new", "gone"} & set(rows.values())


@pytest.mark.long
def test_a_rule_that_was_not_applied_did_not_find_nothing(
    spark: SparkSession, repository: Path, audits: dict[str, Path]
) -> None:
    rows = asked(spark, repository, "findings_by_rule")
    found = pq.read_table(audits["end"] / "evaluations" / "findings")["rule"].to_pylist()
    last = max(row.as_of for row in rows)
    counted = {row.rule: row.findings for row in rows if row.as_of == last}
    assert {rule: count for rule, count in counted.items() if count} == {
        rule: found.count(rule) for rule in found
    }
    assert len(rows) == 2 * len(counted)


def test_a_replay_is_the_run_that_a_notebook_saves(
    groupscope: Groupscope, spark: SparkSession, failover_workspace: Path
) -> None:
    ran = groupscope("replay", failover_workspace, "--save-tables", OF_REPLAYS, *LAB)
    assert ran.returncode == 0, ran.stderr
    (run,) = spark.table(f"{OF_REPLAYS}.saved_runs").where("cluster = 'lab'").collect()
    assert f"saved to {OF_REPLAYS} as {run.run_id} of cluster lab" in ran.stderr
    with open_dump(str(failover_workspace)) as dump:
        state = dump.replay()
        assert run_of(state.replayed, "replay", cluster="lab").run_id == run.run_id
        rows = {each.table: each.rows for each in run.saved_tables}
        assert rows == {name: state.table(name).height for name in state.tables}
    groups = spark.table(f"{OF_REPLAYS}.groups").where("cluster = 'lab'")
    assert groups.count() == rows["groups"] > 0


def refused(ran: subprocess.CompletedProcess[str]) -> str:
    assert ran.returncode == 2, ran.stderr
    return ran.stderr.splitlines()[-1]


def test_what_cannot_be_saved_is_said_in_one_line(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    replay = ("replay", failover_workspace, "--quiet", "--save-tables")
    assert "nowhere: there is no such schema" in refused(groupscope(*replay, "nowhere"))
    assert "no.such.place" in refused(groupscope(*replay, "no.such.place"))
    assert "is no schema" in refused(groupscope(*replay, "a b"))
    assert "letters, digits" in refused(groupscope(*replay, SCHEMA, "--cluster", "it's"))


@pytest.mark.long
def test_trend_of_saved_audits_is_that_of_their_workspaces(
    groupscope: Groupscope, audits: dict[str, Path]
) -> None:
    def asked(*arguments: str | Path) -> dict[str, list[dict[str, object]]]:
        ran = groupscope("trend", *arguments, "--format", "json", "--quiet")
        assert ran.returncode == 3, ran.stderr
        found: dict[str, list[dict[str, object]]] = json.loads(ran.stdout)
        return found

    saved, stored = asked("--from-tables", SCHEMA), asked(*audits.values())
    assert len(saved["rows"]) == 2
    assert saved["groups"] == stored["groups"]
    for one, other in zip(saved["bytes"], stored["bytes"], strict=True):
        assert {**one, "reason": None} == {**other, "reason": None}
    # Where the run is differs, and what a manifest alone says.
    unlike = {"run", "expired_bound", "rebalances_bound", "reason"}
    for one, other in zip(saved["rows"], stored["rows"], strict=True):
        assert {name for name in one if one[name] != other[name]} <= unlike
    # Of an instant before the end of a dump nothing that is saved tells which logs it had.
    assert "trend_coverage_unknown" in {each["code"] for each in saved["gaps"]}
    assert {each["change"] for each in saved["findings"]} == {"cannot_tell"}
    both = asked("--from-tables", SCHEMA, *audits.values())
    assert len(both["rows"]) == 2


@pytest.mark.long
def test_a_saved_audit_is_known_by_the_same_as_its_workspace(
    spark: SparkSession, audits: dict[str, Path]
) -> None:
    saved = {each.as_of: each for each in saved_audits(Target(spark, SCHEMA))}
    assert len(saved) == 2
    for name, workspace in audits.items():
        stored = audited_run(str(workspace))
        mine = saved[stored.as_of]
        for fact in ("cluster", "lacks", "filters", "whole_partitions", "is_redacted"):
            assert getattr(mine, fact) == getattr(stored, fact), fact
        assert mine.logs == (stored.logs if name == "end" else None)


def test_trend_of_no_schema_is_refused_in_one_line(groupscope: Groupscope) -> None:
    for schema, words in (("nowhere", "there is no such schema"), ("no schema", "is no schema")):
        ran = groupscope("trend", "--from-tables", schema, "--quiet")
        assert (ran.returncode, ran.stdout) == (2, "")
        (line,) = ran.stderr.splitlines()
        assert words in line
    assert groupscope("trend").returncode == 2


def test_a_format_that_the_session_lacks_is_refused_before_any_work(
    groupscope: Groupscope, spark: SparkSession, failover_workspace: Path, tmp_path: Path
) -> None:
    schema, out = "history_in_delta", tmp_path / "out"
    spark.sql(f"CREATE DATABASE {schema} LOCATION '{tmp_path / 'lake'}'")
    try:
        delta = ("--save-tables", schema, "--save-format", "delta")
        ran = groupscope("replay", failover_workspace, "--out", out, *delta)
        assert refused(ran).endswith(
            f"{schema}.saved_runs: Spark has no such format of tables: start it with the package "
            "that has it"
        )
    finally:
        spark.sql(f"DROP DATABASE {schema} CASCADE")
    assert not out.exists()
