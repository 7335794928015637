"""Of which records the time measures something, where clocks were set or wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analytics.dump.inspection.found_losses import OPEN_END
from analytics.replay.dump.coverage import clocks_in
from analytics.replay.log.log_times import NOBODY, LogClock, doubtful_times

KEY = ("__consumer_offsets", 3)
OFFSETS = np.arange(30)
EPOCHS = {0: 0, 1: 10, 2: 20}
"""First offsets of leader epochs."""


def manifest(*steps: tuple[int, int], wrong: tuple[int, ...] = (), at: int = 3) -> dict[str, Any]:
    led = [{"topic": KEY[0], "partition": at, "leader_epoch": each} for each in wrong]
    partition = {
        "topic": KEY[0],
        "partition": KEY[1],
        "clock_steps": [[*each, 0] for each in steps],
        "leader_epochs": [
            {"epoch": epoch, "first_offset": first} for epoch, first in EPOCHS.items()
        ],
    }
    clocks = [{"what": "the clock of broker 1 was wrong", "led": led}]
    return {"partitions": [partition], "leader_clocks": clocks}


def doubtful(clock: LogClock) -> list[int]:
    found: list[int] = OFFSETS[clock.are_doubtful(OFFSETS)].tolist()
    return found


def others(clock: LogClock, spans: tuple[tuple[int, int | None], ...]) -> list[bool]:
    after = np.array([first for first, _ in spans])
    until = np.array([NOBODY if last is None else last for _, last in spans])
    found: list[bool] = clock.is_other(after, until).tolist()
    return found


def test_a_step_back_that_nothing_explains_puts_the_whole_log_in_doubt() -> None:
    (clock,) = clocks_in(manifest((12, 12), (25, 25)), {}).values()
    assert doubtful(clock) == OFFSETS.tolist()
    spans = ((0, 11), (0, 12), (12, 24), (12, 25), (24, None), (25, None))
    assert others(clock, spans) == [False, True, False, True, True, False]


def test_of_a_broker_whose_clock_was_wrong_what_it_wrote_is_in_doubt() -> None:
    # The next leader's clock seems to go back, and the one before it: that is no other step.
    (clock,) = clocks_in(manifest((10, 10), (20, 20), wrong=(1,)), {}).values()
    assert doubtful(clock) == list(range(10, 20))
    spans = ((0, 9), (0, 10), (10, 19), (10, 20), (0, 20), (15, None), (20, None))
    assert others(clock, spans) == [
        *(False, True, False, True, False),
        *(True, False),
    ]
    (clock,) = clocks_in(manifest((15, 15), wrong=(1,)), {}).values()
    assert doubtful(clock) == OFFSETS.tolist()


def test_terms_of_a_broker_that_follow_each_other_are_one_stretch() -> None:
    (clock,) = clocks_in(manifest(wrong=(1, 2)), {}).values()
    assert clock.wrong == ((10, OPEN_END),)
    (clock,) = clocks_in(manifest(wrong=(0, 2)), {}).values()
    assert clock.wrong == ((0, 10), (20, OPEN_END))


@pytest.mark.parametrize(
    ("end", "steps", "wrong"),
    [
        (11, (), ((10, 11),)),
        (12, (), ((10, 12),)),
        (13, ((12, 12),), ((10, 13),)),
        (26, ((12, 12), (22, 25)), ((10, 20),)),
        (24, ((12, 12), (22, 23)), ((10, 20),)),
    ],
)
def test_what_comes_after_the_instant_takes_nothing(
    end: int, steps: tuple[tuple[int, int], ...], wrong: tuple[tuple[int, int], ...]
) -> None:
    found = clocks_in(manifest((12, 12), (22, 28), wrong=(1,)), {KEY: end})
    assert found == {KEY: LogClock(steps, wrong)}


def test_where_clocks_were_right_there_is_nothing() -> None:
    assert clocks_in(manifest(), {}) == {}
    assert clocks_in(manifest(wrong=(1,), at=4), {}) == {}
    assert clocks_in(manifest((12, 12), wrong=(1,)), {KEY: 10}) == {}


def test_records_of_other_partitions_are_not_in_doubt() -> None:
    clocks = {1: LogClock(((4, 4),)), 2: LogClock(wrong=((0, 5),))}
    partitions, offsets = np.array([0, 1, 2, 2]), np.array([3, 3, 4, 5])
    assert doubtful_times(clocks, partitions, offsets).tolist() == [False, True, True, False]
