"""Columns of epoch milliseconds as columns of times: `analytics.epoch_times` for many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from analytics.epoch_times import are_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

TIMESTAMP: Final = pa.timestamp("us", "UTC")


def times_of(milliseconds: NDArray[np.int64], is_none: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return epoch milliseconds as `TIMESTAMP`, null where there is no time.

    Args:
        milliseconds: Any numbers.
        is_none: Which rows have none, whatever their number is.
    """
    outside = ~are_times(milliseconds)
    if is_none is not None:
        outside |= is_none
    if not outside.any():
        return pa.array(milliseconds * 1000).view(TIMESTAMP)
    return pa.array(np.where(outside, 0, milliseconds) * 1000, mask=outside).view(TIMESTAMP)
