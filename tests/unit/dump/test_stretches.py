"""A log is told in stretches in which time goes on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analytics.dump.batches.stretches import (
    BACK_MS,
    FORWARD_MS,
    MOST,
    ClockStep,
    Stretch,
    clock_steps,
    few_steps,
    in_order,
    stretches_in,
)


def batches(times: list[int]) -> list[Stretch]:
    return [Stretch(n, n + 1, time, time, 1) for n, time in enumerate(times)]


def test_times_that_go_on_are_one_stretch() -> None:
    times = [0, 10, 10, 5, 10 + FORWARD_MS]
    assert in_order(batches(times)) == (Stretch(0, 5, 0, 10 + FORWARD_MS, 5),)


def test_a_clock_that_is_set_back_or_jumps_by_a_day_begins_another() -> None:
    times = [100_000, 100_000 + FORWARD_MS + 1, 99_000, 99_000 - BACK_MS - 1]
    assert [each.first_ms for each in in_order(batches(times))] == times


@given(st.lists(st.integers(0, 10 * FORWARD_MS), max_size=3 * MOST))
def test_no_batch_and_no_time_is_lost(times: list[int]) -> None:
    found = in_order(batches(times))
    assert len(found) <= MOST
    assert sum(each.batches for each in found) == len(times)
    assert max((each.last_ms for each in found), default=None) == max(times, default=None)
    assert min((each.first_ms for each in found), default=None) == min(times, default=None)


def test_a_time_after_the_year_9999_is_none_as_one_before_1970_is() -> None:
    at_ms = np.array([1_000, 10**16, -(2**63), 2**63 - 1, 2_000])
    first = np.arange(5)

    assert stretches_in(first, first + 1, at_ms) == (Stretch(0, 5, 1_000, 2_000, 2),)


def test_a_clock_that_is_set_back_is_told_and_a_time_that_is_not_believed_is_none() -> None:
    def back(*seconds: int, before: int | None = None) -> list[int]:
        offsets = np.arange(10, 10 + len(seconds))
        before_ms = None if before is None else BEGIN_MS + before * 1000
        found = clock_steps(offsets, BEGIN_MS + np.array(seconds) * 1000, before_ms)
        times = dict(enumerate([before, *seconds][before is None :], 10 if before is None else 9))
        for each in found:
            assert each.first_offset == each.last_offset
            assert each.before_ms == BEGIN_MS + (times[each.first_offset - 1] or 0) * 1000
        return [each.first_offset for each in found]

    day = 86_400
    assert back(1, 2, 3) == []
    # Clocks of brokers differ by less than a second.
    assert back(5, 4, 6) == []
    assert back(9, 5, 1) == [11, 12]
    assert back(9, 5, 6, 1, before=12) == [10, 11, 13]
    assert back(5, 6, before=9) == [10]
    assert back(5, 3 * day, 6, 7) == []
    assert clock_steps(np.arange(2), np.array([BEGIN_MS, -1])) == ()
    assert clock_steps(np.arange(0), np.arange(0), BEGIN_MS) == ()


def test_of_very_many_steps_of_a_clock_the_last_are_one_however_they_come() -> None:
    steps = [ClockStep(offset, offset, 9_000 - offset) for offset in range(0, 5 * MOST, 5)]
    whole = few_steps([*steps, ClockStep(7_000, 7_000, 0)])
    first = 5 * (MOST - 1)
    assert whole == (*steps[: MOST - 1], ClockStep(first, 7_000, 9_000 - first))
    before = few_steps([*steps, ClockStep(6_000, 6_000, 1)])
    assert few_steps([*before, ClockStep(7_000, 7_000, 0)]) == whole


BEGIN_MS = 1_795_000_000_000
