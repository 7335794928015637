"""Rows of the data source `kafka_dump`, read as Spark reads them, without it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from analytics import KafkaDump
from tests.support.value_order import in_value_order

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader


def reader(path: Path, options: Mapping[str, str]) -> tuple[DataSourceReader, pa.Schema]:
    """The reader of a read, and the columns that Spark is told of."""
    source = KafkaDump({"path": str(path), **{each.lower(): options[each] for each in options}})
    schema = source.schema()
    return source.reader(schema), to_arrow_schema(schema, timezone="UTC")


def loaded(path: Path, **options: str) -> pa.Table:
    """Read as Spark does: the reader and its partitions travel to the tasks."""
    found, columns = reader(path, options)
    parts = [pickle.loads(pickle.dumps(each)) for each in found.partitions()]
    there = pickle.loads(pickle.dumps(found))
    batches = [batch for each in parts for batch in there.read(each)]
    # Spark compares the first batch with what it was told, and reads memory by it.
    assert all(batch.schema.equals(columns) for batch in batches)
    return pa.Table.from_batches(batches, columns)


def assert_same(found: pa.Table, wanted: pl.DataFrame | pa.Table) -> None:
    names = wanted.columns if isinstance(wanted, pl.DataFrame) else wanted.column_names
    assert found.column_names == names
    assert in_value_order(found).equals(in_value_order(wanted))
