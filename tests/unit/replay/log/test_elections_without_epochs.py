"""Instants of logs as releases before 0.11 wrote them: they say nothing of their elections.

A plain world: one log, elections at random times that cut it back to a random offset, and what a
client would have read at each instant. What is left of the log at the end is the dump.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from analytics.replay.dump.choices import CLEAN_ELECTIONS
from analytics.workspace import Workspace
from schemas import record_type
from tests.support.decoded_here import decoded_here
from tests.support.encoder import encode_key, encode_value
from tests.support.log_dirs import LogDir
from tests.support.replayed_here import replayed_here
from tests.support.segments import NOW, Made, Record, joined, messages, wrapper

GROUPS, PARTITIONS = ("a", "b"), (0, 1)
COMMITS, HISTORY = "state/committed_offsets", "history/offset_history"
Key = tuple[str, int]


class Write(NamedTuple):
    """A commit, or where `committed` is None a tombstone."""

    at: int
    key: Key
    committed: int | None


@dataclass
class World:
    """The log as it was after each event.

    Attributes:
        log: As it is now; offsets are places in it.
        then: The log after each event, by time.
    """

    log: list[Write] = field(default_factory=list)
    then: list[tuple[int, list[Write]]] = field(default_factory=list)

    def at(self, time: int) -> list[Write]:
        """Return the log at a time: all that happened up to it, those of its millisecond, too."""
        return next((log for at, log in reversed(self.then) if at <= time), [])


def lived(draw: random.Random, elections: int) -> World:
    """Return a world of some writes, some within one millisecond, and some unclean elections."""
    world, time = World(), NOW
    acts = ["write"] * draw.randint(6, 20) + ["election"] * elections
    draw.shuffle(acts)
    for act in ["write", *acts]:
        time += draw.choice((0, 1, 1, 40))
        if act == "election":
            world.log = world.log[: draw.randint(0, len(world.log))]
        else:
            key = draw.choice(GROUPS), draw.choice(PARTITIONS)
            committed = None if draw.random() < 0.15 else draw.randint(0, 9)
            world.log = [*world.log, Write(time, key, committed)]
        world.then.append((time, world.log))
    return world


def dump_of(world: World, folder: Path, magic: int, draw: random.Random) -> Workspace:
    """Write what is left as a broker's log of a message format, and decode it."""
    kind = record_type("offset_commit")
    held = []
    for offset, (at, (group, partition), committed) in enumerate(world.log):
        key = {"group": group, "topic": "t", "partition": partition}
        said = {"metadata": "", "commit_timestamp": at, "expire_timestamp": -1}
        value = None if committed is None else {"offset": committed, **said}
        encoded = None if value is None else encode_value(kind, 1, value)
        held.append(Record(offset, at, encode_key(kind, 1, key), encoded))
    made: list[Made] = messages(held, magic)
    if draw.random() < 0.5 and len(held) > 3:
        made = [*messages(held[:2], magic), wrapper(held[2:], magic, 1)]
    logs = LogDir.create(folder / "logs", cluster=None)
    logs.partition("__consumer_offsets-0", {0: [joined(made)]})
    return decoded_here([str(logs.path)], folder / "decoded")


def in_force(log: list[Write]) -> dict[Key, int]:
    """Return the committed offsets of a log."""
    found: dict[Key, int] = {}
    for each in log:
        found.pop(each.key, None)
        if each.committed is not None:
            found[each.key] = each.committed
    return found


def changes(log: list[Write]) -> dict[int, tuple[Key, int | None, int | None]]:
    """Return by offset what each record of a log changed: key, the offset, and the one before."""
    return {
        offset: (each.key, each.committed, in_force(log[:offset]).get(each.key))
        for offset, each in enumerate(log)
    }


def rows_of(space: Workspace, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(space.path(table)).to_pylist()
    return rows


def asked(decoded: Workspace, folder: Path, at: int | None, assume: tuple[str, ...] = ()) -> Any:
    needs = ("committed_offsets", "offset_history")
    space = replayed_here(decoded, folder, at, assume, needs)
    return rows_of(space, COMMITS), rows_of(space, HISTORY)


def certain(rows: list[dict[str, Any]]) -> dict[int, tuple[Key, int | None, int | None]]:
    return {
        row["record_offset"]: (
            (row["group_id"], row["partition"]),
            row["committed_offset"] if row["event"] == "commit" else None,
            row["previous_offset"],
        )
        for row in rows
        if row["complete"]
    }


def instants(draw: random.Random, world: World) -> list[int]:
    """Return some instants at or after the first record that is left."""
    first = world.log[0].at
    around = {at + step for at, _ in world.then for step in (-1, 0, 1)}
    possible = sorted(each for each in around if each >= first)
    return draw.sample(possible, min(3, len(possible)))


def check(seed: int, magic: int, folder: Path) -> None:
    """Hold what is said of some instants of a random world against it."""
    draw = random.Random(seed)
    world = lived(draw, draw.randint(0, 3))
    if not world.log:
        return
    decoded = dump_of(world, folder, magic, draw)
    for at in instants(draw, world):
        truth, told = world.at(at), [each for each in world.log if each.at <= at]
        offsets, history = asked(decoded, folder / str(at), at)
        where = f"seed {seed}, magic {magic}, at {at - NOW}"
        known = {
            (row["group_id"], row["partition"]): row["committed_offset"]
            for row in offsets
            if row["complete"]
        }
        assert known.items() <= in_force(truth).items(), where
        assert certain(history).items() <= changes(truth).items(), where
        # All that can be told is: tombstones of format 0 say no time, and may be later.
        timed = [n for n, each in enumerate(told) if magic or each.committed is not None]
        assert certain(history) == {
            n: change for n, change in changes(world.log).items() if n <= max(timed, default=-1)
        }, where


@pytest.mark.parametrize(
    ("seed", "magic"),
    [
        pytest.param(seed, magic, marks=() if (seed + magic) % 2 == 0 else pytest.mark.long)
        for seed, magic in product(range(3), (0, 1))
    ],
)
def test_nothing_that_is_told_of_an_instant_is_wrong(seed: int, magic: int, tmp_path: Path) -> None:
    check(seed, magic, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 150))
def test_nothing_that_is_told_of_any_instant_is_wrong(seed: int, tmp_path: Path) -> None:
    check(seed, seed % 2, tmp_path)


def told_world(tmp_path: Path, magic: int) -> tuple[Workspace, int]:
    """A log of four commits of one key, and an instant between the second and the third."""
    log = [Write(NOW + 1000 * n, ("a", 0), n) for n in range(4)]
    world = World(log, [(NOW, log)])
    return dump_of(world, tmp_path, magic, random.Random(1)), NOW + 1500


@pytest.mark.parametrize("magic", [0, 1])
def test_it_is_said_between_which_records_an_election_may_have_been(
    magic: int, tmp_path: Path
) -> None:
    decoded, at = told_world(tmp_path, magic)
    (offset,), history = asked(decoded, tmp_path / "at", at)
    assert not offset["complete"]
    assert offset["missing"] == (
        "a lost record may have changed it: __consumer_offsets-0 lacks all from offset 2 on (an "
        "unclean election may have lost commits: no leader epochs are recorded; it would have "
        "been between the records at offsets 1 and 2, 2023-11-14T22:13:21.000Z to "
        "2023-11-14T22:13:22.000Z (see --assume clean-elections))"
    )
    assert [row["complete"] for row in history] == [True, True]


@pytest.mark.parametrize("magic", [0, 1])
def test_whoever_vouches_for_elections_has_the_instant_answered(magic: int, tmp_path: Path) -> None:
    decoded, at = told_world(tmp_path, magic)
    (offset,), _ = asked(decoded, tmp_path / "at", at, (CLEAN_ELECTIONS,))
    assert (offset["complete"], offset["committed_offset"]) == (True, 1)
