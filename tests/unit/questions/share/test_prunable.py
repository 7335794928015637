"""What of share state nobody needs any more: as the share coordinator counts it."""

from __future__ import annotations

from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import strategies as st

from analytics.questions.share.state_topic import (
    PLACE_COLUMNS,
    SNAPSHOT_COLUMNS,
    StateLogs,
    holders,
    prunable,
)
from tests.support.examples import examples
from tests.support.reference_share_coordinator import ShareKey, ShareRecord, Snapshot, Update
from tests.support.share_histories import random_history
from tests.unit.questions.share.backlog import decoded, time_of

TOPICS = pl.DataFrame({"topic_id": ["a", None], "topic": ["orders", "nameless"]})
SNAPSHOT = Snapshot(0, 0, 0, 0, 0, 1, 1, ())
UPDATE = Update(0, 0, 0, 0, ())


class OffsetsManager:
    """Kafka's ``ShareCoordinatorOffsetsManager``, one call after the other."""

    def __init__(self) -> None:
        self.offsets: dict[ShareKey, int] = {}
        self.redundant: int | None = None

    def update(self, key: ShareKey, offset: int, *, is_delete: bool) -> None:
        self.offsets[key] = offset
        self.redundant = min(self.offsets.values())
        if is_delete:
            del self.offsets[key]

    @property
    def last_redundant(self) -> int | None:
        return self.redundant or None


def told(records: list[ShareRecord], log_starts: dict[int, int] | None = None) -> dict[int, Any]:
    """Return the table by internal partition: each topic is looked at apart from the others."""
    snapshots, updates = decoded(records)
    topic = pl.col("key").struct.field("topic_id")
    topics = [] if snapshots.is_empty() else snapshots.select(topic).to_series().unique()
    parts = [snapshots.clear(), *(snapshots.filter(topic == each) for each in topics)]
    held = [holders(each.select(list(SNAPSHOT_COLUMNS))) for each in parts]
    places = [each.select(list(PLACE_COLUMNS)) for each in (snapshots, updates)]
    rows = prunable(held, places, TOPICS, StateLogs(log_starts or {}))
    return {row["coordinator_partition"]: row for row in rows.to_dicts()}


def record(offset: int, key: str, value: Snapshot | Update | None) -> ShareRecord:
    return ShareRecord(0, offset, ("g", key, 0), value)


# The tables of Kafka's ShareCoordinatorOffsetsManagerTest: each write by key and offset, `x` for a
# deletion, and after it the offset below which nothing is needed.
@pytest.mark.parametrize(
    "steps",
    [
        "a10=10",
        "a10x=10",
        "a10=10 d11=10 b13=10",
        "a10x=10 d11x=11 b13x=13",
        "a10=10 a11=11 a15=15",
        "a10=10 b11=10 c15=10 b16=10 a17=15",
        "a10=10 b11=10 c15x=10 b16=10 a17=16",
        "a10=10 b11=10 c15=10 c18=10 b20=10 a25=18",
        "a10=10 b11=10 c15=10 c18x=10 b20x=10 a25=25",
        "a10=10 b11=10 c15=10 b18=10 c20=10 b22=10 c25=10 b27=10 c28=10 a30=27",
        "a10=10 b11=10 c15=10 b18=10 c20x=10 b22=10 b27x=10 a30=30",
    ],
)
def test_below_the_oldest_last_snapshot_nothing_is_needed(steps: str) -> None:
    records = []
    manager = OffsetsManager()
    for step in steps.split():
        written, _, below = step.partition("=")
        key, offset, is_delete = written[0], int(written[1:].rstrip("x")), written[-1] == "x"
        records.append(record(offset, key, None if is_delete else SNAPSHOT))
        manager.update(("g", key, 0), offset, is_delete=is_delete)
        found = told(records)[0]
        assert found["prunable_to"] == manager.last_redundant == int(below)
        assert found["prunable_records"] == sum(each.offset < int(below) for each in records)


def test_offset_0_is_kept() -> None:
    assert told([record(0, "a", SNAPSHOT), record(1, "b", SNAPSHOT)])[0]["prunable_to"] is None


@examples(12, 60, seed=st.integers(0, 2**32))
def test_random_histories_are_pruned_as_the_coordinator_prunes_them(seed: int) -> None:
    random = Random(seed)
    records = random_history(random, 3)
    manager = OffsetsManager()
    for each in records:
        if not isinstance(each.value, Update):
            manager.update(each.key, each.offset, is_delete=each.value is None)
    found = told(records, {3: 2}).get(3)
    if found is None:
        assert manager.redundant is None
        return
    below = manager.last_redundant
    assert found["prunable_to"] == below
    assert found["prunable_records"] == sum(each.offset < (below or 0) for each in records)
    assert found["prunable_offsets"] == max((below or 2) - 2, 0)
    assert found["records"] == len(records)
    living = manager.offsets
    oldest = min(living, key=lambda key: living[key], default=None)
    held = found["held_by_group"], found["held_by_topic_id"], found["held_by_partition"]
    assert held == (oldest or (None, None, None))


def test_what_keeps_the_rest_has_a_name_and_a_time() -> None:
    records = [record(3, "a", SNAPSHOT), record(4, "a", UPDATE), record(5, "b", SNAPSHOT)]
    found = told(records)[0]
    assert (found["held_by_topic"], found["held_by_offset"]) == ("orders", 3)
    assert found["held_since"] == time_of(3)
    assert (found["log_start_offset"], found["prunable_offsets"]) == (None, None)
    assert told(records[2:])[0]["held_by_topic"] == "b"


def test_where_nothing_is_stored_there_is_nothing_to_prune() -> None:
    assert told([]) == {}
