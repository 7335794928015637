"""The rows of several DataFrames as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def union_all(frames: Iterable[DataFrame], *, missing_as_null: bool = False) -> DataFrame:
    """Return all rows, columns matched by name.

    Two and two are put together, then those: Spark looks through a query at every step that makes
    it, and one after the other the first of twenty would be looked through twenty times.

    Args:
        frames: One at least.
        missing_as_null: What some lack is null there; else all have the same columns.
    """
    rows = list(frames)
    while len(rows) > 1:
        rest = rows[len(rows) - len(rows) % 2 :]
        rows = [
            first.unionByName(second, allowMissingColumns=missing_as_null)
            for first, second in zip(rows[::2], rows[1::2], strict=False)
        ]
        rows += rest
    return rows[0]
