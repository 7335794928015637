"""Columns of decoded rows: where a record lies, what stored values mean, rows as Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl
import pyarrow as pa

from analytics.contracts import ARROW_TYPES
from analytics.epoch_times import LAST_MS
from schemas import ZERO_UUID, table

# Where a decoded record lies in a dump, besides its topic, partition and offset.

IN_DUMP = ("copy", "segment", "batch_position")
"""What finds a record again."""
POSITION = ("leader_epoch", *IN_DUMP)
"""The same with the epoch of the leader that appended it."""

BEFORE_ALL: Final = -1
"""An offset before every record."""
AFTER_ALL: Final = 2**63 - 1
"""An offset after every record."""


# From what is stored to what it means, as polars expressions: times, absent numbers, ids.

TIME: Final = pl.Datetime("us", "UTC")


def instant(milliseconds: pl.Expr) -> pl.Expr:
    """Return epoch milliseconds as a timestamp; null where there is none, or none that fits."""
    fits = milliseconds.is_between(0, LAST_MS)
    return (pl.when(fits).then(milliseconds).cast(pl.Int64) * 1000).cast(TIME)


def present(number: pl.Expr, absent: int = -1) -> pl.Expr:
    """Return a number, null where it is the one that means absent."""
    return pl.when(number != absent).then(number)


def offset_in_force(stored: pl.Expr) -> pl.Expr:
    """Return a committed offset, null where it is below 0.

    Brokers store whatever is committed; consumers, the admin client and the tools take what is
    below 0 for none (``OffsetFetchResponse.INVALID_OFFSET`` is -1).
    """
    return pl.when(stored >= 0).then(stored)


def uuid(value: pl.Expr) -> pl.Expr:
    """Return an id of 22 characters, null where it is zero."""
    return pl.when(value != ZERO_UUID).then(value)


def text(value: pl.Expr) -> pl.Expr:
    """Return a text, null where it is empty."""
    return pl.when(value != "").then(value)


def word(number: pl.Expr, words: Mapping[int, str], otherwise: str) -> pl.Expr:
    """Return the word for a stored number; null stays null."""
    said = number.replace_strict(words, default=otherwise, return_dtype=pl.String)
    return pl.when(number.is_not_null()).then(said)


# Polars frames as the Arrow tables that Spark and Parquet files are given.

# Columns as a table that has the names, types and order of its contract, without Spark.


def contract_rows(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """Arrange columns as the contract of a table has them, sorted by its key.

    Args:
        name: The table ("share_batches").
        columns: Arrow or numpy arrays, one at least; what is not among them is null.
    """
    contract = table(name)
    rows = len(next(iter(columns.values())))
    arrays = [
        _array(columns[each.name], ARROW_TYPES[each.type])
        if each.name in columns
        else pa.nulls(rows, ARROW_TYPES[each.type])
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
