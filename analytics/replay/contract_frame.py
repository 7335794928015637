"""Polars frames with exactly the columns that a table's contract declares, in that order."""

from __future__ import annotations

from typing import Final

import polars as pl

from schemas import table

_TYPES: Final[dict[str, pl.DataType]] = {
    "string": pl.String(),
    "tinyint": pl.Int8(),
    "smallint": pl.Int16(),
    "int": pl.Int32(),
    "bigint": pl.Int64(),
    "boolean": pl.Boolean(),
    "double": pl.Float64(),
    "timestamp": pl.Datetime("us", "UTC"),
    "array<string>": pl.List(pl.String()),
    "array<int>": pl.List(pl.Int32()),
}


def contract_schema(name: str) -> pl.Schema:
    """Return the columns of a table ("group_epochs") with their types."""
    return pl.Schema({each.name: _TYPES[each.type] for each in table(name).columns})


def contract_frame(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Select and cast the columns of a table's contract.

    Args:
        frame: Has a column for each of the contract's, under its name.
        name: The table ("group_epochs").
    """
    schema = contract_schema(name)
    return frame.select(pl.col(each).cast(kind) for each, kind in schema.items())
