"""What is said of share partitions is what a leader that wrote their records knows of itself."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

from analytics.questions.share.backlog import evaluate_share
from analytics.questions.share.window import STATE_NAMES
from tests.support.examples import examples
from tests.support.share_histories import random_history
from tests.support.share_leader import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    ShareLeader,
    Truth,
    random_leader,
)
from tests.unit.questions.share.backlog import question, time_of

seeds = st.integers(0, 2**32)
ENDS = {("orders", 0): (0, 500)}


def row_at(leader: ShareLeader, end: int) -> dict[str, Any] | None:
    """The row of a leader's share partition after so many of its records."""
    rows = evaluate_share(question(leader.records[:end], ends=ENDS)).rows.to_dicts()
    assert len(rows) <= 1
    return rows[0] if rows else None


def some_instants(leader: ShareLeader, random: Random) -> list[int]:
    ends = range(1, len(leader.records) + 1)
    return sorted(random.sample(ends, min(6, len(ends))))


def of_row(row: dict[str, Any]) -> dict[str, Any]:
    names = (
        *("start_offset", "next_offset", "in_flight", "available_count", "acknowledged_count"),
        *("archived_count", "blocking_first_offset", "blocking_last_offset", "blocking_state"),
        *("blocking_delivery_count", "start_moved_at", "last_stored_offset"),
    )
    return {name: row[name] for name in names}


def of_truth(truth: Truth) -> dict[str, Any]:
    blocking, has_start = truth.blocking, truth.start >= 0
    return {
        "start_offset": truth.start if has_start else None,
        "next_offset": truth.next if has_start else None,
        "in_flight": truth.left if has_start else 0,
        "available_count": truth.offsets_in(AVAILABLE),
        "acknowledged_count": truth.offsets_in(ACKNOWLEDGED),
        "archived_count": truth.offsets_in(ARCHIVED),
        "blocking_first_offset": blocking and blocking.first,
        "blocking_last_offset": blocking and blocking.last,
        "blocking_state": blocking and STATE_NAMES[blocking.state],
        "blocking_delivery_count": blocking and blocking.count,
        "start_moved_at": time_of(truth.moved) if has_start else None,
        "last_stored_offset": truth.window_last if truth.stored else None,
    }


@examples(6, 30, seed=seeds)
def test_a_leader_is_described_as_it_knows_itself(seed: int) -> None:
    random = Random(seed)
    leader = random_leader(random, random.randrange(1, 120))
    for end in some_instants(leader, random):
        row, truth = row_at(leader, end), leader.truths[end - 1]
        if not truth.is_there:
            assert row is None
        else:
            assert row is not None
            assert of_row(row) == of_truth(truth)


@examples(6, 30, seed=seeds)
def test_what_was_archived_is_told_with_the_record_that_did_it(seed: int) -> None:
    random = Random(seed)
    leader = random_leader(random, random.randrange(1, 120))
    for end in some_instants(leader, random):
        truth = leader.truths[end - 1]
        found = evaluate_share(question(leader.records[:end], ends=ENDS)).archived.to_dicts()
        told = {
            offset: (row["record_offset"], row["delivery_count"])
            for row in found
            for offset in range(row["first_offset"], row["last_offset"] + 1)
        }
        assert told == truth.archived
        assert all(row["archived_bound"] == "exact" for row in found)
        assert all(row["archived_at"] == time_of(row["record_offset"]) for row in found)
        assert all(row["is_passed"] == (row["last_offset"] < truth.next) for row in found)


@examples(6, 30, seed=seeds)
def test_a_leader_that_goes_by_the_rules_has_no_faults(seed: int) -> None:
    leader = random_leader(Random(seed), 120)
    assert evaluate_share(question(leader.records, ends=ENDS)).faults.height == 0


@examples(6, 30, seed=seeds)
def test_lag_is_what_is_left_to_deliver(seed: int) -> None:
    """Kafka's number and what the stored ranges leave are the same, as they count the same."""
    random = Random(seed)
    leader = random_leader(random, random.randrange(1, 120))
    row = row_at(leader, len(leader.records))
    if row is not None and row["start_offset"] is not None:
        assert row["lag"] == row["records_left"]
        assert row["records_left"] == row["in_flight"] + 500 - 1 - max(
            leader.truths[-1].window_last, row["start_offset"] - 1
        )


@examples(6, 30, seed=seeds)
def test_states_partition_the_window(seed: int) -> None:
    random = Random(seed)
    leader = random_leader(random, random.randrange(1, 120))
    row = row_at(leader, len(leader.records))
    if row is not None and row["start_offset"] is not None:
        window = leader.truths[-1].window_last - row["start_offset"] + 1
        final = row["acknowledged_count"] + row["archived_count"]
        held = row["available_count"] + row["archiving_count"] + row["not_stored_count"]
        assert held == row["in_flight"]
        assert held + final == window
        span = max(leader.truths[-1].window_last - row["next_offset"] + 1, 0)
        assert row["window_offsets"] == span


@examples(6, 30, seed=seeds)
def test_whatever_records_say_the_window_comes_out_even(seed: int) -> None:
    """Also where records contradict each other, as no leader writes them."""
    random = Random(seed)
    records = [each for partition in range(3) for each in random_history(random, partition)]
    for row in evaluate_share(question(records)).rows.to_dicts():
        held = row["available_count"] + row["archiving_count"] + row["not_stored_count"]
        assert held == row["in_flight"]
        assert min(held, row["not_stored_count"], row["window_offsets"]) >= 0
        if row["start_offset"] is not None:
            assert row["next_offset"] >= row["start_offset"]
            assert row["blocking_first_offset"] in (None, row["next_offset"])
