"""What is said of an offset that went back, and of transactions of offsets."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.contracts import contract_schema
from analytics.replay.history.dependency_events import events_of_offsets, transaction_events
from analytics.replay.offsets.commit_rows import marker_rows
from tests.support.commit_frames import decoded_rows, ended_rows
from tests.support.reference_offset_history import Log

WHAT = ("record_offset", "event", "subject", "detail")


@pytest.mark.parametrize(
    ("origin", "members", "owner", "said"),
    [
        ("member", 1, "truck-0", "by its only member truck-0"),
        ("member", 1, None, "by its only member"),
        ("member", 2, "truck-0", "by any of its 2 members, truck-0 owned it"),
        ("member", 2, None, "by any of its 2 members"),
        ("member", None, "truck-0", "by any of its members, truck-0 owned it"),
        ("unknown", 2, "truck-0", "by whom is not known, truck-0 owned it"),
        ("unknown", None, None, "by whom is not known"),
        ("admin_or_simple", 0, None, None),
    ],
)
def test_of_a_step_back_it_is_said_who_can_have_committed(
    origin: str, members: int | None, owner: str | None, said: str | None
) -> None:
    """In a group of 3.9.2 a member committed for partitions of another: no record tells it."""
    back = {"group_id": "fleet", "topic": "sensors", "partition": 0, "event": "commit"}
    back |= {"previous_offset": 50, "committed_offset": 46, "advance": -4, "effective_offset": 7}
    back |= {"cause": "rewound_by_member", "confidence": "high", "coordinator_partition": 3}
    back |= {"origin": origin, "group_members": members, "member_id": owner}
    told = events_of_offsets(pl.DataFrame([back], contract_schema("offset_history")))
    parts = ["from 50 to 46", "rewound by member (high confidence)", *([said] if said else [])]
    assert told.select(WHAT).rows() == [(7, "offset_rewound", "sensors-0", "; ".join(parts))]


def test_what_is_no_step_back_is_no_event() -> None:
    row = {"group_id": "fleet", "topic": "sensors", "partition": 0, "effective_offset": 9}
    rows = [row | {"event": "transaction_abort", "advance": -4}, row | {"event": "commit"}]
    rows[1] |= {"advance": 4}
    told = events_of_offsets(pl.DataFrame(rows, contract_schema("offset_history")))
    assert told.is_empty()


def test_of_a_removal_it_is_said_what_was_there() -> None:
    gone = {"group_id": "g", "topic": "t", "partition": 0, "event": "delete"}
    rows = [
        gone | {"effective_offset": 1, "cause": "expiration", "previous_offset": 5},
        gone | {"effective_offset": 2, "cause": "group_deleted"},
    ]
    rows = [row | {"confidence": "high"} for row in rows]
    told = events_of_offsets(pl.DataFrame(rows, contract_schema("offset_history")))
    assert told.select(WHAT).rows() == [
        (1, "expired", "t-0", "was 5; expiration (high confidence)"),
        (2, "offsets_deleted", "t-0", "group deleted (high confidence)"),
    ]


def test_a_transaction_is_opened_by_its_first_commit_and_ended_by_its_marker() -> None:
    log = Log(0, clears_pending=True)
    for partition, producer in ((0, 7), (1, 7), (0, 7), (0, 8), (1, 9)):
        log.commit(partition, 5, producer)
    log.marker(7, commits=True)
    log.marker(8, commits=False)
    markers = marker_rows(decoded_rows("control_markers", log.rows["control_markers"]))
    told = transaction_events(ended_rows(log.rows, "4.3"), markers).sort("record_offset")
    assert told.select(WHAT).rows() == [
        (0, "transaction_opened", "producer 7", "2 offsets"),
        (3, "transaction_opened", "producer 8", "1 offset"),
        (4, "transaction_opened", "producer 9", "1 offset"),
        (5, "transaction_committed", "producer 7", "2 offsets"),
        (6, "transaction_aborted", "producer 8", "1 offset"),
    ]
