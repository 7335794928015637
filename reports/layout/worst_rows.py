"""Tables that are longer than a person reads: the worst rows, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import OutputFormat

MOST: Final = 1_000
"""A table of more rows is summed up."""
SHOWN: Final = 100

Order = Sequence[tuple[str, str]]
"""Columns with "ascending" or "descending"; nulls come last."""


def worst_rows(rows: pa.Table, order: Order, wanted: str, most: int = MOST) -> pa.Table:
    """Return the worst rows of a table that is too long, for people; else all of them.

    Who says how many rows, in which order, or which of them, gets that.
    """
    if rows.num_rows <= most or not _is_up_to_us(wanted):
        return rows
    # Only what is shown is gathered.
    return rows.take(pc.sort_indices(rows, list(order)).slice(0, SHOWN))


def summed_up(counts: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return a line that says what is left out, none where nothing is.

    Args:
        counts: By name of a table, how many rows are shown and how many there are.
    """
    told = [
        f"{shown:,} of {all_:,} {name}" for name, (shown, all_) in counts.items() if shown < all_
    ]
    if not told:
        return []
    return [
        f"the worst are shown: {', '.join(told)}",
        "--top N shows more, --format csv all; --out DIR keeps the tables",
    ]


def _is_up_to_us(wanted: str) -> bool:
    if not isinstance(wanted, OutputFormat):
        return wanted not in ("json", "csv")
    is_said = wanted.top is not None or wanted.sort is not None or wanted.only_problems
    return not (wanted.is_for_programs or is_said)
