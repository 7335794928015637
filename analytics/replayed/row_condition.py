"""Which rows of a table are wanted, as some of its columns tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from analytics.contracts import arrow_rows


class RowCondition(NamedTuple):
    """Which rows are wanted.

    Attributes:
        columns: The columns that tell it; none where all rows are.
        mask: Says it of each of some rows, of at least one, with those columns; for Spark a
            function of a module, or a partial of one.
    """

    columns: Sequence[str]
    mask: Callable[[pa.Table], pa.ChunkedArray]

    def of(self, rows: pa.Table) -> pa.Table:
        """Return those of some rows that are wanted."""
        return rows.filter(self.mask(rows)) if rows.num_rows and self.columns else rows

    def of_frame(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the same: what is not wanted never becomes a table of Arrow."""
        if rows.is_empty() or not self.columns:
            return rows
        return rows.filter(pl.Series(self.mask(arrow_rows(rows.select(self.columns)))))
