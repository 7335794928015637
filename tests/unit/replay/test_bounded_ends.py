"""A dump ends no later than elections allow, whatever a clock said that was ahead."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.epoch_times import iso_time
from analytics.replay.dump.times import end_of

MINUTE = 60_000
START = 1_764_000_000_000
TOPIC = "__consumer_offsets"


def at(minute: int) -> int:
    return START + minute * MINUTE


def end_minute(
    epochs: list[tuple[int, int, int]], led: dict[int, int | None], ahead: int = 60
) -> float:
    """Return when a dump ends, of which other partitions end at minute 20.

    Args:
        epochs: Epoch, and the least and greatest minute of a batch.
        led: Epochs of the broker with the wrong clock, and the minute of the next election.
        ahead: Its minutes.
    """
    row: dict[str, Any] = {
        "topic": TOPIC,
        "partition": 0,
        "batches": 100,
        "epoch_times": [[epoch, at(least), at(most)] for epoch, least, most in epochs],
        "first_timestamp": iso_time(at(min(least for _, least, _ in epochs))),
        "last_timestamp": iso_time(at(max(most for _, _, most in epochs))),
    }
    other = {**row, "partition": 1, "epoch_times": [[0, at(0), at(20)]]}
    other |= {"first_timestamp": iso_time(at(0)), "last_timestamp": iso_time(at(20))}
    clock = {
        "node_id": 1,
        "ahead_ms": ahead * MINUTE,
        "what": "broker 1",
        "led": [
            {
                "topic": TOPIC,
                "partition": 0,
                "leader_epoch": epoch,
                "from_ms": at(0),
                "to_ms": None if until is None else at(until),
            }
            for epoch, until in led.items()
        ],
    }
    manifest = {"options": {}, "partitions": [row, other], "leader_clocks": [clock]}
    time = end_of(manifest).time
    assert time is not None
    return (time.timestamp() * 1000 - START) / MINUTE


@pytest.mark.parametrize(
    ("epochs", "led", "ahead", "end"),
    [
        ([(0, 61, 69), (2, 11, 18)], {0: 10}, 60, 20),
        # The broker led to the end: its clock is ahead by an hour at least.
        ([(0, 1, 9), (2, 71, 85)], {2: None}, 60, 25),
        ([(2, 71, 75)], {2: None}, 60, 20),
        # What others wrote is as they say.
        ([(0, 61, 69), (2, 11, 30)], {0: 10}, 60, 30),
        # A clock that is behind says no later time.
        ([(0, -59, -51), (2, 11, 18)], {0: 10}, -60, 20),
    ],
)
def test_a_dump_ends_where_elections_bound_it(
    epochs: list[tuple[int, int, int]], led: dict[int, int | None], ahead: int, end: float
) -> None:
    assert end_minute(epochs, led, ahead) == end
