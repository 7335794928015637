"""Decoded tables as frames of polars: from rows that name a few columns only, or from a dump."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.contracts import polars_rows
from analytics.decode.tables import table_schema
from analytics.decode.tasks import Settings, packed, run_task
from analytics.dump.copies.plan import PlanOptions, plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def frame_of(table: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of a decoded table; what a row does not name is null."""
    return polars_rows(pa.Table.from_pylist(list(rows), table_schema(table)))


def frames_of(
    rows: Mapping[str, Iterable[Mapping[str, Any]]], tables: Iterable[str]
) -> dict[str, pl.DataFrame]:
    """Several decoded tables; those without rows are empty."""
    return {table: frame_of(table, rows.get(table, [])) for table in tables}


def named_rows(frame: pl.DataFrame) -> list[SimpleNamespace]:
    """Rows with a column's value as what has its name."""
    return [SimpleNamespace(**row) for row in frame.iter_rows(named=True)]


def frames_of_dump(log_dir: Path, topic: str, tables: Iterable[str]) -> dict[str, pl.DataFrame]:
    """Decoded tables of one topic of one copy, decoded in this process and kept in memory."""
    return {
        table: polars_rows(rows) for table, rows in tables_of_dump(log_dir, topic, tables).items()
    }


def tables_of_dump(log_dir: Path, topic: str, tables: Iterable[str]) -> dict[str, pa.Table]:
    """The same as Arrow has them."""
    slices = plan([str(log_dir)], PlanOptions(topics=frozenset({topic}))).slices
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as staging:
        for number, chosen in enumerate(packed(slices)):
            numbered = [(index, slices[index]) for index in chosen]
            for part in run_task(number, numbered, Settings(staging)).parts:
                name = part.table.rsplit("/", 1)[-1]
                parts[name].append(pq.read_table(part.path, partitioning=None))
    return {
        table: pa.concat_tables(parts[table]) if parts[table] else table_schema(table).empty_table()
        for table in tables
    }


def without_log_start(log_dir: Path, topic: str, target: Path) -> Path:
    """Copy the partitions of a topic without the checkpoints beside them.

    What lies below the log start is then read too: before it was deleted it was the state, and a
    cut may lie that far back.
    """
    copy = target / log_dir.name
    copy.mkdir(parents=True)
    for partition in log_dir.glob(f"{topic}-*"):
        shutil.copytree(partition, copy / partition.name)
    shutil.copy(log_dir / "meta.properties", copy)
    return copy
