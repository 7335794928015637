"""What of a cluster goes into a snapshot's document, and how fast it is read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from analytics.snapshot import taking
from analytics.snapshot.taking import Limits
from schemas.snapshot import Log, Unread


def log(topic: str, partition: int, failure: str | None) -> Log:
    return Log(topic, partition, 1, 0, 0, 9, False, 9, 100, 1, None, failure)


def test_what_fails_of_a_whole_topic_for_one_reason_is_named_once() -> None:
    logs = [
        log("__consumer_offsets", 0, None),
        log("__consumer_offsets", 1, "slow"),
        *(log("__transaction_state", each, "refused") for each in range(3)),
    ]
    assert taking._not_read(logs) == [
        Unread("__consumer_offsets-1", "slow"),
        Unread("__transaction_state", "refused"),
    ]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that goes on while one sleeps only."""
    clock = SimpleNamespace(now=0.0)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(taking, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep))
    return clock


def test_a_rate_is_kept_on_average(clock: SimpleNamespace) -> None:
    wait = taking._rate(Limits(bytes_a_second=100))
    wait(250)
    assert clock.now == 2.5
    # What was not used while something else took its time may be caught up with.
    clock.now = 10.0
    wait(500)
    assert clock.now == 10.0
    wait(350)
    assert clock.now == 11.0


def test_without_a_rate_nothing_waits(clock: SimpleNamespace) -> None:
    taking._rate(Limits())(1 << 40)
    assert clock.now == 0.0
