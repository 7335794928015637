"""A table's contract (`schemas/tables/`) as Arrow and as polars, and rows that are made to fit it.

A frame is held against its contract where it is made: a column that lacks, or that is none of the
contract's, is an error there and never a default; so is a value that its closed list does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.epoch_times import time_of
from analytics.key_order import in_key_order
from schemas import table
from schemas.reading import SchemaError

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
