"""What the fold says of how groups move is what a slow look at all commits says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analytics.contracts import contract_schema
from analytics.questions.lag.movement import HISTORY as READ
from analytics.questions.lag.movement import in_order, movement
from analytics.questions.lag.pace import log_ends
from analytics.replay.log.log_times import LogClock
from analytics.replayed.end_offsets import SAMPLES
from schemas.evaluation_rules import JumpRules, lag_rules
from tests.support.reference_moves import MOST, Committed, ReferenceMoves
from tests.unit.questions.lag.commits import EPOCH, HISTORY, at, history

EPOCH_MS = round(EPOCH.timestamp() * 1000)
NO_SAMPLES = log_ends(SAMPLES.empty_table())
KEY = ("group_id", "topic", "partition")


def moved(
    rows: pl.DataFrame,
    rules: JumpRules,
    since_ms: int = 0,
    clocks: Mapping[int, LogClock] = MappingProxyType({}),
) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """What was seen of each partition, and the table `offset_moves`."""
    progress, moves = movement(*in_order(rows), NO_SAMPLES, rules, since_ms, clocks)
    return progress.to_dicts(), moves


def test_a_step_back_is_told_with_who_committed_before_and_after() -> None:
    rows = history(
        [
            {"committed_offset": 40, "epoch": 1, "member_id": "a"},
            {"committed_offset": 15, "epoch": 2, "member_id": "b"},
        ]
    )
    (move,) = moved(rows, lag_rules().jump)[1].to_dicts()

    assert (move["kind"], move["previous_offset"], move["committed_offset"]) == ("rewind", 40, 15)
    assert (move["previous_epoch"], move["previous_member_id"], move["previous_at"]) == (
        *(1, "a"),
        at(0),
    )
    assert (move["epoch"], move["member_id"], move["advance"]) == (2, "b", -25)


def test_what_has_a_commit_of_a_clock_that_was_set_or_wrong_is_undated() -> None:
    rows = history(
        [
            {"committed_offset": offset, "partition": partition, "event": event}
            | {"coordinator_partition": 7, "effective_offset": place}
            for place, (partition, offset, event) in enumerate(
                [(0, 5, "commit"), (1, 5, "commit"), (0, None, "delete"), (1, 9, "commit")]
            )
        ]
    )

    def undated(clock: LogClock, home: int = 7) -> list[int]:
        progress, _ = moved(rows, lag_rules().jump, clocks={home: clock})
        return [row["partition"] for row in progress if row["is_undated"]]

    assert undated(LogClock(((3, 3),))) == [0, 1]
    assert undated(LogClock(((3, 3),)), home=8) == []
    assert undated(LogClock(wrong=((3, 9),))) == [1]
    assert undated(LogClock(wrong=((0, 1),))) == [0]
    assert undated(LogClock(wrong=((2, 3),))) == []


def test_commits_without_a_time_are_counted_and_rates_are_of_those_that_have_one() -> None:
    offsets, times = [90, 40, 60, 65], [None, None, at(1000), at(3000)]
    rows = history([{"committed_offset": each} for each in offsets])
    kind = rows.schema["effective_timestamp"]
    rows = rows.with_columns(pl.Series("effective_timestamp", times, kind))
    (row,), moves = moved(rows, lag_rules().jump, since_ms=EPOCH_MS)

    assert (row["commits"], row["rewinds"], row["advanced"]) == (4, 1, 25)
    assert (row["timed_commits"], row["timed_advanced"]) == (2, 5)
    assert (row["highest_committed"], row["first_committed"]) == (90, 90)
    assert (row["first_commit_at"], row["last_commit_at"]) == (at(1000), at(3000))
    assert (row["since_at"], row["since_offset"]) == (at(1000), 60)
    # When the step back was is not known.
    assert moves.is_empty()


def test_a_step_far_longer_than_those_before_it_is_a_jump() -> None:
    steps = [0, 100, 200, 300, 400, 500, 600, 700, 100_700, 100_800]
    commits = history([{"committed_offset": each} for each in steps])
    (row,), moves = moved(commits, JumpRules(20, 1000, 5))
    (move,) = moves.to_dicts()

    assert (move["kind"], move["advance"], move["effective_timestamp"]) == ("jump", 100_000, at(8))
    assert (row["jumps"], row["rewinds"], row["advanced"]) == (1, 0, 100_800)


def test_few_records_and_few_steps_before_it_make_no_jump() -> None:
    rules = JumpRules(20, 1000, 5)
    short = [0, 1, 2, 3, 4, 5, 6, 900]
    early = [0, 1, 2, 3, 4, 50_000]
    for offsets in (short, early):
        commits = history([{"committed_offset": each} for each in offsets])
        assert moved(commits, rules)[1].is_empty()


def test_commits_that_change_nothing_are_counted_and_deletions_are_no_commits() -> None:
    rows = history(
        [
            *({"committed_offset": 7} for _ in range(3)),
            {"committed_offset": None, "event": "delete"},
            {"committed_offset": 9, "event": "transaction_abort"},
        ]
    )
    ((row,), _) = moved(rows, lag_rules().jump)

    assert (row["commits"], row["unchanged_commits"], row["last_advance_at"]) == (3, 2, None)


COMMITS = st.lists(
    st.fixed_dictionaries(
        {
            "group_id": st.sampled_from(["g", "", "länge"]),
            "topic": st.sampled_from(["t", "u"]),
            "partition": st.integers(0, 2),
            "committed_offset": st.one_of(st.integers(0, 200), st.sampled_from([0, MOST])),
            "epoch": st.one_of(st.none(), st.integers(-1, 5)),
            "member_id": st.one_of(st.none(), st.sampled_from(["a", "b", ""])),
        }
    ),
    max_size=80,
)


@given(
    commits=COMMITS,
    times=st.integers(1, 4),
    records=st.integers(1, 50),
    after=st.integers(1, 3),
    since=st.integers(0, 80),
)
def test_every_number_and_every_move_is_that_of_a_slow_look(
    commits: list[dict[str, Any]],
    times: int,
    records: int,
    after: int,
    since: int,
) -> None:
    expected: defaultdict[tuple[str, str, int], ReferenceMoves] = defaultdict(
        lambda: ReferenceMoves(times, records, after)
    )
    for number, row in enumerate(commits):
        now = Committed(number, row["committed_offset"], row["epoch"], row["member_id"])
        expected[row["group_id"], row["topic"], row["partition"]].commit(now)
    progress, moves = moved(history(commits), JumpRules(times, records, after), EPOCH_MS + since)

    found = {tuple(row[name] for name in KEY): row for row in progress}
    assert found.keys() == expected.keys()
    for key, each in expected.items():
        row = found[key]
        for name, count in each.counts().items():
            told = at(count) if name.endswith("_at") and count is not None else count
            assert row[name] == told, (key, name)
        assert row["since_offset"] == each.offset_at(since)
    assert moves.schema == contract_schema("offset_moves")
    names = (*KEY, "kind", "effective_timestamp", "advance")
    before = tuple(f"previous_{name}" for name in ("epoch", "member_id", "at"))
    told_moves = [tuple(row[name] for name in (*names, *before)) for row in moves.to_dicts()]
    assert sorted(told_moves, key=str) == sorted(
        (
            (*key, kind, at(when), step, last.epoch, last.member, at(last.at))
            for key, each in expected.items()
            for kind, when, step, last in each.moves
        ),
        key=str,
    )


def test_the_columns_that_are_read_are_those_of_the_history() -> None:
    assert set(READ) == set(HISTORY.names)
