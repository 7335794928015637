"""Random logs of commits from which records are lost: what is called complete is the truth."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from analytics.dump.inspection.found_losses import OPEN_END, Loss, merged
from analytics.replay.log.losses import Coverage
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.offset_state import committed_offsets, pending_offsets
from tests.support.decoded_frames import frames_of, named_rows
from tests.support.reference_offset_history import OFFSETS, Change, Log, random_log
from tests.support.told_offset_history import told_offset_history

LOGS, ACTS = 250, 30
TABLES = ("offset_commit", "control_markers", "transaction_log")


def random_losses(number: int, end: int) -> list[Loss]:
    """Return up to two losses of a log, some of them of its end."""
    chance = Random(f"losses of {number}")
    found = []
    for _ in range(chance.randint(0, 2)):
        first = chance.randrange(end)
        size = chance.choice((1, 2, 5, OPEN_END))
        found.append(Loss(first, min(first + size, OPEN_END), "a segment file is missing"))
    return merged(found)


class Damaged:
    """Logs without what was lost, and how that is told to a replay."""

    def __init__(self, release: str) -> None:
        self.logs = [
            random_log(each, ACTS, clears_pending=release == "4.3") for each in range(LOGS)
        ]
        self.losses = {each.number: random_losses(each.number, each.end) for each in self.logs}
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for log in self.logs:
            for name, rows in log.rows.items():
                self.rows[name] += [row for row in rows if not self.is_lost(log, row["offset"])]
        lost = {(OFFSETS, number): each for number, each in self.losses.items() if each}
        until = {key: each[-1].end for key, each in lost.items()}
        self.coverage = Coverage(complete_from=until, uncompacted_from=until, losses=lost)

    def is_lost(self, log: Log, offset: int) -> bool:
        """Whether the record at an offset is gone."""
        return any(each.first <= offset < each.end for each in self.losses[log.number])

    @property
    def by_group(self) -> dict[str, Log]:
        """Each log by its only group."""
        return {log.group: log for log in self.logs}


@pytest.fixture(scope="module", params=["3.9", "4.3"])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def damaged(release: str) -> Damaged:
    return Damaged(release)


def agrees(row: SimpleNamespace, truth: Change) -> bool:
    """Whether a complete row is right, and nothing it says besides is made up."""
    named = ("event", "committed_offset", "previous_offset", "record_offset")
    origin = "unknown" if truth.event == "delete" else truth.origin
    return (
        all(getattr(row, name) == getattr(truth, name) for name in named)
        and row.origin in {origin, "unknown"}
        and row.member_id in {truth.member_id, None}
        and row.epoch in {truth.epoch, None}
        and row.cause in {truth.cause, "unknown"}
    )


def test_a_complete_change_is_the_truth_and_an_incomplete_one_says_nothing_of_before(
    damaged: Damaged, release: str
) -> None:
    rows = named_rows(told_offset_history(damaged.rows, release, damaged.coverage))
    assert {row.complete for row in rows} == {True, False}
    for row in rows:
        log = damaged.by_group[row.group_id]
        truth = {(each.partition, each.effective_offset): each for each in log.changes}
        if row.complete:
            assert agrees(row, truth[row.partition, row.effective_offset]), row
        else:
            assert (row.previous_offset, row.advance) == (None, None)
            assert row.cause in {"unknown", None}
            assert f"{OFFSETS}-{log.number} lacks" in row.missing


def test_a_complete_offset_is_in_force_and_one_that_is_not_shown_may_be_lost(
    damaged: Damaged, release: str
) -> None:
    decoded, rules = frames_of(damaged.rows, TABLES), replay_rules(release)
    committed = named_rows(committed_offsets(decoded, rules, None, damaged.coverage))
    pending = named_rows(pending_offsets(decoded, rules, damaged.coverage))
    assert {row.complete for row in committed} == {True, False}
    for row in committed:
        said = damaged.by_group[row.group_id].in_force.get(row.partition)
        if row.complete:
            assert said is not None
            assert (said.record_offset, said.offset) == (row.record_offset, row.committed_offset)
    for row in pending:
        waiting = damaged.by_group[row.group_id].waiting.get(row.producer_id, {})
        assert not row.complete or waiting[row.partition].record_offset == row.record_offset
    shown = {(row.group_id, row.partition) for row in committed}
    for log in damaged.logs:
        for partition in log.in_force:
            assert (log.group, partition) in shown or damaged.losses[log.number]
