"""How old the oldest record left to read is, by when the log's end passed it.

The first unread record was appended when the end of the log went beyond the committed offset.
Between two samples of the end that instant is interpolated; before the first sample it is only
known to be earlier. Nothing is extrapolated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.evaluate.lag.end_offset_samples import EndOffsetSamples

EXACT: Final = "exact"
AT_LEAST: Final = "at_least"
UNKNOWN: Final = "unknown"

TIME_LAG = pa.schema([("time_lag_ms", pa.int64()), ("time_lag_bound", pa.string())])


def time_lags(rows: pa.Table, samples: EndOffsetSamples, as_of_ms: int) -> pa.Table:
    """Return `time_lag_ms` and `time_lag_bound` of each row.

    Args:
        rows: `topic`, `partition`, `committed_offset`, `lag`.
        samples: Where logs ended, and when.
        as_of_ms: The instant; later samples do not count.
    """
    names = ("topic", "partition", "committed_offset", "lag")
    found = [
        _time_lag(samples, (topic, partition), offset, lag, as_of_ms)
        for topic, partition, offset, lag in zip(
            *(rows[name].to_pylist() for name in names), strict=True
        )
    ]
    return pa.table(
        [
            pa.array([each[0] for each in found], pa.int64()),
            pa.array([each[1] for each in found], pa.string()),
        ],
        schema=TIME_LAG,
    )


def _time_lag(
    samples: EndOffsetSamples,
    place: tuple[str, int],
    offset: int | None,
    lag: int | None,
    as_of_ms: int,
) -> tuple[int | None, str]:
    if offset is None or lag is None:
        return None, UNKNOWN
    if lag <= 0:
        return 0, EXACT
    first, end = samples.places.get(place, (0, 0))
    times, ends = samples.times[first:end], samples.ends[first:end]
    count = int(np.searchsorted(times, as_of_ms, side="right"))
    times, ends = times[:count], ends[:count]
    beyond = np.flatnonzero(ends > offset)
    if not beyond.size:
        return None, UNKNOWN
    # An end may go back where a topic was made anew: the stretch that counts is the last one.
    back = np.flatnonzero(ends <= offset)
    passed = int(back[-1]) + 1 if back.size else 0
    if passed == count:
        return None, UNKNOWN
    if passed == 0:
        age = as_of_ms - int(times[0])
        return (age, AT_LEAST) if age > 0 else (None, UNKNOWN)
    return as_of_ms - _passed_at(times, ends, passed, offset), EXACT


def _passed_at(times: NDArray[np.int64], ends: NDArray[np.int64], passed: int, offset: int) -> int:
    """Return when the end went beyond an offset, on the line between two samples."""
    before, after = int(ends[passed - 1]), int(ends[passed])
    share = (offset - before) / (after - before)
    begun, ended = int(times[passed - 1]), int(times[passed])
    return begun + round(share * (ended - begun))
