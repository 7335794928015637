"""Brokers whose clocks differ from the controller's: named by the epochs in which they led."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from analytics.dump.copies.leadership import Leaders, Leadership, MadeAt, Registered
from analytics.dump.inspection.study import with_leader_clocks
from analytics.engine.cut_tables import clock_bounds, with_bounds

MINUTE = 60_000
START = 1_764_000_000_000
KEY = ("__consumer_offsets", 0)
LED = [
    Leadership(epoch=0, leader=1, since=START),
    Leadership(epoch=1, leader=-1, since=START + 9 * MINUTE),
    Leadership(epoch=2, leader=2, since=START + 10 * MINUTE),
]
Times = list[tuple[int, int, int]]


def clocks_of(*minutes: tuple[int, int, int], heard: int | None = None) -> list[tuple[int, int]]:
    """Return node and minutes ahead, of epochs with the least and greatest minute of a batch."""
    times: Times = [(epoch, START + a * MINUTE, START + b * MINUTE) for epoch, a, b in minutes]
    row = {"topic": KEY[0], "partition": KEY[1], "copy": "b", "is_leading": True}
    made_at = {} if heard is None else {"b": MadeAt(2, 100, START + heard * MINUTE)}
    leaders = Leaders(registered={KEY: Registered(LED, 2)}, made_at=made_at)
    named = with_leader_clocks({"partitions": [{**row, "epoch_times": times}]}, leaders)
    return [(each["node_id"], each["ahead_ms"] // MINUTE) for each in named["leader_clocks"]]


CASES = {
    "between the elections": ([(0, 1, 9), (2, 11, 20)], None, []),
    "a little behind the next election, as clocks differ": ([(0, 1, 11), (2, 11, 20)], None, []),
    "an hour ahead": ([(0, 61, 69), (2, 11, 20)], None, [(1, 59)]),
    "an hour behind": ([(0, -59, -51), (2, 11, 20)], None, [(1, -59)]),
    "the next leader never wrote: the last may have gone on": ([(0, 61, 69)], None, []),
    "it leads to the end, and heard of controllers until then": ([(2, 11, 40)], 39, []),
    "it leads to the end, far beyond what it heard": ([(2, 71, 80)], 20, [(2, 60)]),
    "years ahead: a time that is not believed": ([(0, 1, 9_000_000), (2, 11, 20)], None, []),
}


@pytest.mark.parametrize("name", CASES)
def test_a_broker_that_wrote_outside_its_epochs_has_another_clock(name: str) -> None:
    minutes, heard, named = CASES[name]
    assert clocks_of(*minutes, heard=heard) == named


def test_elections_bound_when_records_of_a_wrong_clock_were_written() -> None:
    led = {"topic": KEY[0], "partition": KEY[1], "leader_epoch": 0, "from_ms": 1000, "to_ms": 2000}
    stamped = [datetime.fromtimestamp(second, UTC) for second in (1, 5)]
    times = pl.DataFrame(
        {
            "topic": [KEY[0]] * 2,
            "partition": [KEY[1]] * 2,
            "leader_epoch": [0, 1],
            "timestamp": stamped,
        },
        schema_overrides={"partition": pl.Int32, "leader_epoch": pl.Int32},
    )
    found = {}
    for ahead in (1, -1):
        clocks = [{"ahead_ms": ahead, "led": [led]}]
        rows = with_bounds(times, clock_bounds({"leader_clocks": clocks}))
        found[ahead] = rows.select("earliest_ms", "latest_ms", "is_bounded").rows()
    assert found[1] == [(1000, 1000, True), (5000, 5000, False)]
    assert found[-1] == [(1000, 2000, True), (5000, 5000, False)]
