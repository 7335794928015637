"""What an election takes of a share group's state: start offsets, and what was dealt with."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from analytics.decode.tables import table_schema
from analytics.questions.timeline.share_losses import (
    LostShareState,
    share_state_losses,
    state_records,
)
from tests.support.offset_changes import minute

TOPIC_ID = "M9BDTMoTQz6coFqm6mxtGw"
TOPICS = {TOPIC_ID: "jobs"}


def batch(first: int, last: int, delivery_state: int = 2) -> dict[str, Any]:
    ends = {"first_offset": first, "last_offset": last}
    return {**ends, "delivery_state": delivery_state, "delivery_count": 1}


def record(
    offset: int, start: int | None, *batches: dict[str, Any], group: str = "workers"
) -> dict[str, Any]:
    """Return a record of the state; without a start offset it is a tombstone."""
    value = None
    if start is not None:
        value = {"snapshot_epoch": 0, "state_epoch": 1, "leader_epoch": 1, "start_offset": start}
        value["state_batches"] = list(batches)
    key = {"group_id": group, "topic_id": TOPIC_ID, "partition": 3}
    place = {"topic": "__share_group_state", "partition": 2, "offset": offset}
    return {**place, "is_tombstone": value is None, "key": key, "value": value}


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, table_schema(name))


def told(
    shared: list[dict[str, Any]],
    *,
    updates: list[dict[str, Any]] = [],  # noqa: B006 - never changed
    snapshots: list[dict[str, Any]] = [],  # noqa: B006 - never changed
    **known: Any,
) -> list[dict[str, Any]]:
    line = LostShareState(
        "broker-1",
        2,
        shared=state_records(table("share_snapshot", shared), None),
        lost=state_records(table("share_snapshot", snapshots), table("share_update", updates)),
        elected_at=minute(9),
        **known,
    )
    return share_state_losses([line], TOPICS)


def test_a_start_offset_that_only_the_lost_line_had_is_lost() -> None:
    (row,) = told([record(0, 3)], updates=[record(5, 7), record(6, 9)])
    assert (row["group_id"], row["topic"], row["partition"]) == ("workers", "jobs", 3)
    assert (row["verdict"], row["at"]) == ("lost_by_election", minute(9))
    assert (row["was"], row["became"], row["cost"]) == (9, 3, 6)
    assert (row["confidence"], row["record"]) == ("high", "__share_group_state-2@6")


def test_before_anything_was_stored_there_was_no_start_offset() -> None:
    (row,) = told([record(0, -1)], updates=[record(5, 7)])
    assert (row["was"], row["became"], row["cost"]) == (7, None, None)
    (row,) = told([], snapshots=[record(5, 7)])
    assert (row["was"], row["became"]) == (7, None)


def test_what_was_dealt_with_behind_a_start_offset_that_stayed_is_lost_too() -> None:
    (row,) = told([record(0, 3)], updates=[record(5, 3, batch(4, 8))])
    assert (row["was"], row["became"], row["cost"]) == (3, 3, None)
    assert row["reason"].startswith("the start offset stayed; what was dealt with behind it")


def test_state_that_the_lost_line_deleted_comes_back() -> None:
    (row,) = told([record(0, 3)], snapshots=[record(5, None)])
    assert (row["was"], row["became"]) == (None, 3)


def test_what_is_equal_on_both_lines_is_no_loss() -> None:
    assert told([record(0, 3, batch(5, 6))], snapshots=[record(5, 3, batch(5, 6))]) == []
    assert told([record(0, 3)]) == []


def test_a_group_that_the_lost_line_does_not_name_lost_nothing() -> None:
    shared = [record(0, 3), record(1, 8, group="others")]
    (row,) = told(shared, updates=[record(5, 7)])
    assert row["group_id"] == "workers"


def test_what_was_perhaps_never_committed_is_not_told_for_sure() -> None:
    (row,) = told([record(0, 3)], updates=[record(5, 7)], is_committed=False)
    assert (row["confidence"], row["cost"]) == ("low", 4)
    (row,) = told([record(0, 3)], updates=[record(5, 7)], lacks="copy broker-1: lacks offset 4")
    assert (row["confidence"], row["cost"]) == ("low", None)
    assert row["reason"].endswith("lacks offset 4")
