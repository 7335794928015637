"""Rows as a table that has the columns and types of its contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from analytics.epoch_times import time_of
from schemas import table

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
    "array<struct<member_id:string,client_id:string,client_host:string>>": pa.list_(
        pa.struct(
            [("member_id", pa.string()), ("client_id", pa.string()), ("client_host", pa.string())]
        )
    ),
}
"""Arrow's types by the names that contracts have, which are Spark's."""


def table_of(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table; times are epoch milliseconds, null where no calendar has them."""
    return pa.table(
        {
            each.name: _column([row[each.name] for row in rows], ARROW_TYPES[each.type])
            for each in table(name).columns
        }
    )


def _column(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(type_):
        values = [time_of(each) if isinstance(each, int) else each for each in values]
    return pa.array(values, type_)
