"""Whether a lag grows, how fast a group commits and reads, and when its lag would be gone.

The lag at the beginning of a stretch of time is where the log ended then, on the line between two
samples, minus the offset that was in force; how it changed until the instant is the trend. Rates
are of the history that is there. When a lag would be gone rests on these staying as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.replayed.end_offset_samples import EndOffsetSamples
    from schemas.evaluation_rules import LagRules

    _Floats = NDArray[np.float64]

GROWING, SHRINKING, STEADY = "growing", "shrinking", "steady"
EXACT, ESTIMATED, AT_LEAST, NEVER, UNKNOWN = "exact", "estimated", "at_least", "never", "unknown"

_SECOND_MS: Final = 1000.0
_LONGEST_MS: Final = float(1 << 53)
TREND = pa.schema(
    [
        ("unchanged_share", pa.float64()),
        ("commits_per_second", pa.float64()),
        ("records_per_second", pa.float64()),
        ("trend", pa.string()),
        ("trend_since", pa.timestamp("us", "UTC")),
        ("lag_per_second", pa.float64()),
        ("drain_ms", pa.int64()),
        ("drain_bound", pa.string()),
    ]
)


def trends(rows: pa.Table, samples: EndOffsetSamples, as_of_ms: int, rules: LagRules) -> pa.Table:
    """Return the columns of `TREND` for each row.

    Args:
        rows: `topic`, `partition`, `lag`; `commits`, `unchanged_commits`, `timed_commits`,
            `timed_advanced`, `first_commit_at`, `last_commit_at`, `last_advance_at`, `since_at`,
            `since_offset`, `has_later_gaps`, `is_undated`, `complete`.
        samples: Where logs ended, and when.
        as_of_ms: The instant.
        rules: What change is none, and after how long without an advance a group stands still.

    Returns:
        `unchanged_share`: of commits, those of the offset that was in force already.
        `commits_per_second`, `records_per_second`: from the first commit that has a time to the
        last; null where there are not two, where commits between them or behind them may be lost,
        and where a clock was set or wrong. `trend`: growing, shrinking, steady, or null where the
        end of the log or the offset in force is not known for a time before the instant.
        `trend_since`: that time. `lag_per_second`: how the lag changed since. `drain_ms`: until
        nothing is left to read; `drain_bound`: exact where nothing is, estimated where the trend
        goes on, at_least where the log's growth is not known, never where the lag does not shrink,
        else unknown: a single commit shows neither.
    """
    lag = _floats(rows["lag"])
    since = _floats(rows["since_at"]) / _SECOND_MS
    begun = samples.ends_at(rows, since) - _floats(rows["since_offset"])
    change = lag - begun
    took = (as_of_ms - since) / _SECOND_MS
    now_us = as_of_ms * _SECOND_MS
    last, last_advance = _floats(rows["last_commit_at"]), _floats(rows["last_advance_at"])
    # A time later than the instant is not believed, and commits may be lost: nothing tells how long
    # they took, by how much they advanced, nor which was in force when the trend begins. Nor does
    # anything where clocks were set or wrong.
    is_open = (last > now_us) | (last_advance > now_us) | _are_unmeasured(rows)
    is_told = np.isfinite(change) & (took > 0) & ~is_open
    tolerance = np.maximum(
        rules.trend.steady_records, rules.trend.steady_share * np.maximum(lag, begun)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        a_second = np.where(is_told, change / took, np.nan)
        trend = np.select(
            [~is_told, change > tolerance, change < -tolerance], ["", GROWING, SHRINKING], STEADY
        )
    span = np.where(is_open, np.nan, last - _floats(rows["first_commit_at"])) / 1e6
    commits = _floats(rows["commits"])
    read = _over(_floats(rows["timed_advanced"]), span)
    stuck_us = rules.stuck_minutes * 60e6
    is_moving = now_us - last_advance <= stuck_us
    # A single commit of lately may have advanced: what was before it is not known.
    may_move = (commits <= 1) & (now_us - last <= stuck_us)
    reads = np.where(is_moving, read, np.where(may_move | is_open, np.nan, 0.0))
    drain, bound = _drained(lag, trend, a_second, reads)
    return pa.table(
        [
            _known(_over(_floats(rows["unchanged_commits"]), commits)),
            _known(_over(_floats(rows["timed_commits"]) - 1, span)),
            _known(read),
            pa.array(trend.tolist(), pa.string(), mask=~is_told),
            pc.if_else(pa.array(is_told), rows["since_at"].combine_chunks(), None),
            _known(a_second),
            # A quotient of floats may be a little above a whole number that is meant.
            pc.cast(_known(np.minimum(np.ceil(drain.round(6)), _LONGEST_MS)), pa.int64()),
            pa.array(bound.tolist(), pa.string()),
        ],
        schema=TREND,
    )


def _are_unmeasured(rows: pa.Table) -> NDArray[np.bool_]:
    """Return where commits may be lost between those that are there or behind them, or undated."""
    has_gaps = pc.fill_null(rows["has_later_gaps"], fill_value=False)
    is_undated = pc.fill_null(rows["is_undated"], fill_value=False)
    is_whole = pc.fill_null(rows["complete"], fill_value=True)
    found: NDArray[np.bool_] = pc.or_(pc.or_(has_gaps, is_undated), pc.invert(is_whole)).to_numpy()
    return found


def _drained(
    lag: _Floats, trend: NDArray[np.str_], a_second: _Floats, read: _Floats
) -> tuple[_Floats, NDArray[np.str_]]:
    """Return in how many milliseconds a lag is gone (NaN: never, or not known), and how sure."""
    is_trend_told = np.isfinite(a_second)
    cases = [
        ~np.isfinite(lag),
        lag <= 0,
        trend == SHRINKING,
        is_trend_told | (read <= 0),
        np.isfinite(read),
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        drain = np.select(
            cases,
            [np.nan, 0.0, lag / -a_second * _SECOND_MS, np.nan, lag / read * _SECOND_MS],
            np.nan,
        )
    bound = np.select(cases, [UNKNOWN, EXACT, ESTIMATED, NEVER, AT_LEAST], UNKNOWN)
    return drain, bound


def _floats(column: pa.ChunkedArray) -> _Floats:
    """Return numbers, NaN for null; of times their microseconds."""
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.int64())
    # An offset may be as large as a number can be; a rate needs no more digits than these.
    found: _Floats = pc.cast(column, pa.float64(), safe=False).to_numpy().astype(np.float64)
    return found


def _over(amount: _Floats, whole: _Floats) -> _Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: _Floats = np.where(whole > 0, amount / whole, np.nan)
    return shares


def _known(numbers: _Floats) -> pa.Array:
    return pa.array(numbers, mask=~np.isfinite(numbers))
