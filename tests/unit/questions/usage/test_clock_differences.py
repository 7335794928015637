"""Times that contradict each other: worked by hand, and a plain loop over random logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analytics.questions.usage.records import (
    APPEND_TIME,
    CLASSIC_GROUPS,
    COMMIT_TIME,
    COMMITS,
    RECORD,
    STATE_TIME,
    AppendTimes,
    clock_differences,
    stated_times,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LIMIT_MS = 10_000


class Record(NamedTuple):
    """A record; times in seconds, None is not known."""

    partition: int
    group: str
    appended: int | None
    said: int | None


def rows_of(records: Sequence[Record], first: int, table: str) -> pl.DataFrame:
    rows = [
        {
            "topic": "__consumer_offsets",
            "table": table,
            "partition": each.partition,
            "offset": offset,
            "time_ms": None if each.appended is None else each.appended * 1000,
            "group_id": each.group,
            "stated_ms": None if each.said is None else each.said * 1000,
        }
        for offset, each in enumerate(records, first)
    ]
    return pl.DataFrame(rows, RECORD)


def differences(
    commits: Sequence[Record] = (), states: Sequence[Record] = (), cut: int = 0
) -> list[dict[str, Any]]:
    appended = AppendTimes(LIMIT_MS)
    pieces = [rows_of(commits[:cut], 0, COMMITS), rows_of(commits[cut:], cut, COMMITS)]
    pieces.append(rows_of(states, 0, CLASSIC_GROUPS))
    for each in pieces:
        appended.add(each)
    stated = [stated_times(each, LIMIT_MS) for each in pieces]
    rows: list[dict[str, Any]] = clock_differences(pl.concat([*stated, appended.rows])).to_pylist()
    return rows


def test_a_client_may_say_the_last_number_that_there_is() -> None:
    last = (2**63 - 1) // 1000

    (row,) = differences([Record(0, "b", 100, last)])

    assert row["most_ahead_ms"] == last * 1000 - 100_000


def test_a_commit_of_another_time_is_told_with_the_record_that_has_it() -> None:
    (row,) = differences(
        [Record(3, "b", 100, 100), Record(3, "b", 200, 90), Record(3, "b", 300, 311)]
    )
    assert row == {
        "topic": "__consumer_offsets",
        "partition": 3,
        "clock": COMMIT_TIME,
        "group_id": "b",
        "records": 2,
        "most_ahead_ms": 11_000,
        "most_behind_ms": 110_000,
        "most_ms": 110_000,
        "first_offset": 1,
        "first_at": EPOCH + timedelta(seconds=200),
    }


def test_a_limit_is_none() -> None:
    assert differences([Record(0, "b", 100, 90), Record(0, "b", 90, 100)]) == []


def test_a_state_may_be_old_and_never_later_than_its_record() -> None:
    (row,) = differences(states=[Record(0, "b", 1000, 1), Record(0, "c", 1000, 1011)])
    assert (row["clock"], row["group_id"], row["most_ms"]) == (STATE_TIME, "c", 11_000)


def test_a_time_that_is_not_known_contradicts_nothing() -> None:
    assert differences([Record(0, "b", None, 5), Record(0, "b", 5, None)]) == []


TIMES = st.one_of(st.none(), st.integers(0, 60))
RECORDS = st.builds(Record, st.integers(0, 2), st.sampled_from("ab"), TIMES, TIMES)


@given(st.lists(RECORDS, max_size=30), st.integers(0, 30))
def test_in_however_many_parts_a_log_is_read_a_loop_finds_the_same(
    records: list[Record], cut: int
) -> None:
    expected: dict[tuple[int, str, str | None], list[int]] = {}
    latest: dict[int, int] = {}
    for each in records:
        if each.appended is None:
            continue
        if each.said is not None and abs(ahead := each.said - each.appended) > LIMIT_MS / 1000:
            expected.setdefault((each.partition, COMMIT_TIME, each.group), []).append(ahead)
        before = latest.get(each.partition, each.appended)
        if each.appended - before < -LIMIT_MS / 1000:
            mine = expected.setdefault((each.partition, APPEND_TIME, None), [])
            mine.append(each.appended - before)
        latest[each.partition] = max(before, each.appended)
    found = {
        (row["partition"], row["clock"], row["group_id"]): (row["records"], row["most_ms"])
        for row in differences(records, cut=cut)
    }
    assert found == {
        key: (len(apart), max(map(abs, apart)) * 1000) for key, apart in expected.items()
    }
