"""Commits in transactions over which a tombstone was written: who still has them, before 4.0."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from analytics.replay.log.losses import Coverage
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.offset_state import (
    committed_offsets,
    last_epochs,
    merged_epochs,
    pending_offsets,
)
from tests.support.decoded_frames import frames_of

TABLES = ("offset_commit", "control_markers", "transaction_log", "group_metadata")
COMMIT, TOMBSTONE, MARKER = "commit", "tombstone", "marker"
DROPPED = (
    "a coordinator that has run since offset 1 dropped it there with a tombstone; one that loads "
    "the log has it"
)


def record(offset: int, what: str, epoch: int = 0, partition: int = 0) -> dict[str, Any]:
    in_transaction = what != TOMBSTONE
    return {
        "topic": "__consumer_offsets",
        "partition": partition,
        "offset": offset,
        "leader_epoch": epoch,
        "producer_id": 7 if in_transaction else -1,
        "producer_epoch": 0 if in_transaction else -1,
        "is_transactional": in_transaction,
        "is_tombstone": what == TOMBSTONE,
        "key": {"group": "g", "topic": "t", "partition": 0},
        "value": {"offset": 5, "commit_timestamp": 1} if what == COMMIT else None,
        "control_type": "COMMIT",
    }


def decoded(*records: dict[str, Any], later: tuple[dict[str, Any], ...] = ()) -> Any:
    """Records of one offset, and others of the group's own."""
    fields = ("key", "value", "is_tombstone")
    markers = [
        {name: value for name, value in each.items() if name not in fields}
        for each in records
        if each["value"] is None and not each["is_tombstone"]
    ]
    commits = [
        {name: value for name, value in each.items() if name != "control_type"}
        for each in records
        if each["value"] is not None or each["is_tombstone"]
    ]
    groups = [
        {name: value for name, value in each.items() if name not in ("control_type", "value")}
        | {"key": {"group": "g"}}
        for each in later
    ]
    rows = {"offset_commit": commits, "control_markers": markers, "group_metadata": groups}
    return frames_of(rows, TABLES)


def told(frame: pl.DataFrame) -> list[tuple[int, str | None]]:
    return [(row["committed_offset"], row["missing"]) for row in frame.iter_rows(named=True)]


REMOVED = (record(0, COMMIT), record(1, TOMBSTONE))
ENDED = (*REMOVED, record(2, MARKER))
CASES = {
    # name: records, later ones of the group, who asks, why it depends
    "nobody loaded it since": (REMOVED, (), True, DROPPED),
    "a later leader loaded it": (REMOVED, (record(3, TOMBSTONE, 1),), True, None),
    "the same leader wrote on": (REMOVED, (record(3, TOMBSTONE, 0),), True, DROPPED),
    "who loads it now has it": (REMOVED, (), False, None),
    "committed behind the tombstone": (ENDED, (), True, DROPPED),
    "committed, and a later leader": (ENDED, (record(3, TOMBSTONE, 1),), True, None),
    "pending behind the tombstone": ((record(1, TOMBSTONE), record(2, COMMIT)), (), True, None),
}


@pytest.mark.parametrize("case", CASES)
def test_it_depends_on_who_has_loaded_the_log_since(case: str) -> None:
    records, later, is_of_running, why = CASES[case]
    tables, rules = decoded(*records, later=later), replay_rules("3.9")
    coverage = Coverage(is_of_running=is_of_running)
    pending = pending_offsets(tables, rules, coverage)
    committed = committed_offsets(tables, rules, None, coverage, pending)
    has_it, has_none = (committed, pending) if records == ENDED else (pending, committed)
    assert told(has_it) == [(5, why)]
    assert has_none.is_empty()


def test_since_4_0_the_tombstone_removed_it() -> None:
    tables, rules = decoded(*REMOVED), replay_rules("4.0")
    assert pending_offsets(tables, rules, Coverage(is_of_running=True)).is_empty()


def test_the_last_epoch_is_that_of_all_buckets() -> None:
    rules = replay_rules("3.9")
    buckets = [
        decoded(record(0, COMMIT, 2), record(5, TOMBSTONE, 3, partition=1)),
        decoded(record(1, TOMBSTONE, 4), later=(record(9, TOMBSTONE, 6),)),
    ]
    merged = merged_epochs([last_epochs(each, rules) for each in buckets])
    assert sorted(merged.rows()) == [(0, 6), (1, 3)]
    (one, other) = buckets
    coverage = Coverage(is_of_running=True)
    apart = pending_offsets(one, rules, coverage, epochs=merged)
    assert told(apart) == [(5, None)]
    assert other["offset_commit"].height == 1
