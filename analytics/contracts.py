"""A table's contract (`schemas/tables/`) as Arrow and as polars, and rows that are made to fit it.

A frame is held against its contract where it is made: a column that lacks, or that is none of the
contract's, is an error there and never a default; so is a value that its closed list does not have.

Rows of a table in the order of its key, sorted only as far as they are not.

Columns of decoded rows: where a record lies, what stored values mean, rows as Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.epoch_times import LAST_MS, time_of
from schemas import ZERO_UUID, table
from schemas.reading import SchemaError

_FIRST_FEW: Final = 1000
_SEVERAL: Final = 2


def in_key_order(rows: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Sort rows by their key, nulls last; rows with equal keys stay as they are to each other.

    To look whether rows are in order takes a tenth of the time of sorting them by names. Rows that
    are made group by group are often in order but for the offset that leads the key.

    Args:
        rows: They have the columns of the key.
        key: What they are sorted by.
    """
    if len(rows) < _SEVERAL:
        return rows
    telling = [name for name in key if not _is_same(rows[name])]
    if _are_ordered(rows, telling):
        return rows
    numbers = list(takewhile(lambda name: rows[name].dtype.is_integer(), telling))
    if numbers:
        rows = rows.sort(numbers, nulls_last=True, maintain_order=True)
        if _are_ordered(rows, telling):
            return rows
    return rows.sort(telling, nulls_last=True, maintain_order=True)


def are_in_strict_order(rows: pl.DataFrame, key: Sequence[str]) -> bool:
    """Return whether each row is greater by a key than the one before it: then no two are alike.

    Args:
        rows: They have the columns of the key.
        key: By what they are compared; a null comes last.
    """
    telling = [name for name in key if not _is_same(rows[name])]
    if len(rows) < _SEVERAL:
        return True
    few = rows.head(_FIRST_FEW)
    is_ordered = _is_ordered(telling, is_strict=True)
    return bool(telling) and all(each.select(is_ordered).item() for each in (few, rows))


def _is_same(values: pl.Series) -> bool:
    """Whether all rows have the same value."""
    if values.null_count() in (0, len(values)):
        return not len(values) or values[0] is None or bool((values == values[0]).all())
    return False


def _are_ordered(rows: pl.DataFrame, key: Sequence[str]) -> bool:
    few = rows.head(_FIRST_FEW)
    return all(each.select(_is_ordered(key)).item() for each in (few, rows))


def _is_ordered(key: Sequence[str], *, is_strict: bool = False) -> pl.Expr:
    """Whether no row is less than the one before it, nor equal to it where that is strict."""
    follows = pl.lit(value=not is_strict)
    for name in reversed(key):
        before, here = pl.col(name).shift(1), pl.col(name)
        is_less = (before < here).fill_null(before.is_not_null() & here.is_null())
        follows = is_less | (before.eq_missing(here) & follows)
    return follows.slice(1).all() if key else follows


ARROW_TYPES: Final = {
    "string": pa.string(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
    "array<int>": pa.list_(pa.int32()),
    "array<struct<member_id:string,client_id:string,client_host:string>>": pa.list_(
        pa.struct(
            [("member_id", pa.string()), ("client_id", pa.string()), ("client_host", pa.string())]
        )
    ),
    (
        "array<struct<copy:string,topic:string,partition:int,offset:bigint,segment:string,"
        "batch_position:bigint>>"
    ): pa.list_(
        pa.struct(
            [
                *(("copy", pa.string()), ("topic", pa.string()), ("partition", pa.int32())),
                *(("offset", pa.int64()), ("segment", pa.string()), ("batch_position", pa.int64())),
            ]
        )
    ),
}
"""Arrow's types by the names that contracts have, which are Spark's."""

_POLARS_TYPES: Final[dict[str, pl.DataType]] = {
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


def arrow_schema(name: str) -> pa.Schema:
    """Return the columns of a table ("rebalances") as Arrow has them."""
    return pa.schema([(each.name, ARROW_TYPES[each.type]) for each in table(name).columns])


def contract_schema(name: str) -> pl.Schema:
    """Return the columns of a table ("group_epochs") as polars has them."""
    return pl.Schema({each.name: _POLARS_TYPES[each.type] for each in table(name).columns})


def check_columns(name: str, columns: Sequence[str]) -> None:
    """Check that a table has the columns of its contract, and no others.

    Args:
        name: Of the table.
        columns: Their names.

    Raises:
        SchemaError: A column lacks, or is none of the contract's.
    """
    known = [each.name for each in table(name).columns]
    lacking = [each for each in known if each not in columns]
    further = [each for each in columns if each not in known]
    if lacking or further:
        parts = [
            *([f"lacks {', '.join(lacking)}"] if lacking else []),
            *([f"has {', '.join(further)} besides"] if further else []),
        ]
        raise SchemaError(f"table {name} is not as its contract has it: it {' and '.join(parts)}")


def check_values(name: str, rows: pl.DataFrame | pa.Table) -> None:
    """Check that columns with a closed list of values have no others.

    Args:
        name: Of the table.
        rows: Some of its rows, with some of its columns.

    Raises:
        SchemaError: A value is none of its column's.
    """
    there = rows.columns if isinstance(rows, pl.DataFrame) else rows.column_names
    for column, known in table(name).closed_columns:
        if column not in there:
            continue
        unknown = sorted(map(str, _distinct(rows, column) - known - {None}))
        if unknown:
            raise SchemaError(
                f"table {name} is not as its contract has it: {column} is {unknown[0]!r}, and has "
                f"to be one of {', '.join(sorted(known))}"
            )


def _distinct(rows: pl.DataFrame | pa.Table, column: str) -> set[str | None]:
    if isinstance(rows, pl.DataFrame):
        values = rows[column]
        if values.dtype == pl.List:
            values = values.explode()
        return set(values.unique().cast(pl.String).to_list())
    found = rows[column]
    if pa.types.is_list(found.type):
        found = pc.list_flatten(found)
    return set(pc.unique(found).to_pylist())


def table_of(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table; times are epoch milliseconds, null where no calendar has them.

    Args:
        name: Of the table.
        rows: Each has a value for every column of the contract.

    Raises:
        SchemaError: A value is none of its column's.
    """
    made = pa.table(
        {
            each.name: _column([row[each.name] for row in rows], ARROW_TYPES[each.type])
            for each in table(name).columns
        }
    )
    check_values(name, made)
    return made


def _column(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(type_):
        values = [time_of(each) if isinstance(each, int) else each for each in values]
    return pa.array(values, type_)


def table_of_frame(name: str, frame: pl.DataFrame) -> pa.Table:
    """Return a frame as a table.

    Args:
        name: Of the table ("rebalances").
        frame: Has a column for each of the contract's, under its name.

    Raises:
        SchemaError: A value is none of its column's.
    """
    check_values(name, frame)
    types = arrow_schema(name)
    return frame.select(types.names).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(types)


def contract_frame(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Select and cast the columns of a table's contract.

    Args:
        frame: Has a column for each of the contract's, under its name.
        name: The table ("group_epochs").
    """
    schema = contract_schema(name)
    return frame.select(pl.col(each).cast(kind) for each, kind in schema.items())


def in_contract_order(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of a table's contract, rows sorted by its key; nulls last."""
    columns = [each.name for each in table(name).columns]
    return in_key_order(frame.select(columns), table(name).key)


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
