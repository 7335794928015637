"""Burrow's verdict on one partition, by the commits that it would remember.

The rules are those of Burrow's evaluator (``calculatePartitionStatus``) and of its storage
(``addConsumerOffset``), with one addition: a lag that nothing tells is unknown, and a verdict that
would rest on it is `NOT_EVALUABLE` instead of a guess. Where every lag is known the verdict is
Burrow's own.

These are loops over numbers, to be compiled: they make no arrays and call nothing but each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

NOT_EVALUABLE: Final = 0
OK: Final = 1
WARN: Final = 2
STOP: Final = 4
STALL: Final = 5
REWIND: Final = 6
NAMES: Final = {
    NOT_EVALUABLE: "NOT_EVALUABLE",
    OK: "OK",
    WARN: "WARN",
    STOP: "STOP",
    STALL: "STALL",
    REWIND: "REWIND",
}
"""Burrow's words, by Burrow's numbers; `NOT_EVALUABLE` is ours."""

UNKNOWN: Final = -1
"""A lag or an end offset that nothing tells."""


def status_of_window(
    windows: Numbers,
    first: int,
    count: int,
    current_lag: int,
    has_stopped: bool,  # noqa: FBT001
    allowed_lag: int,
) -> int:
    """Return the status by the commits of a window.

    Args:
        windows: A row of committed offsets, one of their times, and one of the lags when they were
            committed (`UNKNOWN` where nothing tells).
        first: Where in the rows the window begins.
        count: How many commits are in it.
        current_lag: The lag now, `UNKNOWN` where nothing tells.
        has_stopped: Rule 3 holds: it is longer since the last commit than the window spans, and no
            end offset that is remembered shows that there was nothing to read.
        allowed_lag: A lag up to this is none.
    """
    if count == 0 or 0 <= current_lag <= allowed_lag:
        return OK
    if current_lag == UNKNOWN:
        return NOT_EVALUABLE
    if has_stopped:
        return STOP
    if is_rewound(windows[0], first, count):
        return REWIND
    return status_by_lags(windows[0], windows[2], first, count, allowed_lag)


def is_rewound(offsets: Numbers, first: int, count: int) -> bool:
    """Return whether the first step back of a window was not made good in it (rule 2)."""
    for place in range(first + 1, first + count):
        if offsets[place] < offsets[place - 1]:
            for later in range(place, first + count):  # noqa: SIM110 - compiled: no generators
                if offsets[later] >= offsets[place - 1]:
                    return False
            return True
    return False


def status_by_lags(
    offsets: Numbers, lags: Numbers, first: int, count: int, allowed_lag: int
) -> int:
    """Return the status by rules 1, 4 and 5, which ask for the lag at each commit."""
    are_all_known = True
    is_stalled = True
    greatest = UNKNOWN
    has_decreased = False
    for place in range(first, first + count):
        if offsets[place] != offsets[first]:
            is_stalled = False
        lag = lags[place]
        if lag == UNKNOWN:
            are_all_known = False
        elif lag <= allowed_lag:
            return OK
        elif lag < greatest:
            # Whatever the lags between them were: somewhere it went down.
            has_decreased = True
        else:
            greatest = lag
    if not are_all_known:
        return OK if has_decreased and not is_stalled else NOT_EVALUABLE
    if is_stalled:
        return STALL
    return OK if has_decreased else WARN


def stops_at(first_time: int, last_time: int) -> int:
    """Return the first full second, in milliseconds, at which rule 3 holds."""
    return (2 * last_time - first_time) // 1000 * 1000 + 1000
