"""Polars frames as the Arrow tables that Spark and Parquet files are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl
import pyarrow as pa

from schemas import table

# Columns as a table that has the names, types and order of its contract, without Spark.

_TYPES: Final = {
    "string": pa.string(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def contract_rows(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """Arrange columns as the contract of a table has them, sorted by its key.

    Args:
        name: The table ("share_batches").
        columns: Arrow or numpy arrays, one at least; what is not among them is null.
    """
    contract = table(name)
    rows = len(next(iter(columns.values())))
    arrays = [
        _array(columns[each.name], _TYPES[each.type])
        if each.name in columns
        else pa.nulls(rows, _TYPES[each.type])
        for each in contract.columns
    ]
    made = pa.table(arrays, names=[each.name for each in contract.columns])
    return made.sort_by([(each, "ascending") for each in contract.key])


def _array(values: Any, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:  # noqa: ANN401
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.cast(kind)
    return pa.array(values, kind)


def arrow_rows(frame: pl.DataFrame) -> pa.Table:
    """Return the rows with the types that contracts name: texts and lists with short offsets."""
    rows = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    return rows.cast(pa.schema([pa.field(each.name, _short(each.type)) for each in rows.schema]))


def polars_rows(rows: pa.Table) -> pl.DataFrame:
    """Return rows of Arrow as a frame of polars."""
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _short(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_list(kind):
        return pa.list_(_short(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _short(each.type)) for each in kind])
    return kind
