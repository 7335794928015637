"""One word on each share partition."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import polars as pl
import pytest

from analytics.questions.share.backlog import evaluate_share, with_share_lag
from analytics.questions.share.held_up import TRANSACTIONS
from analytics.questions.share.settings import (
    DELIVERY_LIMIT,
    ISOLATION,
    RECORD_LOCKS,
    Setting,
    ShareSettings,
)
from analytics.questions.share.state_topic import StateCoverage
from analytics.questions.share.status import GROUPS_WENT_BACK, NOT_SEEN, WENT_BACK, sums_of
from analytics.replay.log.log_times import LogClock
from analytics.replay.log.topic_homes import internal_partition, share_key
from schemas.share_rules import share_rules
from tests.support.broker_state import CutBatch
from tests.support.reference_share_coordinator import ShareRecord, Snapshot, Update
from tests.unit.questions.share.backlog import BEGIN, SETTINGS, question, time_of

KEY = ("g", "topic", 0)
END = {("orders", 0): (0, 100)}
MEMBER = {"owned": [KEY]}
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
SET_BACK = LogClock(((1, 1),))


def begins(start: int = 10, *batches: CutBatch) -> ShareRecord:
    value = Snapshot(0, 0, 0, start, 0, 1, 1, batches)
    return ShareRecord(0, 0, KEY, value)


def update(offset: int, start: int, *batches: CutBatch) -> ShareRecord:
    return ShareRecord(0, offset, KEY, Update(0, 0, start, 0, batches))


def row(*records: ShareRecord, **more: Any) -> dict[str, Any]:
    (found,) = evaluate_share(question(records, **{"ends": END, **MEMBER, **more})).rows.to_dicts()
    return dict(found)


DONE_BEHIND = (CutBatch(10, 10, AVAILABLE, 2), CutBatch(11, 14, ACKNOWLEDGED, 1))


def test_a_range_that_keeps_the_start_offset_for_long_blocks() -> None:
    records = begins(), update(1, 10, *DONE_BEHIND)
    found = row(*records, as_of=time_of(1) + timedelta(minutes=5))

    assert found["status"] == "blocked"
    assert (found["blocking_first_offset"], found["blocking_last_offset"]) == (10, 10)
    assert (found["blocking_state"], found["blocking_delivery_count"]) == ("AVAILABLE", 2)
    # It was at 10 from the beginning; that there was a record to deliver shows later.
    assert found["start_moved_at"] == time_of(0)
    assert (found["stalled_since"], found["stalled_bound"]) == (time_of(1), "at_latest")


def test_a_millisecond_before_it_is_only_behind() -> None:
    records = begins(), update(1, 10, *DONE_BEHIND)
    as_of = time_of(1) + timedelta(minutes=5, milliseconds=-1)
    assert row(*records, as_of=as_of)["status"] == "behind"


def test_what_is_dealt_with_last_says_since_when_exactly() -> None:
    records = begins(), update(1, 10, CutBatch(11, 14, AVAILABLE, 1)), update(
        2, 10, CutBatch(10, 10, ACKNOWLEDGED, 1)
    )  # fmt: skip
    found = row(*records, as_of=time_of(60))
    assert (found["next_offset"], found["status"]) == (11, "stalled")
    assert (found["stalled_since"], found["stalled_bound"]) == (time_of(2), "exact")


def test_records_are_known_to_wait_from_the_first_sample_beyond_on() -> None:
    samples = [("orders", 0, time_of(3), 10), ("orders", 0, time_of(7), 11)]
    found = row(begins(), samples=samples, as_of=time_of(12))
    assert (found["status"], found["stalled_since"]) == ("stalled", time_of(7))
    assert found["stalled_bound"] == "at_latest"


def test_where_the_log_begins_later_it_may_have_stood_longer() -> None:
    value = Snapshot(4, 0, 0, 10, 0, 1, 1, DONE_BEHIND)
    found = row(ShareRecord(0, 50, KEY, value), as_of=time_of(51))
    assert (found["status"], found["start_moved_bound"]) == ("behind", "at_latest")


def test_what_no_member_owns_is_unread() -> None:
    found = row(begins(), update(1, 10, *DONE_BEHIND), owned=[], as_of=time_of(60))
    assert (found["status"], found["members"]) == ("unread", 0)


def test_whether_members_own_it_is_not_known_of_a_group_that_is_not_whole() -> None:
    records = begins(), update(1, 10, *DONE_BEHIND)
    for unknown in ({"groups": []}, {"has_whole_groups": False}):
        found = row(*records, owned=[], as_of=time_of(60), **unknown)
        assert (found["status"], found["members"]) == ("cannot_tell", None)
        assert found["reason"] == NOT_SEEN
        # What is stored still shows what keeps the start offset where it is.
        assert found["blocking_first_offset"] == 10


def test_a_window_as_long_as_the_limit_is_full() -> None:
    settings = ShareSettings(
        {
            **SETTINGS.otherwise,
            DELIVERY_LIMIT: Setting(3, "dynamic"),
            RECORD_LOCKS: Setting(5, "broker_config"),
            ISOLATION: Setting("read_uncommitted", "default_assumed"),
        }
    )
    found = row(begins(), update(1, 10, *DONE_BEHIND), settings=settings)
    assert (found["status"], found["window_offsets"]) == ("window_full", 5)
    assert (found["max_record_locks"], found["max_record_locks_source"]) == (5, "broker_config")
    # The one available record was delivered twice: the third time is the last.
    assert (found["near_limit_count"], found["delivery_count_limit_source"]) == (1, "dynamic")
    roomy = row(
        begins(), update(1, 10, *DONE_BEHIND[:1], CutBatch(11, 13, 2, 1)), settings=settings
    )
    assert (roomy["status"], roomy["window_offsets"]) == ("behind", 4)


def test_what_retention_took_is_lost() -> None:
    found = row(begins(), update(1, 10, *DONE_BEHIND), ends={("orders", 0): (13, 100)})
    assert (found["status"], found["lost_offsets"]) == ("lost_records", 1)
    assert found["lag"] == 90


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"phase": "orphan"}, "orphan"),
        ({"phase": "deleting"}, "deleting"),
        ({"phase": "initializing"}, "initializing"),
        ({"complete": False, "missing": "something"}, "cannot_tell"),
        ({"complete": False, "missing": "something", "phase": "orphan"}, "cannot_tell"),
        ({"fault": "inverted_range"}, "refused"),
        ({"start_offset": None}, "not_started"),
    ],
)
def test_what_the_row_is_goes_before_how_far_it_is(changed: dict[str, Any], status: str) -> None:
    assert row(begins(), changed=changed)["status"] == status


def test_a_phase_that_lasts_is_stuck() -> None:
    since = {
        "group_id": "g", "topic_id": "topic", "partition": 0, "phase": "initializing",
        "phase_since": BEGIN,
    }  # fmt: skip
    told = {"phases": [since], "changed": {"phase": "initializing"}}
    late = BEGIN + timedelta(minutes=5)
    assert row(begins(), **told, as_of=late)["status"] == "stuck_initializing"
    early = late - timedelta(seconds=1)
    found = row(begins(), **told, as_of=early)
    assert (found["status"], found["phase_since"]) == ("initializing", BEGIN)


def test_where_the_clock_was_set_nothing_tells_how_long_a_start_offset_stands() -> None:
    records = begins(), update(1, 10, *DONE_BEHIND)
    # What a wrong clock wrote is 1, or what is beyond the next offset and written before.
    wrong = [LogClock(wrong=((first, first + 1),)) for first in (0, 1)]
    for minutes, clock in product((1, 60), (LogClock(((1, 1),)), *wrong)):
        at = {"as_of": time_of(minutes)}
        found = row(*records, clocks={0: clock}, **at)
        assert (found["status"], found["stalled_since"]) == ("cannot_tell", None)
        assert found["reason"] == WENT_BACK
        assert (found["start_moved_bound"], found["stalled_bound"]) == (None, None)
        # Steps elsewhere, and before what stands, take nothing.
        for clocks in ({}, {0: LogClock(((0, 0),))}, {1: LogClock(((5, 5),), ((0, 5),))}):
            whole = row(*records, clocks=clocks, **at)
            assert (whole["status"], whole["reason"]) == (
                "blocked" if minutes == 60 else "behind",
                None,
            )
    done = begins(), update(1, 10, CutBatch(10, 99, ARCHIVED, 1))
    assert row(*done, clocks={0: LogClock(((9, 9),))})["status"] == "caught_up"


def test_where_the_clock_of_a_group_was_set_nothing_tells_how_long_a_phase_is() -> None:
    since = {
        **dict(zip(("group_id", "topic_id", "partition"), KEY, strict=True)),
        "phase": "initializing",
        "phase_since": BEGIN,
        "coordinator_partition": 7,
        "record_offset": 3,
    }
    told = {"phases": [since], "changed": {"phase": "initializing"}}
    for minutes, clock in product((1, 60), (SET_BACK, LogClock(wrong=((3, 9),)))):
        found = row(begins(), **told, as_of=time_of(minutes), groups_clocks={7: clock})
        assert (found["status"], found["phase_since"]) == ("cannot_tell", None)
        assert found["reason"] == GROUPS_WENT_BACK
    # In another partition, or while another clock wrote.
    for clocks in ({8: SET_BACK}, {7: LogClock(((4, 4),), wrong=((4, 9),))}):
        elsewhere = row(begins(), **told, as_of=time_of(60), groups_clocks=clocks)
        assert elsewhere["status"] == "stuck_initializing"


def test_without_ends_what_is_in_flight_is_left_all_the_same() -> None:
    records = begins(), update(1, 10, *DONE_BEHIND)
    found = row(*records, ends={}, as_of=time_of(60))
    assert (found["status"], found["lag"], found["records_left"]) == ("blocked", None, None)
    assert found["reason"] == "where the log ends at that instant is not known"


def test_without_ends_and_with_nothing_in_flight_it_moves_or_it_does_not() -> None:
    records = begins(), update(1, 10, CutBatch(10, 14, ACKNOWLEDGED, 1))
    assert row(*records, ends={}, as_of=time_of(2))["status"] == "moving"
    assert row(*records, ends={}, as_of=time_of(60))["status"] == "idle"


def test_nothing_is_left_where_all_is_dealt_with() -> None:
    found = row(begins(), update(1, 10, CutBatch(10, 99, ARCHIVED, 1)), as_of=time_of(60))
    assert (found["status"], found["records_left"], found["stalled_since"]) == (
        "caught_up",
        0,
        None,
    )


def test_sums_have_the_worst_and_count_what_is_not_known() -> None:
    other = ShareRecord(1, 0, ("g", "topic", 1), Snapshot(0, 0, 0, -1, -1, 1, 1, ()))
    asked = question([begins(), other], ends=END, owned=[KEY])
    (found,) = sums_of(evaluate_share(asked).rows, "group", share_rules()).to_dicts()
    assert (found["partitions"], found["lag"], found["unknown_lag"]) == (2, 90, 1)
    assert (found["lag_bound"], found["status"]) == ("at_least", "behind")


@pytest.mark.parametrize(
    ("lags", "expected"),
    [
        pytest.param([3, -7], (3, "at_least", 1), id="one-beyond-the-end"),
        pytest.param([-3, -7], (None, None, 2), id="all-beyond-the-end"),
        pytest.param([3, 7], (10, "exact", 0), id="all-known"),
    ],
)
def test_a_sum_leaves_out_state_beyond_the_end_and_says_so(
    lags: list[int], expected: tuple[int | None, str | None, int]
) -> None:
    other = ShareRecord(1, 0, ("g", "topic", 1), Snapshot(0, 0, 0, -1, -1, 1, 1, ()))
    rows = evaluate_share(question([begins(), other], ends=END, owned=[KEY])).rows
    rows = rows.with_columns(pl.Series("lag", lags, pl.Int64))
    (found,) = sums_of(rows, "group", share_rules()).to_dicts()
    assert (found["lag"], found["lag_bound"], found["unknown_lag"]) == expected


def test_lag_is_not_known_before_there_is_a_start_offset_or_a_count() -> None:
    asked = question([begins()], ends=END)
    shares = asked.tables.shares
    for name in ("start_offset", "delivery_complete_count"):
        gone = shares.with_columns(pl.lit(None, shares.schema[name]).alias(name))
        assert with_share_lag(gone, asked.ends)["lag"].to_list() == [None]
    assert with_share_lag(shares, asked.ends)["lag"].to_list() == [90]


NO_STATE = {"record_offset": None, "start_offset": None, "coordinator_partition": None}


@pytest.mark.parametrize(
    ("coverage", "status", "missing"),
    [
        (StateCoverage(1), "no_state", None),
        (StateCoverage(1, {0: "it lacks records"}), "cannot_tell", "it lacks records"),
        (StateCoverage(2, {1: "it lacks records"}), "no_state", None),
        (StateCoverage(2, {0: "it lacks records"}), "cannot_tell", "it lacks records"),
        (StateCoverage(), "cannot_tell", "how many partitions"),
    ],
)
def test_no_state_is_said_only_where_its_partition_is_whole(
    coverage: StateCoverage, status: str, missing: str | None
) -> None:
    # Of two partitions the state belongs to the first.
    assert home_of_share(*KEY, 2) == 0
    found = row(begins(), changed=NO_STATE, coverage=coverage)
    assert (found["status"], found["complete"]) == (status, missing is None)
    assert (missing or "") in (found["missing"] or "")
    unknown = ("start_offset", "in_flight", "near_limit_count", "archived_count", "records_left")
    assert [found[name] for name in unknown] == [None] * len(unknown)


def home_of_share(group: str, topic_id: str, partition: int, partitions: int) -> int:
    key = share_key(pl.lit(group), pl.lit(topic_id), pl.lit(partition))
    return int(pl.select(internal_partition(key, partitions)).item())


def test_the_home_of_a_share_partition_is_where_brokers_put_it() -> None:
    """Of the bundled dump of 4.2.1: four partitions of share state."""
    assert home_of_share("night-batch", "G8q54MXNSIitpBUlHopa9w", 1, 4) == 0
    assert home_of_share("night-batch", "G8q54MXNSIitpBUlHopa9w", 2, 4) == 1
    assert home_of_share("qa-replay", "Kvw4OQRXSdaqlzHhZE9PhQ", 0, 4) == 2
    assert home_of_share("qa-replay", "RnCgOPE6T7CXMl-iIqHSSg", 1, 4) == 3


def reads_committed(level: str = "read_committed") -> ShareSettings:
    otherwise = {**SETTINGS.otherwise}
    return ShareSettings(otherwise, {"g": {ISOLATION: Setting(level, "dynamic")}})


def open_on(topic: str, partition: int) -> pl.DataFrame:
    each = {"topic": topic, "partition": partition, "transactional_id": "tx"}
    return pl.DataFrame([{**each, "transaction_since": BEGIN}], TRANSACTIONS)


def test_an_open_transaction_holds_back_who_reads_committed_records() -> None:
    late = {"as_of": time_of(60), "samples": [("orders", 0, time_of(3), 100)]}
    told = {"transactions": open_on("orders", 0), **late}
    found = row(begins(), settings=reads_committed(), **told)
    assert (found["status"], found["transactional_id"]) == ("held_back", "tx")
    assert (found["isolation_level_source"], found["transaction_since"]) == ("dynamic", BEGIN)
    # What is delivered behind the next offset was not held back by anything.
    other = row(begins(), update(1, 10, *DONE_BEHIND), settings=reads_committed(), **told)
    assert other["status"] == "blocked"
    for nobody in (
        row(begins(), settings=reads_committed("read_uncommitted"), **told),
        row(begins(), settings=reads_committed(), **late, transactions=open_on("orders", 1)),
    ):
        assert (nobody["status"], nobody["transactional_id"]) == ("stalled", None)


@pytest.mark.parametrize(("stable", "status"), [(0, "held_back"), (50, "stalled")])
@pytest.mark.parametrize("has_log", [True, False])
def test_a_transaction_holds_back_from_the_last_stable_offset_on(
    stable: int, status: str, has_log: bool
) -> None:
    late = {"as_of": time_of(60), "samples": [("orders", 0, time_of(3), 100)]}
    transactions = open_on("orders", 0) if has_log else None
    ends = {"transactions": transactions, "stable": {("orders", 0): stable}}
    found = row(begins(), settings=reads_committed(), **late, **ends)
    assert (found["status"], found["last_stable_offset"]) == (status, stable)
    assert "no transaction log" not in (found["reason"] or "")
    assert row(begins(), **late, **ends)["last_stable_offset"] is None


def test_without_a_transaction_log_what_holds_readers_back_cannot_be_told() -> None:
    found = row(begins(), settings=reads_committed())
    assert "the dump has no transaction log" in found["reason"]
    assert row(begins())["reason"] is None


def test_a_start_offset_beyond_the_end_is_a_status_and_no_lag_of_its_own() -> None:
    records = begins(300)
    found = row(records, ends={("orders", 0): (0, 240)}, as_of=time_of(60))
    assert (found["status"], found["lag"]) == ("beyond_end", -60)
    assert (found["offsets_beyond_end"], found["records_left"]) == (60, 0)
    assert found["reason"] is not None


def test_ranges_that_are_stored_beyond_the_end_would_skip_what_is_written_there() -> None:
    stored = begins(), update(1, 10, CutBatch(90, 119, ACKNOWLEDGED, 1))
    found = row(*stored, as_of=time_of(2))
    assert (found["status"], found["offsets_beyond_end"]) == ("beyond_end", 20)
    within = row(begins(), update(1, 10, CutBatch(90, 99, ACKNOWLEDGED, 1)), as_of=time_of(2))
    assert (within["status"], within["offsets_beyond_end"]) == ("behind", 0)


def test_where_the_log_ends_is_not_known_nothing_is_beyond_it() -> None:
    found = row(begins(300), ends={}, as_of=time_of(60))
    assert (found["status"], found["offsets_beyond_end"]) == ("idle", None)


def test_state_beyond_one_end_takes_nothing_from_the_lag_of_other_partitions() -> None:
    other = ShareRecord(0, 1, ("g", "topic", 1), Snapshot(0, 0, 0, 40, 0, 1, 1, ()))
    ends = {("orders", 0): (0, 240), ("orders", 1): (0, 100)}
    rows = evaluate_share(question([begins(300), other], ends=ends)).rows
    (total,) = sums_of(rows, "group", share_rules()).to_dicts()
    assert (total["lag"], total["offsets_beyond_end"]) == (60, 60)
    assert total["status"] == "beyond_end"
