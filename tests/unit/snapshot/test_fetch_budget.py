"""What all readers of a snapshot may fetch together."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from analytics.snapshot.log_extents import FetchBudget, SpentError

_SECONDS = 30


@pytest.fixture
def clock() -> SimpleNamespace:
    """A clock that goes on while one sleeps only."""
    return SimpleNamespace(now=0.0)


def budget_at(
    clock: SimpleNamespace, rate: int | None, monkeypatch: pytest.MonkeyPatch
) -> FetchBudget:
    budget = FetchBudget(rate, clock=lambda: clock.now)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(budget, "_sleep", sleep)
    return budget


def fetch(budget: FetchBudget, size: int) -> None:
    with budget.share(size) as share:
        share.answer_bytes = size
    budget.keep_pace()


def test_a_rate_is_kept_on_average(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = budget_at(clock, 100, monkeypatch)
    fetch(budget, 250)
    assert clock.now == 2.5
    # What was not used while something else took its time may be caught up with.
    clock.now = 10.0
    fetch(budget, 500)
    assert clock.now == 10.0
    fetch(budget, 350)
    assert clock.now == 11.0


def test_without_a_rate_nothing_waits(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(budget_at(clock, None, monkeypatch), 1 << 40)
    assert clock.now == 0.0


def test_what_came_to_one_is_waited_for_by_all(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = budget_at(clock, 100, monkeypatch)
    with budget.share(100) as one, budget.share(300) as other:
        one.answer_bytes, other.answer_bytes = 100, 300
    budget.keep_pace()
    assert clock.now == 4.0


def test_no_more_is_promised_than_is_left() -> None:
    budget = FetchBudget(most_bytes=100)
    with budget.share(60) as one, budget.share(60) as other:
        assert (one.size, other.size) == (60, 40)
        one.answer_bytes, other.answer_bytes = 60, 40
    with pytest.raises(SpentError, match="than the 100 bytes that are allowed"), budget.share(1):
        pass


def test_what_others_leave_is_waited_for() -> None:
    budget = FetchBudget(most_bytes=100)
    begun, sizes = threading.Event(), []

    def wait_for_a_share() -> None:
        begun.set()
        with budget.share(100) as share:
            sizes.append(share.size)

    with budget.share(100) as share:
        other = threading.Thread(target=wait_for_a_share)
        other.start()
        begun.wait(_SECONDS)
        share.answer_bytes = 30
    other.join(_SECONDS)
    assert sizes == [70]


def test_a_fetch_that_fails_takes_nothing() -> None:
    budget = FetchBudget(most_bytes=100)
    with pytest.raises(OSError, match="gone"), budget.share(100):
        raise OSError("gone")
    with budget.share(100) as share:
        assert share.size == 100


def test_whoever_waits_is_stopped() -> None:
    budget = FetchBudget(bytes_a_second=1, most_bytes=100)
    errors = []

    def wait_for_a_share() -> None:
        try:
            with budget.share(100):
                pass
        except SpentError as error:
            errors.append(str(error))

    with budget.share(100) as share:
        share.answer_bytes = 100
        other = threading.Thread(target=wait_for_a_share)
        other.start()
        budget.stop()
        other.join(_SECONDS)
    budget.keep_pace()
    assert errors == ["reading was stopped"]
