"""Two lines that were lost one after the other, and part from the survivor at the same offset.

Broker 1 wrote alone and died; broker 2 was elected without what 1 had, wrote alone and died; broker
3 was elected with neither. What held when is known here without reading a log.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from analytics.contracts import polars_rows
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.timeline.history import OffsetHistory
from analytics.questions.timeline.lost_commits import coordinator_evidence, lost_lines
from analytics.questions.timeline.offset_losses import election_losses
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from jobs.workspaces.replayed import Replayed
from tests.support.decoded_here import decoded_here
from tests.support.failing_over import SECOND, START, Change, Commit, Disk, FailingOver
from tests.support.replayed_here import replayed_here

BEFORE = (Commit(1, 0, "steady", 5), Commit(2, 0, "reader", 5))
FIRST = (Commit(12, 1, "reader", 7), Commit(13, 1, "only-first", 3))
SECOND_LINE = (Commit(27, 3, "reader", 8), Commit(28, 3, "only-second", 4))
LAST = (Commit(50, 5, "reader", 6), Commit(51, 5, "only-last", 1))
NOBODY = -1
CHANGES = (
    Change(0, 0, 1, (1, 2, 3)),
    Change(10, 1, 1, (1,)),
    Change(20, 2, NOBODY, ()),
    Change(25, 3, 2, (2,), is_unclean=True),
    Change(40, 4, NOBODY, ()),
    Change(45, 5, 3, (3,), is_unclean=True),
)
STORY = FailingOver(
    CHANGES,
    (
        Disk(1, (*BEFORE, *FIRST), ((0, 0), (1, 2)), 15),
        Disk(2, (*BEFORE, *SECOND_LINE), ((0, 0), (3, 2)), 30),
        Disk(3, (*BEFORE, *LAST), ((0, 0), (5, 2)), 60),
    ),
)
STEADY = {"steady": 5}
HELD: dict[int | None, dict[str, int]] = {
    5: {**STEADY, "reader": 5},
    14: {**STEADY, "reader": 7, "only-first": 3},
    22: {**STEADY, "reader": 7, "only-first": 3},
    26: {**STEADY, "reader": 5},
    29: {**STEADY, "reader": 8, "only-second": 4},
    42: {**STEADY, "reader": 8, "only-second": 4},
    46: {**STEADY, "reader": 5},
    50: {**STEADY, "reader": 6},
    None: {**STEADY, "reader": 6, "only-last": 1},
}
"""What each group had committed at a second; None is the end."""
NODES = (1, 2, 3)
LOST = [
    ("only-first", 25, 3),
    ("only-second", 45, 4),
    ("reader", 25, 7),
    ("reader", 45, 8),
]
"""Which elections cost whom which offset: the group, the second, what it was."""

Decoded = Callable[..., Workspace]


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Decoded:
    kept: dict[Any, Workspace] = {}

    def of(nodes: tuple[int, ...], *, controller: bool = True) -> Workspace:
        key = nodes, controller
        if key not in kept:
            folder = tmp_path_factory.mktemp("story")
            inputs = STORY.write(folder, nodes, controller=controller)
            kept[key] = decoded_here(inputs, folder / "decoded")
        return kept[key]

    return of


def replayed(source: Workspace, folder: Path, second: int | None) -> Replayed:
    time = None if second is None else START + second * SECOND
    space = replayed_here(source, folder, time)
    return Replayed(StoredTables(space), source, space.manifest())


def answered(state: Replayed) -> dict[str, int]:
    """What is told for certain."""
    rows = state.tables.read("committed_offsets").to_pylist()
    return {row["group_id"]: row["committed_offset"] for row in rows if row["complete"]}


def at(second: int) -> datetime:
    return datetime.fromtimestamp(START // 1000 + second, UTC)


def costs(state: Replayed) -> list[tuple[str, int, int]]:
    lines = lost_lines(state, coordinator_evidence(state, None))
    history = OffsetHistory(polars_rows(state.tables.read("offset_history")))
    return sorted(
        (each["group_id"], round((each["at"] - at(0)).total_seconds()), each["was"])
        for each in election_losses(lines, history, {}).to_dicts()
    )


def test_each_line_ends_with_the_election_of_the_leader_that_came_after_it(
    decoded: Decoded,
) -> None:
    names = ("copy", "diverges_at", "lost_leader_epoch", "surviving_leader_epoch", "lost_records")
    rows = decoded(NODES).manifest()["divergences"]
    found = sorted(tuple(row[name] for name in names) for row in rows)
    assert found == [("broker-1", 2, 1, 3, 2), ("broker-2", 2, 3, 5, 2)]
    times = {row["copy"]: datetime.fromisoformat(row["elected_at"]) for row in rows}
    assert times == {"broker-1": at(25), "broker-2": at(45)}


@pytest.mark.parametrize("second", HELD)
def test_with_all_disks_every_instant_is_answered(
    second: int | None, decoded: Decoded, tmp_path: Path
) -> None:
    assert answered(replayed(decoded(NODES), tmp_path / "state", second)) == HELD[second]


def test_each_election_has_its_own_losses_at_its_own_time(decoded: Decoded, tmp_path: Path) -> None:
    assert costs(replayed(decoded(NODES), tmp_path / "state", None)) == LOST


FEWER = [each for size in (1, 2) for each in combinations(NODES, size)]
# Quick: disks that are left at three instants each, every instant with two of them.
AT_INSTANTS = [
    pytest.param(nodes, second, marks=() if (one + other) % 3 == 0 else pytest.mark.long)
    for (one, nodes), (other, second) in product(enumerate(FEWER), enumerate(HELD))
]


@pytest.mark.parametrize(("nodes", "second"), AT_INSTANTS)
def test_taking_a_disk_away_never_adds_an_answer(
    nodes: tuple[int, ...], second: int | None, decoded: Decoded, tmp_path: Path
) -> None:
    state = replayed(decoded(nodes), tmp_path / "state", second)
    found, true = answered(state), HELD[second]
    assert found.items() <= true.items()
    completeness = GroupCompleteness(state)
    for group in true.keys() - found.keys():
        assert completeness.gaps_of(group).every, group


@pytest.mark.parametrize("nodes", FEWER)
def test_taking_a_disk_away_never_adds_a_loss(
    nodes: tuple[int, ...], decoded: Decoded, tmp_path: Path
) -> None:
    state = replayed(decoded(nodes), tmp_path / "state", None)
    assert set(costs(state)) <= set(LOST)
    evidence = coordinator_evidence(state, None)[0]
    unjudged = {each.leader_epoch for each in evidence.every_unjudged()}
    # The disk of the leader before shows what an election cost.
    assert unjudged == {epoch for epoch, node in ((3, 1), (5, 2)) if node not in nodes}


def test_without_a_metadata_log_the_first_record_of_the_next_line_ends_a_line(
    decoded: Decoded, tmp_path: Path
) -> None:
    source = decoded(NODES, controller=False)
    rows = source.manifest()["divergences"]
    times = {row["copy"]: datetime.fromisoformat(row["elected_at"]) for row in rows}
    assert times == {"broker-1": at(27), "broker-2": at(50)}
    for second, true in HELD.items():
        state = replayed(source, tmp_path / str(second), second)
        assert answered(state).items() <= true.items()
