"""What is predicted is what a cleanup removes, in random histories run forward in time."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from analytics.questions.expiration.offset_expiration import offset_expiration
from analytics.questions.expiration.retention_settings import OPTION, Retention, Setting
from tests.support.expiration_logs import Row, committed_in, log_of, removals_in, rows_of
from tests.support.reference_expiration import Coordinator, Key

if TYPE_CHECKING:
    from analytics.questions.expiration.offset_log import OffsetLog

pytestmark = pytest.mark.long

START = 1_700_000_000_000
MINUTE = 60_000
RETENTION = 5 * MINUTE
INTERVAL = 2 * MINUTE
RELEASES = {"pre-2.1": "2.0", "2.1-2.3": "2.3", "3.2-3.9": "3.9", "current": "4.3"}
CLASSIC = ("simple", "consumer", "connect", "unreadable")
FAR_AHEAD = START + 10_000 * MINUTE
HISTORIES = 200
SEEDS = st.integers(0, 2**32)


def history(chance: Random, era: str, *, with_cleanups: bool = False) -> Coordinator:
    """A coordinator to which things happened, a minute or some apart."""
    coordinator = Coordinator(0, era, RETENTION, START)
    kinds = (*CLASSIC, "modern") if era == "current" else CLASSIC
    next_cleanup = START + chance.randint(1, INTERVAL)
    for _ in range(chance.randint(3, 14)):
        until = coordinator.now + chance.randint(1, 3 * MINUTE)
        while with_cleanups and next_cleanup <= until:
            coordinator.now = next_cleanup
            coordinator.sweep()
            next_cleanup += INTERVAL
        coordinator.now = until
        happen(chance, coordinator, chance.choice(kinds))
    coordinator.now += chance.randint(0, MINUTE)
    return coordinator


def histories(seed: int, era: str, *, with_cleanups: bool = False) -> list[Coordinator]:
    """Many of them: one query judges all, and what differs names the seed."""
    chance = Random(seed)
    return [history(chance, era, with_cleanups=with_cleanups) for _ in range(HISTORIES)]


def happen(chance: Random, coordinator: Coordinator, kind: str) -> None:
    name = f"of-{kind}"
    key = (name, chance.choice("ab"), 0)
    group = coordinator.groups.get(name)
    match chance.choice(("commit", "commit", "own", "open", "end", "join", "leave")):
        case "commit":
            coordinator.commit(key)
        case "own":
            coordinator.commit(key, keep_ms=chance.randint(1, 2 * RETENTION))
        case "open":
            coordinator.commit(key, producer=chance.randint(1, 2))
        case "end":
            coordinator.end_transaction(chance.randint(1, 2), commit=chance.random() < 0.5)
        case "join" if kind != "simple":
            topics = chance.sample("ab", chance.randint(0, 2))
            coordinator.join(name, kind, chance.choice("mn"), topics)
        case "leave" if group and group.members:
            coordinator.leave(name, chance.choice(sorted(group.members)))


def log_of_histories(era: str, told: list[Coordinator]) -> OffsetLog:
    """All histories as one log, each an internal partition of its own."""
    rows: dict[str, list[dict[str, object]]] = defaultdict(list)
    for number, coordinator in enumerate(told):
        for name, records in coordinator.rows.items():
            rows[name] += [{**record, "partition": number} for record in records]
    return log_of(rows, RELEASES[era], era)


def retention() -> Retention:
    return Retention(Setting(RETENTION, OPTION, INTERVAL))


def ms(row: Row, name: str) -> int:
    at: datetime = row[name]
    return round(at.timestamp() * 1000)


LONG = {era: () if era == "current" else pytest.mark.long for era in RELEASES}


@pytest.mark.parametrize("era", [pytest.param(era, marks=LONG[era]) for era in RELEASES])
def test_what_is_predicted_is_what_a_cleanup_removes(era: str) -> None:
    @settings(max_examples=1)
    @given(SEEDS)
    def predict_and_sweep(seed: int) -> None:
        told = histories(seed, era)
        log = log_of_histories(era, told)
        expiring = offset_expiration(committed_in(log), log, retention(), FAR_AHEAD)
        found = defaultdict(list)
        for row in rows_of("offset_expiration", expiring):
            found[row.coordinator_partition].append(row)
        for number, coordinator in enumerate(told):
            rows = found[number]
            assert {(r.group_id, r.topic, r.partition) for r in rows} == coordinator.offsets.keys()
            for row in rows:
                assert (row.next_cleanup_at is None) == (row.expires_at is None), row
            instants = {ms(row, "expires_at") for row in rows if row.expires_at is not None}
            for near in {coordinator.now, FAR_AHEAD, *instants}:
                for instant in (near - 1, near, near + 1):
                    # Before its end a history is not over: members were still to come or go.
                    if instant >= coordinator.now:
                        assert due_at(rows, instant, era) == coordinator.due(instant)

    predict_and_sweep()


def due_at(rows: list[Row], instant: int, era: str) -> set[Key]:
    strictly = 1 if era == "pre-2.1" else 0
    return {
        (row.group_id, row.topic, row.partition)
        for row in rows
        if row.status == "overdue" and ms(row, "expires_at") + strictly <= instant
    }


@pytest.mark.long
@pytest.mark.parametrize("era", RELEASES)
def test_what_cleanups_removed_was_on_time(era: str) -> None:
    @settings(max_examples=1)
    @given(SEEDS)
    def sweep_and_judge(seed: int) -> None:
        told = histories(seed, era, with_cleanups=True)
        removals = removals_in(log_of_histories(era, told), retention(), FAR_AHEAD)
        tombstones = sum(
            each["is_tombstone"] for told_by in told for each in told_by.rows["offset_commit"]
        )
        assert len(removals) == tombstones
        for row in removals:
            assert row.cause == "expiration", row
            assert row.verdict == "on_time" or "COMMIT marker" in row.reason, row
            assert row.expected_at <= row.removed_at

    sweep_and_judge()
