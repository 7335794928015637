"""When share partitions stood still: a leader's own knowledge, and cases worked by hand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random
from typing import Any

import polars as pl
from hypothesis import strategies as st

from analytics.dump.batches.stretches import clock_steps
from analytics.questions.share.backlog import evaluate_share
from analytics.questions.share.share_log import share_log
from analytics.questions.share.stall_history import stall_history
from analytics.questions.share.status import WENT_BACK
from analytics.questions.share.window import STATE_NAMES
from analytics.replay.log.log_times import LogClock
from tests.support.broker_state import CutBatch
from tests.support.examples import examples
from tests.support.reference_share_coordinator import ShareRecord, Snapshot, Update
from tests.support.share_leader import ACKNOWLEDGED, AVAILABLE, FINAL, Truth, random_leader
from tests.unit.questions.share.backlog import decoded, log_of, question, time_of

KEY = ("g", "topic", 0)
NAMES = (
    *("next_offset", "since", "since_bound", "until", "ended_by", "kind"),
    *("blocking_state", "blocking_delivery_count", "done_behind"),
)


def stalls_of(
    records: list[ShareRecord], least_minutes: int = 0, as_of: int | None = None, **more: Any
) -> list[dict[str, Any]]:
    end = max(each.offset for each in records) if as_of is None else as_of
    as_of_ms = round(time_of(end).timestamp() * 1000)
    gaps: dict[int, str] = more.get("gaps", {})
    found = stall_history(log_of(records), least_minutes * 60_000, as_of_ms, gaps).to_dicts()
    return sorted((dict(each) for each in found), key=lambda each: each["since"])


def of_truths(truths: list[Truth]) -> list[dict[str, Any]]:
    """The same by walking from truth to truth."""
    found = []
    lives = [(each.is_there and each.start >= 0, each.moved) for each in truths]
    begin = 0
    while begin < len(truths):
        end = begin
        while end < len(truths) and lives[end] == lives[begin]:
            end += 1
        shown = [at for at in range(begin, end) if truths[at].blocking is not None]
        if lives[begin][0] and shown:
            bound = "exact" if shown[0] == begin else "at_latest"
            found.append({**_of_truth(truths, shown[0], end), "since_bound": bound})
        begin = end
    return found


def _of_truth(truths: list[Truth], since: int, end: int) -> dict[str, Any]:
    last = truths[end - 1]
    blocking = last.blocking
    assert blocking is not None
    is_open = end == len(truths)
    is_reset = not is_open and (not truths[end].is_there or truths[end].next < last.next)
    behind = sum(at > last.next and what[0] in FINAL for at, what in last.stored.items())
    return {
        "next_offset": last.next,
        "since": time_of(since),
        "until": None if is_open else time_of(end),
        "ended_by": None if is_open else "reset" if is_reset else "moved",
        "kind": "blocked" if behind else "stalled",
        "blocking_state": STATE_NAMES[blocking.state],
        "blocking_delivery_count": blocking.count,
        "done_behind": behind,
    }


@examples(12, 60, seed=st.integers(0, 2**32))
def test_a_leader_stood_still_when_it_says_so(seed: int) -> None:
    random = Random(seed)
    leader = random_leader(random, random.randrange(1, 150))
    if not leader.records:
        return
    told = [{name: each[name] for name in NAMES} for each in stalls_of(leader.records)]
    truth = of_truths(leader.truths)
    for ours, theirs in zip(told, truth, strict=True):
        # A start offset that an operator set further on is no other run for a reader of records.
        if theirs["ended_by"] is not None and ours["ended_by"] != theirs["ended_by"]:
            assert theirs["ended_by"] == "moved"
            theirs["ended_by"] = ours["ended_by"]
        assert ours == theirs


@examples(6, 30, seed=st.integers(0, 2**32))
def test_what_still_stands_is_what_the_backlog_says(seed: int) -> None:
    random = Random(seed)
    leader = random_leader(random, random.randrange(1, 120))
    if not leader.records or not leader.truths[-1].is_there:
        return
    (row,) = evaluate_share(question(leader.records)).rows.to_dicts()
    still = [each for each in stalls_of(leader.records) if each["until"] is None]
    since: datetime | None = still[0]["since"] if still else None
    assert row["stalled_since"] == since


def record(offset: int, start: int, *ranges: tuple[int, int, int], partition: int = 0) -> Any:
    """An update: first and last offset, delivery state; all after one delivery."""
    batches = tuple(CutBatch(first, last, state, 1) for first, last, state in ranges)
    return ShareRecord(partition, offset, KEY, Update(0, 0, start, -1, batches))


def begun(offset: int, start: int, snapshot_epoch: int = 0) -> ShareRecord:
    value = Snapshot(snapshot_epoch, 0, 0, start, -1, 1, 1, ())
    return ShareRecord(0, offset, KEY, value)


def test_one_record_kept_the_start_offset_for_half_an_hour() -> None:
    records = [
        begun(0, 0),
        record(10, 0, (1, 4, ACKNOWLEDGED)),  # 0 was handed out, and not given back
        record(20, 0, (5, 9, ACKNOWLEDGED)),
        record(40, 0, (0, 0, ACKNOWLEDGED)),
    ]
    (stall,) = stalls_of(records, least_minutes=5)

    assert (stall["since"], stall["until"]) == (time_of(10), time_of(40))
    assert stall["duration_ms"] == 30 * 60_000
    assert (stall["kind"], stall["next_offset"], stall["done_behind"]) == ("blocked", 0, 9)
    assert (stall["blocking_state"], stall["ended_by"]) == ("NOT_STORED", "moved")
    assert (stall["coordinator_partition"], stall["record_offset"]) == (0, 40)
    assert stalls_of(records, least_minutes=31) == []


def test_what_goes_on_lasts_until_the_instant() -> None:
    records = [begun(0, 0), record(1, 0, (0, 3, AVAILABLE))]
    (stall,) = stalls_of(records, least_minutes=5, as_of=60)
    assert (stall["until"], stall["ended_by"], stall["record_offset"]) == (None, None, None)
    assert (stall["duration_ms"], stall["kind"]) == (59 * 60_000, "stalled")


def test_where_the_log_begins_later_only_a_bound_is_told() -> None:
    records = [
        begun(5, 3, snapshot_epoch=7),
        record(6, 3, (3, 3, AVAILABLE)),
        record(30, 9, (9, 9, ACKNOWLEDGED)),
    ]
    (stall,) = stalls_of(records, least_minutes=5)
    assert (stall["since"], stall["since_bound"]) == (time_of(6), "at_latest")
    assert stall["ended_by"] == "moved"


def test_what_may_be_among_lost_records_is_said() -> None:
    records = [begun(0, 0), record(1, 0, (0, 3, AVAILABLE)), record(30, 4)]
    (stall,) = stalls_of(records, least_minutes=5, gaps={0: "records are missing"})
    assert (stall["complete"], stall["missing"]) == (False, "records are missing")
    (stall,) = stalls_of(records, least_minutes=5, gaps={1: "records are missing"})
    assert (stall["complete"], stall["missing"]) == (True, None)


def test_without_records_there_is_none() -> None:
    assert stall_history(log_of([]), 0, 0, {}).height == 0


def test_a_delivery_state_that_kafka_does_not_know_is_named_so() -> None:
    records = [begun(0, 100), record(1, -1, (100, 104, 126)), record(60, -1, (100, 104, 126))]

    (stall,) = stalls_of(records)
    (row,) = evaluate_share(question(records)).rows.to_dicts()

    assert (stall["next_offset"], stall["blocking_state"]) == (100, "UNKNOWN")
    assert row["blocking_state"] == "UNKNOWN"


STEP = timedelta(minutes=7)


def stepped(rows: pl.DataFrame, begin: int, end: int) -> pl.DataFrame:
    """Records of some offsets, written while a clock was behind."""
    is_behind = (pl.col("offset") >= begin) & (pl.col("offset") < end)
    time = pl.col("timestamp")
    return rows.with_columns(pl.when(is_behind).then(time - STEP).otherwise(time))


def clocks_of(tables: Iterable[pl.DataFrame]) -> dict[int, LogClock]:
    """Return the clocks of partitions, as headers show them where each record is a batch."""
    rows = pl.concat(each.select("partition", "offset", "timestamp") for each in tables)
    found = {}
    for number in rows["partition"].unique():
        of_log = rows.filter(pl.col("partition") == number).sort("offset")
        ms = of_log["timestamp"].dt.epoch("ms").to_numpy()
        steps = clock_steps(of_log["offset"].to_numpy(), ms)
        clock = LogClock(tuple((first, last) for first, last, _ in steps)).until(None)
        if clock is not None:
            found[number] = clock
    return found


@examples(12, 60, seed=st.integers(0, 2**32))
def test_where_a_clock_went_back_nothing_is_measured_and_no_stall_is_hidden(seed: int) -> None:
    random = Random(seed)
    leader = random_leader(random, random.randrange(3, 150))
    if not leader.records:
        return
    last = max(each.offset for each in leader.records)
    begin, end = sorted(random.choices(range(last + 2), k=2))
    as_of_ms = round(time_of(last).timestamp() * 1000)
    least_ms = random.randrange(0, 20) * 60_000
    tables = [stepped(each, begin, end) for each in decoded(leader.records)]
    steps = clocks_of(tables)

    found = stall_history(share_log(*tables), least_ms, as_of_ms, {}, steps).to_dicts()

    whole = stall_history(log_of(leader.records), least_ms, as_of_ms, {}).to_dicts()
    names = ("partition", "next_offset", "record_offset")
    told = {tuple(row[name] for name in names) for row in found}
    for row in found:
        assert row["complete"] == (row["coordinator_partition"] not in steps)
        assert row["complete"] or (row["duration_ms"], row["missing"]) == (None, WENT_BACK)
    # What was put right before the first record, no record shows.
    stood = [row for row in whole if row["coordinator_partition"] in steps]
    assert {tuple(row[name] for name in names) for row in stood} <= told


def test_a_clock_goes_back_between_two_records_of_one_partition() -> None:
    records = [begun(0, 0), *(record(at, 0, (at, at, AVAILABLE)) for at in range(1, 30))]
    tables = [stepped(each, 10, 20) for each in decoded(records)]

    (clock,) = clocks_of(tables).values()

    assert clock.steps == ((10, 10),)
    assert clocks_of(decoded(records)) == {}


def test_what_stood_across_a_step_of_the_clock_may_have_stood_for_long() -> None:
    records = [begun(0, 0), record(1, 0, (0, 3, AVAILABLE)), record(4, 4)]
    as_of_ms = round(time_of(4).timestamp() * 1000)
    steps = {0: LogClock(((3, 3),))}

    (stall,) = stall_history(log_of(records), 60 * 60_000, as_of_ms, {}, steps).to_dicts()

    assert (stall["duration_ms"], stall["missing"]) == (None, WENT_BACK)
    # A step before it, or in another partition.
    for other in ({0: LogClock(((1, 1),))}, {1: LogClock(((3, 3),))}):
        assert stall_history(log_of(records), 60 * 60_000, as_of_ms, {}, other).height == 0


def test_what_stood_from_one_clock_to_another_may_have_stood_for_long() -> None:
    records = [begun(0, 0), record(1, 0, (0, 3, AVAILABLE)), record(4, 4)]
    as_of_ms = round(time_of(4).timestamp() * 1000)

    def stalls(*wrong: tuple[int, int], minutes: int) -> list[dict[str, Any]]:
        clocks, least_ms = {0: LogClock(wrong=wrong)}, minutes * 60_000
        found = stall_history(log_of(records), least_ms, as_of_ms, {}, clocks).to_dicts()
        return [dict(each) for each in found]

    for wrong in ((0, 2), (4, 9)):
        for minutes in (1, 60):
            (stall,) = stalls(wrong, minutes=minutes)
            assert (stall["duration_ms"], stall["missing"]) == (None, WENT_BACK)
    # One that was wrong all the time may have been set meanwhile; one elsewhere took nothing.
    (stall,) = stalls((0, 9), minutes=1)
    assert (stall["duration_ms"], stall["missing"]) == (None, WENT_BACK)
    assert stalls((0, 9), minutes=60) == []
    for wrong in ((0, 1), (2, 4), (5, 9)):
        (stall,) = stalls(wrong, minutes=1)
        assert (stall["duration_ms"], stall["missing"]) == (3 * 60_000, None)
