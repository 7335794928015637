"""KIP-211, "Transitioning to Empty State": all offsets gone, then Dead, and a tombstone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.contracts import table_of_frame
from analytics.questions.expiration.group_endings import (
    TOMBSTONES,
    Cleanups,
    GroupsAtEnd,
    endings,
    group_tombstones,
)
from schemas.expiration_rules import audit_rules, group_endings
from tests.support.expiration_logs import frame_of, state_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
GROUP = {
    "group_id": "g", "group_type": "classic", "state": "Empty", "member_count": 0,
    "state_timestamp": NOON - MINUTE, "record_offset": 5, "complete": True,
}  # fmt: skip
REMOVAL = {
    "group_id": "g", "topic": "t", "partition": 0, "cause": "expiration", "verdict": "on_time",
    "removed_at": NOON, "coordinator_partition": 3, "record_offset": 20,
}  # fmt: skip
TOMBSTONE = {
    "group_id": "g", "coordinator_partition": 3, "tombstone_offset": 21, "tombstone_at": NOON,
}  # fmt: skip


def names(*groups: str) -> pl.DataFrame:
    return pl.DataFrame({"group_id": groups}, schema={"group_id": pl.String})


def judged(
    *,
    removals: tuple[dict[str, Any], ...] = (REMOVAL,),
    committed: tuple[str, ...] = (),
    pending: tuple[str, ...] = (),
    group: dict[str, Any] | None = None,
    tombstones: tuple[dict[str, Any], ...] = (),
    after: timedelta = timedelta(hours=1),
    is_assumed: bool = False,
) -> list[dict[str, Any]]:
    at_end = GroupsAtEnd(
        names(*committed),
        names(*pending),
        state_of("groups", [group] if group else []),
        pl.DataFrame(list(tombstones), TOMBSTONES),
    )
    now = round((NOON + after).timestamp() * 1000)
    rows = endings(
        state_of("offset_removals", removals),
        at_end,
        Cleanups(600_000, is_assumed, audit_rules(), now),
    )
    found: list[dict[str, Any]] = table_of_frame("group_endings", rows).to_pylist()
    assert {row["verdict"] for row in found} <= group_endings().keys()
    return found


@pytest.mark.parametrize(
    ("verdict", "more"),
    [
        ("dead", {"tombstones": (TOMBSTONE,)}),
        ("gone", {}),
        ("kept_by_members", {"group": {**GROUP, "member_count": 2}}),
        ("kept_by_transaction", {"group": GROUP, "pending": ("g",)}),
        ("still_there", {"group": GROUP}),
        ("under_way", {"group": GROUP, "after": timedelta(minutes=9)}),
        # Its members left only lately: the cleanup that takes it is still to come.
        ("under_way", {"group": {**GROUP, "state_timestamp": NOON + 55 * MINUTE}}),
        ("cannot_tell", {"group": GROUP, "is_assumed": True}),
        ("cannot_tell", {"group": {**GROUP, "complete": False, "missing": "a segment"}}),
        ("cannot_tell", {"group": {**GROUP, "group_type": "consumer", "state_timestamp": None}}),
        # A tombstone from before, or of another partition, is not this ending's.
        ("gone", {"tombstones": ({**TOMBSTONE, "tombstone_offset": 19},)}),
        ("gone", {"tombstones": ({**TOMBSTONE, "coordinator_partition": 4},)}),
    ],
)
def test_what_became_of_a_group(verdict: str, more: dict[str, Any]) -> None:
    (row,) = judged(**more)
    assert row["verdict"] == verdict
    assert (row["reason"] is not None) == (verdict in {"gone", "cannot_tell"})
    assert (row["offsets"], row["record_offset"]) == (1, 20)


def test_only_groups_whose_last_offset_expired_are_asked_about() -> None:
    assert judged(committed=("g",)) == []
    deleted = {**REMOVAL, "cause": "group_deleted", "record_offset": 30}
    assert judged(removals=(REMOVAL, deleted)) == []
    assert judged(removals=(deleted,)) == []
    other = {**REMOVAL, "partition": 1, "record_offset": 22}
    (row,) = judged(removals=(REMOVAL, other))
    assert (row["offsets"], row["record_offset"]) == (2, 22)


def test_a_group_that_a_tool_named_is_told_apart() -> None:
    named = {**REMOVAL, "group_id": "console-consumer-12345"}
    (row,) = judged(removals=(named,))
    assert row["named_by"] == "kafka-console-consumer"


def test_offsets_that_went_for_a_cause_that_is_not_known_may_have_expired_as_well() -> None:
    unknown = {**REMOVAL, "cause": "unknown", "record_offset": 10}
    (row,) = judged(removals=(unknown, REMOVAL), tombstones=(TOMBSTONE,))
    assert (row["verdict"], row["offsets"]) == ("dead", 1)
    assert row["reason"] == "whether 1 more of its offsets expired cannot be told"


def test_tombstones_are_those_of_groups_among_their_records() -> None:
    gone = {"partition": 3, "offset": 7, "timestamp": NOON, "is_tombstone": True}
    classic = [
        {**gone, "key": {"group": "old"}},
        {**gone, "key": {"group": "there"}, "is_tombstone": False},
    ]
    decoded = {
        "group_metadata": frame_of("group_metadata", classic),
        "consumer_group_metadata": frame_of(
            "consumer_group_metadata", [{**gone, "key": {"group_id": "new"}, "timestamp": None}]
        ),
        "streams_group_metadata": frame_of("streams_group_metadata", []),
    }
    assert group_tombstones(decoded).rows() == [("old", 3, 7, NOON), ("new", 3, 7, None)]
