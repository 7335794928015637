"""How old the oldest record left to read is, by when the log's end passed it.

The first unread record was appended when the end of the log went beyond the committed offset.
Between two samples of the end that instant is interpolated, and is off by less than what lies
between them; before the first sample it is only known to be earlier. Nothing is extrapolated. What
producers' clocks say of records that are left to read is a bound.
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

TIME_LAG = pa.schema(
    [
        ("time_lag_ms", pa.int64()),
        ("time_lag_bound", pa.string()),
        ("time_lag_within_ms", pa.int64()),
    ]
)


def time_lags(
    rows: pa.Table, samples: EndOffsetSamples, written: EndOffsetSamples, as_of_ms: int
) -> pa.Table:
    """Return `time_lag_ms`, `time_lag_bound` and `time_lag_within_ms` of each row.

    Args:
        rows: `topic`, `partition`, `committed_offset`, `lag`.
        samples: Where logs ended, and when.
        written: When records were written, by clocks that may not ascend: at such a time, the
            offset after such a record.
        as_of_ms: The instant; later samples do not count.
    """
    names = ("topic", "partition", "committed_offset", "lag")
    found = [
        _time_lag(samples, written, (topic, partition), offset, lag, as_of_ms)
        for topic, partition, offset, lag in zip(
            *(rows[name].to_pylist() for name in names), strict=True
        )
    ]
    columns = list(zip(*found, strict=True)) or [(), (), ()]
    return pa.table(
        [pa.array(each, one.type) for each, one in zip(columns, TIME_LAG, strict=True)],
        schema=TIME_LAG,
    )


def _time_lag(
    samples: EndOffsetSamples,
    written: EndOffsetSamples,
    place: tuple[str, int],
    offset: int | None,
    lag: int | None,
    as_of_ms: int,
) -> tuple[int | None, str, int | None]:
    if offset is None or lag is None:
        return None, UNKNOWN, None
    if lag <= 0:
        return 0, EXACT, 0
    age, within = _since_passed(samples, place, offset, as_of_ms)
    if age is not None and within is not None:
        return age, EXACT, within
    ages = [each for each in (age, _oldest_left(written, place, offset, as_of_ms)) if each]
    return (max(ages), AT_LEAST, None) if ages else (None, UNKNOWN, None)


def _oldest_left(
    written: EndOffsetSamples, place: tuple[str, int], offset: int, as_of_ms: int
) -> int | None:
    """Return the age of the oldest record that is left to read, of those whose time is known.

    One that is older may be left, too: this is a lower bound, however clocks differ.
    """
    first, end = written.places.get(place, (0, 0))
    is_left = written.ends[first:end] > offset
    if not is_left.any():
        return None
    return max(as_of_ms - int(written.times[first:end][is_left].min()), 0)


def _since_passed(
    samples: EndOffsetSamples, place: tuple[str, int], offset: int, as_of_ms: int
) -> tuple[int | None, int | None]:
    """Return since when the end is beyond an offset, and how far that may be off.

    Where it was so at the first sample already, it is so at least since then.
    """
    first, end = samples.places.get(place, (0, 0))
    times, ends = samples.times[first:end], samples.ends[first:end]
    count = int(np.searchsorted(times, as_of_ms, side="right"))
    times, ends = times[:count], ends[:count]
    # An end may go back where a topic was made anew: the stretch that counts is the last one.
    back = np.flatnonzero(ends <= offset)
    passed = int(back[-1]) + 1 if back.size else 0
    if passed == count:
        return None, None
    if passed == 0:
        return max(as_of_ms - int(times[0]), 0), None
    within = int(times[passed] - times[passed - 1])
    return as_of_ms - _passed_at(times, ends, passed, offset), within


def _passed_at(times: NDArray[np.int64], ends: NDArray[np.int64], passed: int, offset: int) -> int:
    """Return when the end went beyond an offset, on the line between two samples."""
    before, after = int(ends[passed - 1]), int(ends[passed])
    share = (offset - before) / (after - before)
    begun, ended = int(times[passed - 1]), int(times[passed])
    return begun + round(share * (ended - begun))
