"""The order of tables about usage: the largest first."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import polars as pl

from analytics.tables.parted_table import Order


def ranking(columns: Mapping[str, bool]) -> Order:
    """Return an order in which nulls come last.

    Args:
        columns: By name whether the largest come first.
    """
    sort = partial(_ranked, by=list(columns), descending=list(columns.values()))
    return Order(list(columns), sort)


def _ranked(rows: pl.DataFrame, by: list[str], descending: list[bool]) -> pl.DataFrame:
    return rows.sort(by, descending=descending, nulls_last=True, maintain_order=True)
