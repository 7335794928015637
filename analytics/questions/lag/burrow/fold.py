"""The loop over commits that keeps Burrow's windows, and tells each change of status.

Commits come in the order of the log. For each partition of each group it keeps the last commits, as
Burrow's storage does (``addConsumerOffset``), and looks again at every commit, at every sample of
an end offset, and at the second at which a group that commits no more counts as stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.questions.lag.burrow.window import (
    NOT_EVALUABLE,
    STOP,
    UNKNOWN,
    is_rewound,
    status_by_lags,
    status_of_window,
    stops_at,
)
from analytics.questions.lag.times import END_OF_TIME
from analytics.wire.compiled import compiled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analytics.wire.compiled import Numbers as Given

    Numbers = NDArray[np.int64]

COUNT, STATUS, SAMPLE, FIRST_SAMPLE, END_SAMPLE, SEEN_UNTIL = range(6)
"""What is kept of each partition beside its window: commits in the window, status told last, the
sample after the last one seen, the first of its samples and the one after its last, and the time
until which it was looked at."""
KEPT: Final = 6

KEY, OFFSET, TIME, ARRIVAL = range(4)
"""What is told of each commit: whose, what, the client's time, the log's; times in milliseconds."""
TOLD: Final = 4

INTERVALS, MIN_DISTANCE, ALLOWED_LAG = range(3)
"""The rules: commits in a window, milliseconds between two of them, a lag that is none."""

DELETED: Final = -(1 << 63)
"""In place of an offset: it was removed, and the window is emptied."""

CHANGED_KEY, CHANGED_AT, CHANGED_TO, CHANGED_OFFSET = range(4)
"""What is told of each change of status."""
CHANGED: Final = 4


def _status_now(
    at: int, base: int, kept: Numbers, windows: Numbers, sample_ends: Numbers, rules: Numbers
) -> int:
    intervals = rules[INTERVALS]
    count = kept[base + COUNT]
    first = base // KEPT * intervals
    if count == 0:
        return NOT_EVALUABLE
    last_offset = windows[0, first + count - 1]
    sample, first_sample = kept[base + SAMPLE], kept[base + FIRST_SAMPLE]
    current_lag = UNKNOWN
    if sample > first_sample:
        current_lag = max(sample_ends[sample - 1] - last_offset, 0)
    was_at_end = False
    for place in range(max(first_sample, sample - intervals), sample):
        if sample_ends[place] <= last_offset:
            was_at_end = True
    is_stopped = at >= stops_at(windows[1, first], windows[1, first + count - 1])
    has_stopped = is_stopped and not was_at_end
    return status_of_window(windows, first, count, current_lag, has_stopped, rules[ALLOWED_LAG])


def _tell(  # noqa: PLR0913, PLR0917 - what a loop has, its parts are handed
    at: int,
    base: int,
    kept: Numbers,
    windows: Numbers,
    sample_ends: Numbers,
    rules: Numbers,
    changes: Numbers,
    told: int,
) -> int:
    """Tell the status where it is another one; return how many changes were told."""
    status = _status_now(at, base, kept, windows, sample_ends, rules)
    if status == kept[base + STATUS]:
        return told
    kept[base + STATUS] = status
    count = kept[base + COUNT]
    last = base // KEPT * rules[INTERVALS] + count - 1
    changes[told, CHANGED_KEY] = base // KEPT
    changes[told, CHANGED_AT] = at
    changes[told, CHANGED_TO] = status
    changes[told, CHANGED_OFFSET] = windows[0, last] if count > 0 else DELETED
    return told + 1


def _advance(  # noqa: PLR0913, PLR0917
    until: int,
    base: int,
    kept: Numbers,
    windows: Numbers,
    sample_times: Numbers,
    sample_ends: Numbers,
    rules: Numbers,
    changes: Numbers,
    told: int,
) -> int:
    """Look at a partition at every sample and at its stop, up to a time."""
    while True:
        sample, count = kept[base + SAMPLE], kept[base + COUNT]
        at = sample_times[sample] if sample < kept[base + END_SAMPLE] else END_OF_TIME
        is_sample = at != END_OF_TIME
        if count > 0 and kept[base + STATUS] != STOP:
            first = base // KEPT * rules[INTERVALS]
            stop = stops_at(windows[1, first], windows[1, first + count - 1])
            if kept[base + SEEN_UNTIL] < stop < at:
                at, is_sample = stop, False
        if at > until:
            break
        if is_sample:
            kept[base + SAMPLE] = sample + 1
        kept[base + SEEN_UNTIL] = at
        if count > 0:
            told = _tell(at, base, kept, windows, sample_ends, rules, changes, told)
    kept[base + SEEN_UNTIL] = max(kept[base + SEEN_UNTIL], until)
    return told


def _remember(
    offset: int, time: int, base: int, kept: Numbers, windows: Numbers, sample_ends: Numbers,
    rules: Numbers,
) -> None:  # fmt: skip
    """Put a commit into its window; one that comes too soon takes the place of the one before."""
    intervals, count = rules[INTERVALS], kept[base + COUNT]
    first = base // KEPT * intervals
    sample = kept[base + SAMPLE]
    lag = UNKNOWN
    if sample > kept[base + FIRST_SAMPLE]:
        lag = max(sample_ends[sample - 1] - offset, 0)
    place = first + count
    if count > 0 and time - windows[1, place - 1] < rules[MIN_DISTANCE]:
        place -= 1
        time = windows[1, place]
    elif count == intervals:
        for each in range(first, first + count - 1):
            windows[0, each] = windows[0, each + 1]
            windows[1, each] = windows[1, each + 1]
            windows[2, each] = windows[2, each + 1]
        place -= 1
    else:
        kept[base + COUNT] = count + 1
    windows[0, place] = offset
    windows[1, place] = time
    windows[2, place] = lag


_READ: Final = "Array(int64, 1, 'C', readonly=True)"
_SIGNATURE: Final = (
    f"int64({_READ}, int64[::1], int64[:, ::1], {_READ}, {_READ}, {_READ}, int64[:, ::1])"
)


@compiled(
    _SIGNATURE,
    status_of_window, is_rewound, status_by_lags, stops_at, _status_now, _tell, _advance, _remember,
)  # fmt: skip
def fold_commits(
    commits: Given,
    kept: Numbers,
    windows: Numbers,
    sample_times: Numbers,
    sample_ends: Numbers,
    rules: Numbers,
    changes: Numbers,
) -> int:
    """Put commits into their windows, in order; return how many changes of status were told.

    Args:
        commits: `TOLD` numbers for each commit.
        kept: `KEPT` numbers for each partition of a group; changed.
        windows: Offsets, times and lags: a row each, with a window for each partition; changed.
        sample_times: When end offsets were sampled, ascending within each partition.
        sample_ends: The end offsets.
        rules: `INTERVALS`, `MIN_DISTANCE`, `ALLOWED_LAG`.
        changes: Where changes are told, `CHANGED` numbers each: must have room.
    """
    told = 0
    for commit in range(len(commits) // TOLD):
        at = commit * TOLD
        base = commits[at + KEY] * KEPT
        arrival, offset = commits[at + ARRIVAL], commits[at + OFFSET]
        told = _advance(
            arrival, base, kept, windows, sample_times, sample_ends, rules, changes, told
        )
        if offset == DELETED:
            kept[base + COUNT] = 0
        else:
            _remember(offset, commits[at + TIME], base, kept, windows, sample_ends, rules)
        told = _tell(arrival, base, kept, windows, sample_ends, rules, changes, told)
    return told


@compiled(
    _SIGNATURE,
    status_of_window, is_rewound, status_by_lags, stops_at, _status_now, _tell, _advance,
)  # fmt: skip
def fold_until(
    until: Given,
    kept: Numbers,
    windows: Numbers,
    sample_times: Numbers,
    sample_ends: Numbers,
    rules: Numbers,
    changes: Numbers,
) -> int:
    """Look at all partitions up to a time, the only number of ``until``; else as `fold_commits`."""
    told = 0
    for base in range(0, len(kept), KEPT):
        told = _advance(
            until[0], base, kept, windows, sample_times, sample_ends, rules, changes, told
        )
    return told
