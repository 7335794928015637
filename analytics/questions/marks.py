"""Marks of what the dump lacks on rows of evaluations, from the tables that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from analytics.replay.log.losses import MARKS, with_marks_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def marked(rows: pa.Table, owners: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return rows with `complete` and `missing`: what is lacking of what they are made of.

    Args:
        rows: Have `key`; where they are marked already, these marks stay, too.
        owners: Have `key`, of types that can be cast to theirs, and `missing`.
        key: Columns of both, without nulls.
    """
    own = [name for name in MARKS if name in rows.column_names]
    types = pa.schema([rows.schema.field(name) for name in key])
    lacking = owners.select(list(key)).cast(types).append_column("missing", owners["missing"])
    found = with_marks_of(pl.DataFrame(rows.select([*key, *own])), pl.DataFrame(lacking), key)
    return _with(rows, found)


def _with(rows: pa.Table, completeness: pl.DataFrame) -> pa.Table:
    marks = (
        ("complete", completeness["complete"].to_arrow()),
        ("missing", completeness["missing"].to_arrow().cast(pa.string())),
    )
    for name, column in marks:
        if name in rows.column_names:
            rows = rows.drop_columns([name])
        rows = rows.append_column(name, column)
    return rows
