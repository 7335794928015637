"""Lag at an instant: Kafka's number, what it hides, and what nobody reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.questions.lag.offsets import (
    BELOW_FIRST,
    BETWEEN,
    FROM_START,
    INTERPOLATED,
    LACKING,
    NO_END,
    NOT_KNOWN,
    OTHER_LOG,
    READ_BEFORE,
    REMOVED,
    named_by_cluster,
)
from analytics.questions.lag.sums import group_capacity, sums_of
from analytics.questions.lag.table import FORGOTTEN, MAY_BE_FORGOTTEN, UNBELIEVED, Lag
from schemas.evaluation_rules import lag_rules
from tests.unit.questions.lag.asked_lag import NOW, asked
from tests.unit.questions.lag.commits import EPOCH, history


def only(found: Lag) -> dict[str, Any]:
    (row,) = found.rows.to_dicts()
    return dict(row)


def commit(offset: int, **more: Any) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "committed_offset": offset, **more}


def test_lag_is_the_end_minus_the_committed_offset() -> None:
    row = only(asked(committed=[commit(7)], ends={("t", 0): (0, 10)}).found())

    assert (row["lag"], row["records_to_read"], row["lost_offsets"]) == (3, 3, 0)
    assert (row["kind"], row["verdict"]) == ("unassigned", "unread")


def test_what_retention_deleted_is_told_apart_from_what_is_left_to_read() -> None:
    row = only(asked(committed=[commit(7)], ends={("t", 0): (9, 10)}).found())

    assert (row["lag"], row["records_to_read"], row["lost_offsets"]) == (3, 1, 2)
    assert row["verdict"] == "lost_records"


def below_start(*offsets: int, why: str | None = None, **more: Any) -> dict[str, Any]:
    """Return what is said of a group that committed offsets, the last of them below the start."""
    question = asked(committed=[commit(offsets[-1])], ends={("t", 0): (130, 170)})
    lacking = [] if why is None else [{"group_id": "g", "why": why}]
    question = question.of(lacking=pl.DataFrame(lacking, LACKING))
    commits = [{"committed_offset": each, **more} for each in offsets]
    return only(question.found(history(commits)))


def test_what_was_read_before_a_step_back_is_not_lost() -> None:
    row = below_start(155, 160, 100)
    assert (row["lag"], row["offsets_below_start"], row["lost_offsets"]) == (70, 30, 0)
    assert (row["verdict"], row["highest_committed"]) == ("below_log_start", 160)
    assert row["reason"] == READ_BEFORE.format(160)


def test_only_what_no_commit_ever_passed_is_lost() -> None:
    row = below_start(110, 120, 100)
    assert (row["verdict"], row["lost_offsets"]) == ("lost_records", 10)


def test_where_earlier_commits_may_be_missing_it_is_not_known_whether_it_was_read() -> None:
    compacted = below_start(100, why="history before offset 9 was compacted")
    assert (compacted["verdict"], compacted["lost_offsets"]) == ("below_log_start", None)
    assert compacted["reason"] == f"{NOT_KNOWN}history before offset 9 was compacted"
    assert below_start(90, 100, complete=False)["lost_offsets"] is None
    # What is there refutes a loss all the same.
    assert below_start(160, 100, why="compacted")["lost_offsets"] == 0


def test_a_higher_commit_for_another_topic_of_that_name_refutes_nothing() -> None:
    question = asked(committed=[commit(100, topic_id="new")], ends={("t", 0): (130, 170)})
    for other in ({"topic_id": "old"}, {"topic_id": None}):
        cause = "topic_recreated" if other["topic_id"] is None else None
        commits: list[dict[str, Any]] = [
            {"committed_offset": 160, **other},
            {"committed_offset": 100, "topic_id": "new", "cause": cause},
        ]
        row = only(question.found(history(commits)))
        assert (row["verdict"], row["lost_offsets"]) == ("lost_records", 30)


def begun(start: int, epoch: int, why: str | None = None) -> dict[str, Any]:
    """Return what is said of a partition that a group began at 4010, in an epoch after 1 or in it.

    Another partition of the topic it had begun in epoch 1.
    """
    question = asked(
        committed=[commit(50), {**commit(4020), "partition": 1}],
        ends={("t", 0): (0, 50), ("t", 1): (start, 4020)},
    )
    lacking = [] if why is None else [{"group_id": "g", "why": why}]
    question = question.of(lacking=pl.DataFrame(lacking, LACKING))
    commits = [
        {"committed_offset": 40, "epoch": 1},
        {"committed_offset": 4010, "epoch": epoch, "partition": 1},
        {"committed_offset": 4020, "epoch": epoch, "partition": 1},
    ]
    rows = question.found(history(commits)).rows.to_dicts()
    return next(dict(each) for each in rows if each["partition"] == 1)


def test_what_lies_below_the_first_commit_to_a_later_partition_was_never_committed() -> None:
    row = begun(0, 2)
    assert (row["first_committed"], row["offsets_below_first"]) == (4010, 4010)
    assert row["reason"] == BELOW_FIRST.format(0, 4009)


def test_where_a_group_begins_with_its_topic_only_the_number_tells() -> None:
    row = begun(0, 1)
    assert row["offsets_below_first"] == 4010
    assert row["reason"] != BELOW_FIRST.format(0, 4009)
    assert begun(4010, 2)["offsets_below_first"] == 0
    # Earlier commits may have been taken: the first that is there need not be the first.
    assert begun(0, 2, why="compacted")["offsets_below_first"] is None


def test_an_offset_beyond_the_end_is_a_negative_lag_and_never_clamped() -> None:
    row = only(asked(committed=[commit(12)], ends={("t", 0): (0, 10)}).found())

    assert (row["lag"], row["offsets_beyond_end"], row["verdict"]) == (-2, 2, "beyond_end")


def test_where_the_end_is_not_known_no_offset_is_beyond_it() -> None:
    row = only(asked(committed=[commit(100)], ends={("t", 0): (40, None)}).found())
    assert (row["lag"], row["offsets_beyond_end"]) == (None, None)
    assert row["verdict"] != "beyond_end"


def test_an_offset_of_a_topic_that_was_made_again_has_no_lag() -> None:
    topics = [
        {"topic": "t", "topic_id": "old", "partitions": 1, "deleted_at": NOW},
        {"topic": "t", "topic_id": "new", "partitions": 1},
    ]
    question = asked(committed=[commit(7, topic_id="old")], topics=topics, ends={("t", 0): (0, 10)})
    row = only(question.found())

    assert (row["lag"], row["verdict"], row["reason"]) == (None, "other_topic", OTHER_LOG)


@pytest.mark.parametrize(
    ("committed", "end", "lag"),
    [
        (7, 10, 3),
        # It came after the first answer: the log had grown so far.
        (12, 12, 0),
        # Beyond what the log ever was.
        (20, 15, -5),
    ],
)
def test_of_two_ends_of_a_snapshot_the_earlier_one_that_fits_the_commit_counts(
    committed: int, end: int, lag: int
) -> None:
    question = asked(committed=[commit(committed)], ends={("t", 0): (0, 15)})
    later = pl.lit(10, pl.Int64).alias("first_end_offset"), pl.lit(15).alias("later_end_offset")
    row = only(question.of(ends=question.question.ends.with_columns(later)).found())
    assert (row["log_end_offset"], row["lag"]) == (end, lag)


def test_an_end_from_elsewhere_is_not_held_against_those_of_a_snapshot() -> None:
    question = asked(committed=[commit(7)], ends={("t", 0): (0, 14)})
    later = pl.lit(10, pl.Int64).alias("first_end_offset"), pl.lit(15).alias("later_end_offset")
    row = only(question.of(ends=question.question.ends.with_columns(later)).found())
    assert row["log_end_offset"] == 14


def test_a_name_that_the_cluster_has_for_another_id_is_no_longer_what_records_say() -> None:
    rows = [
        {"topic": "t", "topic_id": "old", "source": "record"},
        {"topic": "t", "topic_id": "new", "source": "snapshot"},
        {"topic": "u", "topic_id": "u", "source": "record"},
        # Without ids nothing tells which one it is.
        {"topic": "v", "topic_id": "v", "source": "record"},
        {"topic": "v", "topic_id": None, "source": "snapshot"},
    ]
    kept = named_by_cluster(pl.DataFrame(rows)).to_dicts()
    assert kept == rows[1:]


def test_without_an_end_nothing_is_said_about_lag() -> None:
    row = only(asked(committed=[commit(7)]).found())

    assert (row["lag"], row["lost_offsets"], row["time_lag_bound"]) == (None, None, "unknown")
    assert (row["status"], row["reason"], row["verdict"]) == ("NOT_EVALUABLE", NO_END, "idle")


def test_what_was_never_committed_is_counted_from_the_log_start() -> None:
    question = asked(owned=[("g", "t", 0, "m")], subscribed={"m": ["t"]}, ends={("t", 0): (4, 10)})
    row = only(question.found())

    assert (row["lag"], row["committed_offset"], row["reason"]) == (6, None, FROM_START)
    assert (row["kind"], row["member_id"], row["verdict"]) == (
        *("never_committed", "m"),
        "never_committed",
    )


def test_what_may_have_been_committed_among_lost_records_is_not_called_never_committed() -> None:
    question = asked(owned=[("g", "t", 0, "m")], subscribed={"m": ["t"]}, ends={("t", 0): (4, 10)})
    lost = pl.DataFrame({"group_id": ["g"], "why": ["a segment is missing"]})
    row = only(replace(question, tables=replace(question.tables, lost=lost)).found())

    assert (row["lag"], row["records_to_read"], row["verdict"]) == (None, None, "cannot_tell")
    assert (row["complete"], row["reason"]) == (False, "a segment is missing")


def test_what_was_committed_and_removed_was_not_never_committed() -> None:
    question = asked(owned=[("g", "t", 0, "m")], subscribed={"m": ["t"]}, ends={("t", 0): (4, 10)})
    (row,) = question.found(history([{"committed_offset": 7}])).rows.to_dicts()

    assert (row["lag"], row["commits"], row["reason"]) == (6, 1, REMOVED)


def test_partitions_that_are_subscribed_and_nobodys_are_there_too() -> None:
    question = asked(
        owned=[("g", "t", 0, "m")],
        subscribed={"m": ["t"]},
        topics=[{"topic": "t", "topic_id": "id", "partitions": 3}],
    )
    rows = question.found().rows.to_dicts()

    assert sorted((row["partition"], row["member_id"]) for row in rows) == [
        *((0, "m"), (1, None)),
        (2, None),
    ]


def test_each_of_many_partitions_has_its_own_owner() -> None:
    owner = {(topic, place): f"m{place % 7}" for topic in "tu" for place in range(60)}
    question = asked(
        owned=[("g", topic, place, member) for (topic, place), member in owner.items()],
        subscribed={f"m{each}": ["t", "u"] for each in range(7)},
    )
    rows = question.found().rows.to_dicts()

    assert {(row["topic"], row["partition"]): row["member_id"] for row in rows} == owner


def test_a_partition_that_two_members_own_is_one_row_and_has_its_lag_once() -> None:
    question = asked(
        committed=[commit(7), commit(1, partition=1)],
        owned=[("g", "t", 0, "m"), ("g", "t", 0, "n"), ("g", "t", 1, "m")],
        subscribed={"m": ["t"], "n": ["t"]},
        ends={("t", 0): (0, 10), ("t", 1): (0, 10)},
    )
    rows = question.found().rows
    shared, single = sorted(rows.to_dicts(), key=lambda row: row["partition"])

    m, n = ({"member_id": each, "client_id": f"c-{each}", "client_host": None} for each in "mn")
    assert (shared["owners"], single["owners"]) == ([m, n], [m])
    assert (shared["member_id"], shared["client_id"]) == (None, None)
    assert (single["member_id"], single["client_id"]) == ("m", "c-m")
    assert (shared["kind"], shared["lag"], shared["reason"]) == ("assigned", 3, "2 members own it")
    sums = {by: sums_of(rows, by, lag_rules()).to_dicts() for by in ("group", "member")}
    assert [row["lag"] for row in sums["group"]] == [12]
    # Either of them has it to read.
    assert {row["member_id"]: row["lag"] for row in sums["member"]} == {"m": 12, "n": 3}
    (capacity,) = group_capacity(rows, question.tables.members).to_dicts()
    assert (capacity["partitions"], capacity["members"], capacity["idle_members"]) == (2, 2, 0)


def test_a_commit_and_a_sample_of_one_instant_are_one_status() -> None:
    earlier = NOW - timedelta(seconds=7)
    question = asked(
        committed=[commit(30)],
        ends={("t", 0): (0, 100)},
        samples=[("t", 0, NOW, 100)],
    )
    commits = history(
        [
            {"committed_offset": offset, "commit_timestamp": at, "effective_timestamp": at}
            for offset, at in ((10, earlier), (30, NOW))
        ]
    )
    statuses = question.found(commits).statuses.to_dicts()

    assert [(row["from_timestamp"], row["status"]) for row in statuses] == [(NOW, "NOT_EVALUABLE")]


def test_a_topic_that_the_group_no_longer_subscribes_to_is_stale() -> None:
    question = asked(committed=[commit(7)], subscribed={"m": ["other"]}, ends={("t", 0): (0, 10)})
    row = only(question.found())

    assert (row["kind"], row["verdict"], row["lag"]) == ("stale", "stale", 3)


def test_a_subscription_that_cannot_be_read_may_be_to_any_topic() -> None:
    question = asked(
        committed=[commit(7)], subscribed={"m": ["other"], "n": None}, ends={("t", 0): (0, 10)}
    )

    assert only(question.found())["kind"] == "unassigned"


def test_an_offset_that_a_lost_record_may_have_changed_cannot_be_told() -> None:
    lost = commit(7, complete=False, missing="records below 12 are missing")
    samples = [("t", 0, EPOCH, 7), ("t", 0, NOW, 10)]
    question = asked(committed=[lost], ends={("t", 0): (0, 10)}, samples=samples)
    found = question.found(history([{"committed_offset": 7}]))

    assert only(found)["verdict"] == "cannot_tell"
    # Nor can the status that rests on it.
    (status,) = found.statuses.to_dicts()
    assert (status["complete"], status["missing"]) == (False, "records below 12 are missing")


def test_stale_lag_is_apart_in_sums_and_unknown_lag_is_counted() -> None:
    question = asked(
        committed=[commit(7), commit(1, topic="gone"), commit(5, partition=1)],
        owned=[("g", "t", 0, "m")],
        subscribed={"m": ["t"]},
        ends={("t", 0): (0, 10), ("gone", 0): (0, 100)},
    )
    (row,) = sums_of(question.found().rows, "group", lag_rules()).to_dicts()

    assert (row["lag"], row["stale_lag"], row["unknown_lag"], row["partitions"]) == (3, 99, 1, 3)


def minutes_ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def test_time_lag_is_interpolated_between_samples_of_the_end() -> None:
    samples = [("t", 0, minutes_ago(20), 0), ("t", 0, minutes_ago(10), 100)]
    question = asked(committed=[commit(50)], ends={("t", 0): (0, 100)}, samples=samples)
    row = only(question.found())

    assert (row["time_lag_ms"], row["time_lag_bound"]) == (15 * 60_000, "exact")


def test_before_the_first_sample_time_lag_is_a_bound() -> None:
    samples = [("t", 0, minutes_ago(20), 60), ("t", 0, minutes_ago(10), 100)]
    question = asked(committed=[commit(50)], ends={("t", 0): (0, 100)}, samples=samples)
    row = only(question.found())

    assert (row["time_lag_ms"], row["time_lag_bound"]) == (20 * 60_000, "at_least")


def test_the_end_now_tells_no_time_lag() -> None:
    question = asked(
        committed=[commit(50)], ends={("t", 0): (0, 100)}, samples=[("t", 0, NOW, 100)]
    )
    row = only(question.found())

    assert (row["time_lag_ms"], row["time_lag_bound"]) == (None, "unknown")


def test_what_producers_clocks_say_of_unread_records_is_a_bound() -> None:
    # The record at 60 is ten minutes old, one after it an hour: an older one may be left, too.
    written = [("t", 0, minutes_ago(10), 61), ("t", 0, minutes_ago(60), 81)]
    question = asked(committed=[commit(50)], ends={("t", 0): (0, 100)}, written=written)
    row = only(question.found())

    assert (row["time_lag_ms"], row["time_lag_bound"]) == (60 * 60_000, "at_least")
    question = asked(committed=[commit(90)], ends={("t", 0): (0, 100)}, written=written)
    assert only(question.found())["time_lag_bound"] == "unknown"


def between(committed: int) -> dict[str, Any]:
    """Return the lag where the log ended between 100 and 199, and on the line at 149."""
    question = asked(committed=[commit(committed)], ends={("t", 0): (None, 149)})
    ends = question.question.ends.with_columns(
        log_end_bound=pl.lit("interpolated"), log_end_least=pl.lit(100), log_end_most=pl.lit(199)
    )
    return only(question.of(ends=ends).found())


def test_an_interpolated_end_tells_a_lag_only_where_it_cannot_be_none() -> None:
    assert (between(40)["lag"], between(40)["log_end_bound"]) == (109, "interpolated")
    assert between(40)["reason"] == f"{INTERPOLATED} 100 and 199"
    for committed in (100, 150, 199):
        row = between(committed)
        assert (row["lag"], row["verdict"]) == (None, "idle")
        assert row["reason"] == f"{BETWEEN} 100 and 199"
    assert between(260)["verdict"] == "beyond_end"


def test_no_lag_is_no_time_lag() -> None:
    row = only(asked(committed=[commit(10)], ends={("t", 0): (0, 10)}).found())

    assert (row["time_lag_ms"], row["time_lag_bound"], row["verdict"]) == (0, "exact", "caught_up")


@settings(max_examples=30)
@given(
    offset=st.integers(0, 50),
    start=st.integers(0, 50),
    length=st.integers(0, 50),
)
def test_lost_and_readable_and_beyond_make_up_the_lag(offset: int, start: int, length: int) -> None:
    end = start + length
    row = only(asked(committed=[commit(offset)], ends={("t", 0): (start, end)}).found())

    assert row["lag"] == end - offset
    parts = row["offsets_below_start"] + row["records_to_read"] - row["offsets_beyond_end"]
    assert row["lag"] == parts
    assert (row["lag"] < 0) == (row["offsets_beyond_end"] > 0)


def burrows(*ages_s: int) -> list[str | None]:
    """Return by partition why Burrow's status is not told: the last commit of each is so old."""
    at = [NOW - timedelta(seconds=each) for each in ages_s]
    committed = [commit(7, partition=place) for place in range(len(at))]
    commits = [
        {"partition": place, "committed_offset": 7, "effective_timestamp": each}
        for place, each in enumerate(at)
    ]
    question = asked(committed=committed, ends={("t", place): (0, 10) for place in range(len(at))})
    rows = question.found(history(commits)).rows.to_dicts()
    assert {each["status"] for each in rows} == {"NOT_EVALUABLE"}
    return [each["reason"] for each in sorted(rows, key=lambda each: each["partition"])]


def test_a_group_is_forgotten_by_commits_whose_time_is_believed() -> None:
    long_ago, ahead = lag_rules().burrow.expire_group + 60, -86_400
    assert burrows(long_ago) == [FORGOTTEN.format(lag_rules().burrow.expire_group)]
    # Of two commits of long ago, one with a clock far ahead: it may have been a moment ago.
    old, unbelieved = burrows(long_ago, ahead)
    assert old == MAY_BE_FORGOTTEN.format(lag_rules().burrow.expire_group)
    assert unbelieved == UNBELIEVED
    # One of a moment ago that is believed is enough.
    assert burrows(60, ahead)[0] not in {old, FORGOTTEN}


@pytest.mark.parametrize(
    ("gap_at", "is_told"),
    [(None, True), (0, True), (1, False), (2, False)],
    ids=["whole", "before all", "before a commit", "before a deletion"],
)
def test_rates_are_of_commits_between_which_none_is_lost(gap_at: int | None, is_told: bool) -> None:
    events: list[dict[str, Any]] = [
        {"committed_offset": 0},
        {"committed_offset": 40},
        {"committed_offset": None, "event": "tombstone"},
        {"committed_offset": 60},
    ]
    times = [NOW - timedelta(seconds=90 - 30 * place) for place in range(4)]
    commits = [
        {**each, "effective_timestamp": time, "complete": place != gap_at}
        for place, (each, time) in enumerate(zip(events, times, strict=True))
    ]
    row = only(asked(committed=[commit(60)]).found(history(commits)))
    assert (row["records_per_second"] is not None) == is_told
    assert (row["commits_per_second"] is not None) == is_told
