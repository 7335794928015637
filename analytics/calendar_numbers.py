"""Which of many numbers are times: `analytics.epoch_times` for numpy alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.epoch_times import LAST_MS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def are_times(milliseconds: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return of which numbers there is a time; -1 and what no calendar has are none."""
    found: NDArray[np.bool_] = (milliseconds >= 0) & (milliseconds <= LAST_MS)
    return found
