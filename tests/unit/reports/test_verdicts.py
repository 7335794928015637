"""The verdict on each offset of a group: what took it away or back, or how it stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reports.timeline.verdicts import EXPLAINED, Known, by_topic, verdicts

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def committed(partition: int = 0, offset: int = 100, topic: str = "orders") -> dict[str, Any]:
    return {
        "group_id": "billing",
        "topic": topic,
        "partition": partition,
        "committed_offset": offset,
        "topic_id": None,
        "commit_timestamp": NOON,
        "coordinator_partition": 17,
        "record_offset": 4711,
    }


def setback(cause: str, partition: int = 0, minutes: int = 0, **other: Any) -> dict[str, Any]:
    return {
        "group_id": "billing",
        "topic": "orders",
        "partition": partition,
        "cause": cause,
        "confidence": "high",
        "effective_timestamp": NOON + timedelta(minutes=minutes),
        "effective_offset": 4800 + minutes,
        "record_offset": 4700,
        "coordinator_partition": 17,
        "previous_offset": 500,
        "committed_offset": None,
        "advance": None,
    } | other


def lost(offset: int, minutes: int = 0) -> dict[str, Any]:
    return {
        "group_id": "billing",
        "topic": "orders",
        "partition": 0,
        "committed_offset": offset,
        "at": NOON + timedelta(minutes=minutes),
        "copy": "broker-1",
        "coordinator_partition": 17,
        "record_offset": 4900,
    }


def only(known: Known) -> dict[str, Any]:
    (row,) = verdicts(known)
    return row


@pytest.mark.parametrize(("cause", "verdict"), EXPLAINED.items())
def test_what_took_an_offset_away_is_named_with_its_record(cause: str, verdict: str) -> None:
    row = only(Known(setbacks=[setback(cause)]))
    assert row["verdict"] == verdict
    assert row["record"] == "__consumer_offsets-17@4800"
    assert (row["was"], row["now"]) == (500, None)


def test_of_several_setbacks_the_last_one_counts() -> None:
    row = only(Known(setbacks=[setback("expiration"), setback("group_deleted", minutes=5)]))
    assert (row["verdict"], row["at"]) == ("group deleted", NOON + timedelta(minutes=5))


def test_an_offset_that_came_back_is_told_beside_what_took_it_away() -> None:
    row = only(Known(setbacks=[setback("expiration")], committed=[committed(offset=7)]))
    assert (row["verdict"], row["was"], row["now"]) == ("expired", 500, 7)


def test_an_offset_that_never_went_back_is_in_force() -> None:
    assert only(Known(committed=[committed()]))["verdict"] == "in force, never went back"


def test_an_offset_below_the_log_start_names_records_that_are_deleted() -> None:
    known = Known(committed=[committed(offset=99)], log_starts={("orders", 0): 100})
    assert only(known)["verdict"] == "below the log start"
    at_the_start = Known(committed=[committed(offset=100)], log_starts={("orders", 0): 100})
    assert only(at_the_start)["verdict"] == "in force, never went back"


def test_an_offset_that_only_a_transaction_holds_is_pending() -> None:
    assert only(Known(pending=[committed()]))["verdict"] == "pending in a transaction"


def test_a_partition_of_a_member_without_any_commit_was_never_committed() -> None:
    known = Known(given=[("billing", "orders", 3)])
    assert only(known)["verdict"] == "never committed"


def test_it_cannot_be_told_where_compaction_may_have_taken_the_commit() -> None:
    known = Known(given=[("billing", "orders", 3)], untold={"billing": "compacted below 40"})
    row = only(known)
    assert (row["verdict"], row["reason"]) == ("cannot tell", "compacted below 40")


def test_a_partition_with_a_history_outside_the_time_asked_about_gets_no_verdict() -> None:
    place = ("billing", "orders", 3)
    assert verdicts(Known(given=[place], seen=frozenset([place]))) == []


def test_partitions_of_a_topic_that_share_a_verdict_are_one_row_for_people() -> None:
    back = {"advance": -10, "committed_offset": 490}
    rows = verdicts(
        Known(
            setbacks=[setback("rewound_by_member", p, minutes=p, **back) for p in (0, 1, 2)],
            committed=[committed(5)],
        )
    )
    rewound, in_force = sorted(by_topic(rows), key=lambda row: row["verdict"], reverse=True)
    assert (rewound["partitions"], rewound["advance"]) == ("0-2", -30)
    assert rewound["at"] == NOON + timedelta(minutes=2)
    assert (in_force["partitions"], in_force["at"]) == ("5", None)


def test_an_offset_that_only_a_lost_line_has_went_back_though_no_record_says_so() -> None:
    row = only(Known(committed=[committed(offset=100)], lost=[lost(140)]))
    assert (row["verdict"], row["at"]) == ("lost by an election", NOON)
    assert (row["was"], row["now"], row["advance"]) == (140, 100, -40)
    assert row["reason"] == "only copy broker-1 has what was committed: --prefer-copy broker-1"


def test_a_partition_that_was_committed_on_a_lost_line_alone_is_not_one_that_never_was() -> None:
    row = only(Known(given=[("billing", "orders", 0)], lost=[lost(140)]))
    assert (row["verdict"], row["was"], row["now"]) == ("lost by an election", 140, None)


def test_what_a_group_has_committed_again_since_is_not_lost() -> None:
    known = Known(committed=[committed(offset=140)], lost=[lost(140)])
    assert only(known)["verdict"] == "in force, never went back"


def test_what_came_after_the_election_is_the_verdict() -> None:
    before, after = setback("expiration", minutes=-1), setback("expiration", minutes=1)
    assert only(Known(setbacks=[before], lost=[lost(140)]))["verdict"] == "lost by an election"
    assert only(Known(setbacks=[after], lost=[lost(140)]))["verdict"] == "expired"
