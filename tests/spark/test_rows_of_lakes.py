"""Tables of Delta Lake and Iceberg: their own readers give a DataFrame, which is the dump."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from analytics import open_dump
from analytics.errors import InputNotRecognizedError
from tests.support.archived import rows_of, rows_of_topics, write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


TABLES = ("committed_offsets", "groups", "members", "offset_history")
REMOVED = 9
"""A partition whose rows were written, and deleted from the table: its files still have them."""


@pytest.fixture(scope="module")
def rows(failover_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    folder = tmp_path_factory.mktemp("rows")
    all_rows = rows_of_topics(failover_dump / "broker-2")
    return pq.read_table(write_parquet(folder / "rows.parquet", all_rows))


def kept(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.not_equal(rows["partition"], REMOVED))


def delta_table(folder: Path, rows: pa.Table) -> pa.Table:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(folder), rows)
    opened = deltalake.DeltaTable(str(folder))
    opened.delete(f"partition = {REMOVED}")
    return pa.table(opened.to_pyarrow_table())


def iceberg_table(folder: Path, rows: pa.Table) -> pa.Table:
    catalogs = pytest.importorskip("pyiceberg.catalog")
    folder.mkdir()
    catalog = catalogs.load_catalog(
        "lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}"
    )
    catalog.create_namespace("ops")
    opened = catalog.create_table("ops.raw", rows.schema, location=f"file://{folder}/raw")
    opened.append(rows)
    opened.delete(f"partition = {REMOVED}")
    return opened.scan().to_arrow()


WRITERS: dict[str, Callable[[Path, pa.Table], pa.Table]] = {
    "Delta Lake": delta_table,
    "Iceberg": iceberg_table,
}


@pytest.fixture(scope="module")
def of_files(
    spark: SparkSession, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    path = tmp_path_factory.mktemp("files") / "rows.parquet"
    pq.write_table(kept(rows), path)
    with open_dump(str(path)) as opened:
        return rows_of(opened.replay(spark, tables=TABLES), TABLES)


@pytest.mark.parametrize("kind", WRITERS)
def test_what_its_own_reader_reads_is_the_dump(
    spark: SparkSession,
    rows: pa.Table,
    of_files: dict[str, list[str]],
    tmp_path: Path,
    kind: str,
) -> None:
    read = WRITERS[kind](tmp_path / "lake", rows)
    assert read.num_rows == kept(rows).num_rows < rows.num_rows
    with open_dump(spark.createDataFrame(read)) as opened:
        assert rows_of(opened.replay(tables=TABLES), TABLES) == of_files
    folder = tmp_path / "lake" / ("raw" if kind == "Iceberg" else "")
    assert list(folder.rglob("*.parquet"))
    with pytest.raises(InputNotRecognizedError, match=f"files of a table of {kind}"):
        open_dump(str(folder))
