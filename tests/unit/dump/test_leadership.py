"""Which of the leaders that the metadata log names wrote what no copy of a dump need have."""

from __future__ import annotations

import pytest

from analytics.dump.copies.leadership import (
    NOBODY,
    SESSION_MS,
    AbsentLeader,
    Leaders,
    MadeAt,
    Registered,
    Step,
    absent_leaders,
)

KEY = ("__consumer_offsets", 0)
END = 100_000
"""When the metadata log ends."""


def step(number: int, epoch: int, leader: int, in_sync: set[int], **more: bool) -> Step:
    """A step whose record has the offset ``number``, at second ``number``."""
    known = {"is_election": True, "is_unclean": False, **more}
    every = frozenset({1, 2, 3})
    return Step(number + 1, number * 1000, epoch, leader, frozenset(in_sync), every, **known)


ALL = step(0, 0, 1, {1, 2, 3})
ALONE = step(10, 0, 1, {1}, is_election=False)
DEAD = step(20, 1, NOBODY, set())
UNCLEAN = step(30, 2, 2, {2}, is_unclean=True)
REJOINED = step(40, 2, 2, {2, 3}, is_election=False)
FAILOVER = (ALL, ALONE, DEAD, UNCLEAN, REJOINED)


def absent(
    steps: tuple[Step, ...],
    copies: dict[str, MadeAt],
    epochs: dict[str, int],
    high_watermark: int | None = 40,
    begins: dict[int, int] | None = None,
) -> list[AbsentLeader]:
    """What is absent where the first copy leads, with 50 records; epochs begin where it says."""
    leaders = Leaders({KEY: Registered(steps=steps)}, copies, END)
    last = leaders.last_witnessed(KEY, epochs)
    begins = begins or {next(iter(epochs.values())): 0}
    return absent_leaders(steps, last.values(), begins, 50, high_watermark)


def test_after_an_unclean_election_of_an_absent_leader_all_may_be_other() -> None:
    dead = {"broker-1": MadeAt(1, 15, 14_500)}
    assert absent(FAILOVER, dead, {"broker-1": 0}) == [AbsentLeader(2, 2, 30_000, 0)]


LED_BEFORE = (
    step(0, 0, 2, {1, 2}),
    step(10, 1, 1, {1}),
    DEAD,
    step(30, 2, 2, {2}, is_unclean=True),
)


@pytest.mark.parametrize(
    ("begins", "first"),
    [
        # What broker 2 wrote as the leader of epoch 0 it has, and not what broker 1 wrote then.
        ({0: 0, 1: 20}, 20),
        ({0: 0}, 50),
        # Records of epoch 0 that came to nobody else say nothing of this log.
        ({1: 0}, 0),
    ],
)
def test_a_leader_has_what_it_wrote_when_it_led_before(begins: dict[int, int], first: int) -> None:
    dead = {"broker-1": MadeAt(1, 15, 14_500)}
    latest = {"broker-1": max(begins)}
    found = absent(LED_BEFORE, dead, latest, begins=begins)
    assert found == [AbsentLeader(2, 2, 30_000, first)]


def test_who_was_in_sync_has_what_the_leader_wrote() -> None:
    follower = {"broker-3": MadeAt(3, 60, 59_000)}
    assert absent(FAILOVER, follower, {"broker-3": 0}) == []
    assert absent(FAILOVER, {"broker-2": MadeAt(2, 60, 59_000)}, {"broker-2": 2}) == []


def test_a_copy_that_was_made_before_the_election_does_not_tell_of_it() -> None:
    early = {"broker-3": MadeAt(3, 5, 4_500)}
    found = absent(FAILOVER, early, {"broker-3": 0})
    assert [(each.leader, each.since) for each in found] == [(1, 10_000), (2, 30_000)]


def test_a_follower_out_of_sync_has_what_lies_before_its_end() -> None:
    steps = (ALL, step(10, 0, 1, {1, 2}, is_election=False))
    found = absent(steps, {"broker-3": MadeAt(3, 60, 59_000)}, {"broker-3": 0})
    assert found == [AbsentLeader(1, 0, 10_000, 50)]


def test_after_a_clean_election_what_was_committed_stays() -> None:
    steps = (ALL, step(10, 1, 2, {2, 3}))
    copies, epochs = {"broker-1": MadeAt(1, 5, 4_500)}, {"broker-1": 0}
    assert absent(steps, copies, epochs) == [AbsentLeader(2, 1, 10_000, 40)]
    assert absent(steps, copies, epochs, None) == [AbsentLeader(2, 1, 10_000, 0)]


def test_where_nobody_led_nothing_was_written() -> None:
    assert absent(FAILOVER[:3], {"broker-1": MadeAt(1, 15, 14_500)}, {"broker-1": 0}) == []


def test_a_log_that_a_later_leader_wrote_to_has_what_was_before() -> None:
    assert absent(FAILOVER, {"broker-1": MadeAt(1, 15, 14_500)}, {"broker-1": 3}) == []


@pytest.mark.parametrize(("shown", "is_whole"), [(29_999, False), (30_000, True), (None, False)])
def test_without_its_own_metadata_log_times_or_epochs_tell_when_a_copy_was_made(
    shown: int | None, is_whole: bool
) -> None:
    steps, copies = FAILOVER[:4], {"broker-2": MadeAt(2, None, shown)}
    assert (absent(steps, copies, {"broker-2": 0}) == []) is is_whole
    assert absent(steps, copies, {"broker-2": 2}) == []


def test_of_a_leader_that_died_before_it_was_elected_nothing_is_missing() -> None:
    killed = MadeAt(2, 25, 29_000)
    steps = (*FAILOVER[:4], step(38, 3, NOBODY, set()))
    assert absent(steps, {"broker-2": killed}, {"broker-2": 0}) == []
    late = (*FAILOVER[:4], step(29 + SESSION_MS // 1000 + 1, 3, NOBODY, set()))
    assert absent(late, {"broker-2": killed}, {"broker-2": 0}) != []


def test_a_broker_without_an_id_may_be_any_replica_that_has_no_other_copy() -> None:
    unnamed = {"disk": MadeAt(None, 60, 59_000)}
    assert absent((ALL,), unnamed, {"disk": 0}) == []
    assert absent((ALL, ALONE), unnamed, {"disk": 0}) == [AbsentLeader(1, 0, 10_000, 50)]
    both = {**unnamed, "broker-2": MadeAt(2, 60, 59_000), "broker-3": MadeAt(3, 60, 59_000)}
    assert absent((ALL, ALONE), both, {"disk": 0, "broker-2": 0, "broker-3": 0}) == []
