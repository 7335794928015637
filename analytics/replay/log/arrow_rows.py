"""Polars frames as the Arrow tables that Spark and Parquet files are given."""

from __future__ import annotations

import polars as pl
import pyarrow as pa


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
