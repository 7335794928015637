"""Rows of tables that come in no order, to be held against each other."""

from __future__ import annotations

import polars as pl
import pyarrow as pa


def in_value_order(rows: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """Return a table's rows as text, in the order of that."""
    frame = pl.DataFrame(pl.from_arrow(rows)) if isinstance(rows, pa.Table) else rows
    frame = frame.with_columns(pl.selectors.datetime().cast(pl.Datetime("us", "UTC")))
    as_text = frame.with_columns(pl.selectors.by_dtype(pl.List(pl.String)).cast(pl.List(pl.String)))
    return as_text.select(pl.struct(pl.all()).map_elements(repr, pl.String).alias("row")).sort(
        "row"
    )
