"""Frames of polars in the columns, the types and the order of a table's contract."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from analytics.questions.contract_table import ARROW_TYPES
from analytics.replay.key_order import in_key_order as by_key
from schemas import table


def table_of_frame(name: str, frame: pl.DataFrame) -> pa.Table:
    """Return a frame as a table.

    Args:
        name: Of the table ("rebalances").
        frame: Has a column for each of the contract's, under its name.
    """
    types = pa.schema([(each.name, ARROW_TYPES[each.type]) for each in table(name).columns])
    return frame.select(types.names).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(types)


def in_key_order(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of a table's contract, rows sorted by its key; nulls last."""
    columns = [each.name for each in table(name).columns]
    return by_key(frame.select(columns), table(name).key)
