"""Columns of times as they are printed everywhere."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_FORMAT = "%Y-%m-%dT%H:%M:%S"
_MILLISECONDS = pa.timestamp("ms", "UTC")


def instants(column: pa.ChunkedArray, not_before: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return instants as text; one that is only bounded says "no later than".

    Args:
        column: The instants, or the latest they can be.
        not_before: The earliest they can be; null where the instant is exact.
    """
    text = times(column)
    bound = pc.binary_join_element_wise("<=", text, " ")
    return pc.if_else(pc.is_valid(not_before), bound, text)


def times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return instants as text: UTC, milliseconds, Z."""
    instants = pc.cast(column, _MILLISECONDS, safe=False)
    return pc.binary_join_element_wise(pc.strftime(instants, format=_FORMAT), "Z", "")
