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
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    _Numbers = NDArray[np.int64]

    from analytics.replayed.end_offset_samples import EndOffsetSamples

EXACT: Final = "exact"
AT_LEAST: Final = "at_least"
UNKNOWN: Final = "unknown"
_NONE: Final = -1
"""In place of an age or an offset that is not known."""

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
    offsets, lags = (
        pc.fill_null(rows[name], _NONE).to_numpy() for name in ("committed_offset", "lag")
    )
    is_known = (pc.and_(pc.is_valid(rows["committed_offset"]), pc.is_valid(rows["lag"]))).to_numpy()
    is_behind = is_known & (lags > 0)
    age, within = _since_passed(samples, rows, offsets, is_behind, as_of_ms)
    is_exact = within != _NONE
    left = _oldest_left(written, rows, offsets, is_behind & ~is_exact, as_of_ms)
    age = np.where(is_exact, age, np.maximum(age, left))
    is_caught_up = is_known & ~is_behind
    bound = np.select([is_caught_up | is_exact, age > 0], [EXACT, AT_LEAST], UNKNOWN)
    age, within = np.where(is_caught_up, 0, age), np.where(is_caught_up, 0, within)
    return pa.table(
        [
            pa.array(age, mask=bound == UNKNOWN),
            pa.array(bound.tolist(), pa.string()),
            pa.array(within, mask=within == _NONE),
        ],
        schema=TIME_LAG,
    )


def _of_each_place(
    samples: EndOffsetSamples, rows: pa.Table, wanted: NDArray[np.bool_]
) -> Iterator[tuple[_Numbers, _Numbers, _Numbers]]:
    """Yield times and ends of each partition, and which of the rows that are wanted are of it."""
    if not len(samples.times):
        return
    first, end = samples.of_keys(rows)
    index = np.flatnonzero(wanted & (end > first))
    index = index[np.argsort(first[index], kind="stable")]
    for part in np.split(index, np.flatnonzero(np.diff(first[index])) + 1):
        if len(part):
            place = slice(int(first[part[0]]), int(end[part[0]]))
            yield samples.times[place], samples.ends[place], part


def _oldest_left(
    written: EndOffsetSamples,
    rows: pa.Table,
    offsets: _Numbers,
    wanted: NDArray[np.bool_],
    as_of_ms: int,
) -> _Numbers:
    """Return the age of the oldest record that is left to read, of those whose time is known.

    One that is older may be left, too: this is a lower bound, however clocks differ.
    """
    found = np.full(rows.num_rows, _NONE)
    for times, ends, part in _of_each_place(written, rows, wanted):
        order = np.argsort(ends, kind="stable")
        oldest = np.minimum.accumulate(times[order][::-1])[::-1]
        place = np.searchsorted(ends[order], offsets[part], side="right")
        is_left = place < len(ends)
        age = as_of_ms - oldest[np.minimum(place, len(ends) - 1)]
        found[part] = np.where(is_left, np.maximum(age, 0), _NONE)
    return found


def _since_passed(
    samples: EndOffsetSamples,
    rows: pa.Table,
    offsets: _Numbers,
    wanted: NDArray[np.bool_],
    as_of_ms: int,
) -> tuple[_Numbers, _Numbers]:
    """Return since when ends are beyond offsets, and how far that may be off.

    Where it was so at the first sample already, it is so at least since then, and the second is not
    known.
    """
    ages, within = (np.full(rows.num_rows, _NONE) for _ in range(2))
    for every_time, every_end, part in _of_each_place(samples, rows, wanted):
        count = int(np.searchsorted(every_time, as_of_ms, side="right"))
        times, ends = every_time[:count], every_end[:count]
        if not count:
            continue
        # An end may go back where a topic was made anew: the stretch that counts is the last one.
        lowest_after = np.minimum.accumulate(ends[::-1])[::-1]
        passed = np.searchsorted(lowest_after, offsets[part], side="right")
        after = np.minimum(passed, count - 1)
        before = np.maximum(after - 1, 0)
        # On the line between two samples.
        grown = np.maximum(ends[after] - ends[before], 1)
        took = times[after] - times[before]
        at = times[before] + np.rint((offsets[part] - ends[before]) / grown * took)
        is_between = (passed > 0) & (passed < count)
        age = np.where(is_between, as_of_ms - at.astype(np.int64), as_of_ms - int(times[0]))
        ages[part] = np.where(passed < count, np.maximum(age, 0), _NONE)
        within[part] = np.where(is_between, took, _NONE)
    return ages, within
