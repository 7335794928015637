"""What is said of a group is the same whether others are asked about, too."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from analytics import open_dump
from analytics.assignors.group import string_hash
from analytics.questions.registry import question
from tests.support.lag_histories import BEGUN, PARTITIONS, TOPICS, RandomLog, bytes_of
from tests.support.log_dirs import LogDir
from tests.support.plain_log import PlainRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from analytics.library.dump import Dump
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

TOPIC = "__consumer_offsets"
LOGS, ACTS = 2, 70
MINUTE = 60_000
QUESTIONS = ("balance", "expiration", "lag", "list", "rebalances", "timeline")
INSTANTS: dict[str, dict[str, Any]] = {
    "the end": {},
    "a time": {"as_of": BEGUN + 70 * MINUTE},
    "an offset": {"ends": {(TOPIC, 0): ACTS // 2}},
}


def names(number: int, partitions: int, count: int = 3) -> list[str]:
    """Names of groups whose home is that partition."""
    every = (f"group-{each}" for each in range(1000))
    at_home = (each for each in every if abs(string_hash(each)) % partitions == number)
    return [next(at_home) for _ in range(count)]


@contextmanager
def dump_of(logs: Sequence[RandomLog], folder: Path) -> Iterator[Dump]:
    made = LogDir.create(folder / "disk")
    for log in logs:
        made.partition(f"{TOPIC}-{log.number}", {0: bytes_of(log.records)}, [(0, 0)])
    with open_dump(str(made.path)) as dump:
        yield dump


def about(state: ReplayedWorkspace, *groups: str) -> ReplayedWorkspace:
    chosen = replace(state.tables.selection, groups=groups)
    return replace(state, tables=replace(state.tables, selection=chosen))


def rows_of(state: ReplayedWorkspace, name: str, group: str) -> dict[str, list[str]]:
    """Return the rows about a group in all tables of an answer, each as text, sorted."""
    asked = question(name)
    answer = asked.ask(state, asked.settings())
    tables = {each: answer.rows(each).whole() for each in answer.tables}
    return {
        each: sorted(repr(row) for row in rows.to_pylist() if row["group_id"] == group)
        for each, rows in tables.items()
        if "group_id" in rows.column_names
    }


@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_group_alone_is_answered_of_as_among_all(seed: int, instant: str, tmp_path: Path) -> None:
    """Other groups show when a partition was written to last, and how large topics are."""
    random = Random(seed)
    logs = [RandomLog(random, each, names(each, LOGS)).play(ACTS) for each in range(LOGS)]
    with dump_of(logs, tmp_path) as dump:
        state = dump.replay(**INSTANTS[instant]).replayed
        for group in (logs[0].groups[0], logs[1].groups[0]):
            one = about(state, group)
            found = {name: rows_of(one, name, group) for name in QUESTIONS}
            assert any(each for rows in found.values() for each in rows.values())
            assert found == {name: rows_of(state, name, group) for name in QUESTIONS}


@pytest.fixture
def log() -> RandomLog:
    """Two groups: one commits and is removed by a record without a time, the other commits on."""
    log = RandomLog(Random(0), 0, names(0, 1, 2))
    first, second = log.groups

    def write(group: str, partition: int, minutes: int | None, *, is_removed: bool = False) -> None:
        at = -1 if minutes is None else BEGUN + minutes * MINUTE
        committed = {"offset": 7, "leader_epoch": -1, "metadata": "", "commit_timestamp": at}
        key = {"group": group, "topic": TOPICS[0], "partition": partition}
        value: Any = None if is_removed else committed
        place = 0, len(log.records), "offset_commit"
        log.records.append(PlainRecord(*place, key=key, value=value, timestamp=at))

    write(first, 0, 0)
    write(second, PARTITIONS, 30)
    write(first, 0, None, is_removed=True)
    write(second, PARTITIONS, 40)
    return log


def milliseconds(row: dict[str, Any], name: str) -> int:
    return round(row[name].timestamp() * 1000)


def asked(state: ReplayedWorkspace, name: str, table: str) -> list[dict[str, Any]]:
    of = question(name)
    rows: list[dict[str, Any]] = of.ask(state, of.settings()).rows(table).whole().to_pylist()
    return rows


def test_a_partition_that_is_cut_at_an_offset_was_observed_until_its_last_record_of_any_group(
    log: RandomLog, tmp_path: Path
) -> None:
    with dump_of([log], tmp_path) as dump:
        state = dump.replay(ends={(TOPIC, 0): 2}).replayed
        (row,) = asked(about(state, log.groups[0]), "expiration", "retention_what_if")
    last = max(each.timestamp for each in log.records if each.offset < 2)
    assert milliseconds(row, "observed_to") == last == BEGUN + 30 * MINUTE


def test_a_removal_without_a_time_is_later_than_a_later_record_before_it_of_any_group(
    log: RandomLog, tmp_path: Path
) -> None:
    first = log.groups[0]
    with dump_of([log], tmp_path) as dump:
        for minutes, removals in ((20, 0), (40, 1)):
            state = dump.replay(as_of=BEGUN + minutes * MINUTE).replayed
            found = asked(about(state, first), "expiration", "offset_removals")
            assert len(found) == removals, minutes
