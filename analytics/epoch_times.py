"""Epoch milliseconds, which may be any number of 64 bits, as times that a calendar has.

Kafka stores times as int64 and holds none of them against a calendar: clients, clocks and damage
write what they like. What no calendar has is no time, as -1 is none; the nearest one that there is
would be a time that nobody wrote. `analytics.time_columns` does the same to columns.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Which of many numbers are times: `analytics.epoch_times` for numpy alone.


def are_times(milliseconds: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return of which numbers there is a time; -1 and what no calendar has are none."""
    found: NDArray[np.bool_] = (milliseconds >= 0) & (milliseconds <= LAST_MS)
    return found


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the last instant that Spark's timestamps are specified for."""


def time_of(milliseconds: int | None) -> datetime | None:
    """Return the time of epoch milliseconds; None for none, before 1970 and after 9999."""
    if milliseconds is None or not 0 <= milliseconds <= LAST_MS:
        return None
    return EPOCH + timedelta(milliseconds=milliseconds)


def iso_time(milliseconds: int | None) -> str | None:
    """Return a time as ``2026-11-21T08:15:00.000Z``; None where `time_of` has none."""
    time = time_of(milliseconds)
    if time is None:
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds_of(time: datetime) -> int:
    """Return the epoch milliseconds of a time, rounded down."""
    return (time - EPOCH) // timedelta(milliseconds=1)
