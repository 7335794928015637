"""Tables of a few rows that name a few columns only, as evaluations take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from analytics.contracts import ARROW_TYPES
from schemas import table


def rows_of(name: str, rows: Iterable[Mapping[str, Any]] = ()) -> pl.DataFrame:
    """Return a state or history table; what a row does not name is null."""
    types = pa.schema([(each.name, ARROW_TYPES[each.type]) for each in table(name).columns])
    return pl.DataFrame(pl.from_arrow(pa.Table.from_pylist(list(rows), types)))
