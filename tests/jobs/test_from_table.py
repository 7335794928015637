"""`--from-table`: the rows of a table are the dump that the same rows as files are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from schemas import table
from tests.support.archived import rows_of_topics, write_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.conftest import Groupscope

TABLE = "lake_of_offsets.offsets_raw"
ARGUMENT = f"--from-table={TABLE}"
LEAST_TABLES = 10


@pytest.fixture(scope="module")
def rows(failover_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    write_parquet(folder / "part-0.parquet", rows_of_topics(failover_dump / "broker-2"))
    return folder


@pytest.fixture(scope="module", autouse=True)
def _in_the_catalog(spark: SparkSession, rows: Path) -> Iterator[None]:
    """The table, in the catalog of the session that commands find in this process."""
    schema = TABLE.partition(".")[0]
    spark.sql(f"CREATE DATABASE {schema} LOCATION '{rows.parent}/schema'")
    spark.sql(f"CREATE TABLE {TABLE} USING parquet LOCATION '{rows}'")
    yield
    spark.sql(f"DROP DATABASE {schema} CASCADE")


@pytest.fixture(scope="module")
def of_files(groupscope: Groupscope, rows: Path) -> Path:
    out = rows.parent / "of-files"
    assert groupscope("replay", rows, "--out", out).returncode == 0
    return out


def tables_of(workspace: Path) -> dict[str, list[str]]:
    found = {}
    for folder in sorted([*workspace.glob("state/*"), *workspace.glob("history/*")]):
        columns = [each.name for each in table(folder.name).columns]
        found[folder.name] = sorted(map(str, pq.read_table(folder).select(columns).to_pylist()))
    assert len(found) >= LEAST_TABLES
    return found


def test_a_table_gives_the_tables_that_its_files_give(
    groupscope: Groupscope, of_files: Path, tmp_path: Path
) -> None:
    out = tmp_path / "of-table"
    result = groupscope("replay", "--from-table", TABLE, "--out", out, "--verbose")
    assert result.returncode == 0, result.stderr
    assert f"{ARGUMENT}: archived rows (a table)" in result.stderr
    assert tables_of(out) == tables_of(of_files)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["created_from"] == [ARGUMENT]


def test_a_question_to_a_table_is_answered_as_one_to_its_files(
    groupscope: Groupscope, of_files: Path
) -> None:
    asked = ("describe", "--group", "billing-ledger", "--group", "parcel-router")
    theirs = groupscope(*asked, of_files, "--format", "csv")
    ours = groupscope(*asked, "--from-table", TABLE, "--format", "csv")
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
    assert theirs.returncode == 3
    assert "do not show transactions" in theirs.stdout


def test_a_table_may_have_changed_so_that_it_is_decoded_again(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    asked = ("list", "--from-table", TABLE, "--out", tmp_path / "kept")
    first, again = groupscope(*asked), groupscope(*asked)
    assert first.returncode == again.returncode == 3
    assert "not decoded again" not in again.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--from-table", "ops.of_nobody"), "--from-table=ops.of_nobody: Spark cannot read such"),
        (("--from-table", "a..b"), "--from-table=a..b: Spark cannot read such"),
        (("--from-table", " "), "name a table, as in ops.offsets_raw"),
        ((), "Missing argument 'INPUT...'"),
    ],
)
def test_what_is_no_table_is_one_clear_error(
    groupscope: Groupscope, arguments: tuple[str, ...], error: str
) -> None:
    result = groupscope("list", *arguments)
    assert result.returncode == 2
    assert error in result.stderr
    assert "Traceback" not in result.stderr


def test_text_in_a_table_is_read_where_its_encoding_is_named(
    groupscope: Groupscope, spark: SparkSession, of_files: Path, tmp_path: Path
) -> None:
    name = f"{TABLE}_text"
    spark.sql(
        f"CREATE VIEW {name} AS SELECT * EXCEPT (key, value), hex(key) AS key, "
        f"hex(value) AS value FROM {TABLE}"
    )
    refused = groupscope("replay", "--from-table", name, "--out", tmp_path / "refused")
    assert refused.returncode == 2
    assert "column key is string, and must be binary" in refused.stderr
    out = tmp_path / "of-text"
    told = groupscope("replay", "--from-table", name, "--value-encoding", "hex", "--out", out)
    assert told.returncode == 0, told.stderr
    assert tables_of(out) == tables_of(of_files)
