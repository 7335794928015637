"""Columns of times as they are printed everywhere."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_FORMAT = "%Y-%m-%dT%H:%M:%S"
_MILLISECONDS = pa.timestamp("ms", "UTC")


def times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return instants as text: UTC, milliseconds, Z."""
    instants = pc.cast(column, _MILLISECONDS, safe=False)
    return pc.binary_join_element_wise(pc.strftime(instants, format=_FORMAT), "Z", "")
