"""KIP-211, "Transitioning to Empty State": all offsets gone, then Dead, and a tombstone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from analytics.questions.expiration.group_endings import (
    Cleanups,
    EndingTables,
    endings,
    group_tombstones,
)
from schemas import table
from schemas.expiration_rules import audit_rules, group_endings

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "boolean": pa.bool_()}
GROUP = {
    "group_id": "g", "group_type": "classic", "state": "Empty", "member_count": 0,
    "state_timestamp": NOON - MINUTE, "record_offset": 5, "complete": True,
}  # fmt: skip
REMOVAL = {
    "group_id": "g", "topic": "t", "partition": 0, "cause": "expiration", "verdict": "on_time",
    "removed_at": NOON, "coordinator_partition": 3, "record_offset": 20,
}  # fmt: skip
TOMBSTONE = {"group_id": "g", "coordinator_partition": 3, "offset": 21, "timestamp": NOON}


def of(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    time = pa.timestamp("us", "UTC")
    fields = [(each.name, TYPES.get(each.type, time)) for each in table(name).columns]
    return pa.Table.from_pylist(rows, pa.schema(fields))


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
    names = group_tombstones([]).schema
    tables = EndingTables(
        of("offset_removals", list(removals)),
        pa.table({"group_id": pa.array(committed, pa.string())}),
        pa.table({"group_id": pa.array(pending, pa.string())}),
        of("groups", [group] if group else []),
        pa.Table.from_pylist(list(tombstones), names),
    )
    now = round((NOON + after).timestamp() * 1000)
    found: list[dict[str, Any]] = endings(
        tables, Cleanups(600_000, is_assumed, audit_rules(), now)
    ).to_pylist()
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
        ("gone", {"tombstones": ({**TOMBSTONE, "offset": 19},)}),
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
