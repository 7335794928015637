"""What is said of a group is the same whether others are asked about, too."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from analytics import open_dump
from analytics.assignors.group import string_hash
from analytics.questions.question import question
from tests.support.lag_histories import BEGUN, PARTITIONS, TOPICS, RandomLog, bytes_of
from tests.support.log_dirs import LogDir
from tests.support.plain_log import PlainRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.library.dump import Dump
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

TOPIC = "__consumer_offsets"
LOGS, ACTS = 2, 70
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
EXPIRATION = ("offset_expiration", "offset_removals", "group_endings")
OLD_DUMP = Path(__file__).parents[2] / "data" / "dumps" / "kafka-2.0.1-v1" / "broker-1"
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


def about(
    state: ReplayedWorkspace, *groups: str, topics: tuple[str, ...] = ()
) -> ReplayedWorkspace:
    chosen = replace(state.tables.selection, groups=groups, topics=topics)
    return replace(state, tables=replace(state.tables, selection=chosen))


def tables_of(state: ReplayedWorkspace) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the rows of groups, by question and table."""
    found = {}
    for name in QUESTIONS:
        of = question(name)
        answer = of.ask(state, of.settings())
        for table in answer.tables:
            rows = answer.rows(table).whole()
            if "group_id" in rows.column_names:
                found[name, table] = rows.to_pylist()
    return found


def rows_of(
    tables: dict[tuple[str, str], list[dict[str, Any]]], group: str
) -> dict[tuple[str, str], list[str]]:
    """Return the rows about a group, each as text, sorted."""
    return {
        each: sorted(repr(row) for row in rows if row["group_id"] == group)
        for each, rows in tables.items()
    }


@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_group_alone_is_answered_of_as_among_all(seed: int, instant: str, tmp_path: Path) -> None:
    """Other groups show when a partition was written to last, and how large topics are."""
    random = Random(seed)
    logs = [RandomLog(random, each, names(each, LOGS)).play(ACTS) for each in range(LOGS)]
    with dump_of(logs, tmp_path) as dump:
        state = dump.replay(**INSTANTS[instant]).replayed
        every = tables_of(state)
        for group in (logs[0].groups[0], logs[1].groups[0]):
            found = rows_of(tables_of(about(state, group)), group)
            assert any(found.values())
            assert found == rows_of(every, group)


def test_the_offsets_of_a_topic_are_judged_as_among_all(tmp_path: Path) -> None:
    """A group that has offsets of another topic is not at its end, whichever topic is asked for."""
    lives_on, ends, never_had = names(0, 1)
    orders, payments = TOPICS
    log = RandomLog(Random(0), 0, [])

    def write(group: str, topic: str, days: int, *, is_removed: bool = False) -> None:
        at = BEGUN + days * DAY
        value = {"offset": 7, "leader_epoch": -1, "metadata": "", "commit_timestamp": at}
        key = {"group": group, "topic": topic, "partition": 0}
        place = 0, len(log.records), "offset_commit"
        written = None if is_removed else value
        log.records.append(PlainRecord(*place, key=key, value=written, timestamp=at))

    for group, topic in ((lives_on, orders), (ends, orders), (ends, payments)):
        write(group, topic, 0)
    write(never_had, payments, 0)
    write(lives_on, payments, 7)
    for group, topic in ((lives_on, orders), (ends, payments), (ends, orders)):
        write(group, topic, 8, is_removed=True)
    write(never_had, payments, 8, is_removed=True)

    with dump_of([log], tmp_path) as dump:
        state = dump.replay().replayed
        every = {name: asked(state, "expiration", name) for name in EXPIRATION}
        assert {row["group_id"] for row in every["group_endings"]} == {ends, never_had}
        for topic, ended in ((orders, {ends}), (payments, {ends, never_had})):
            part = about(state, topics=(topic,))
            for name in ("offset_expiration", "offset_removals"):
                rows = [row for row in every[name] if row["topic"] == topic]
                assert asked(part, "expiration", name) == rows, (topic, name)
            rows = [row for row in every["group_endings"] if row["group_id"] in ended]
            assert asked(part, "expiration", "group_endings") == rows, topic


@pytest.mark.long
def test_what_bounds_the_time_of_a_removal_are_records_of_any_group() -> None:
    """Message format 0 has no times: of this group's own records none is near enough."""
    group = "import-v0-lz4-10"
    with open_dump(str(OLD_DUMP)) as dump:
        state = dump.replay().replayed
        every = asked(state, "expiration", "offset_removals")
        rows = [row for row in every if row["group_id"] == group]
        assert {row["cause"] for row in rows} == {"expiration"}
        assert asked(about(state, group), "expiration", "offset_removals") == rows


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
