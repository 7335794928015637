"""How far back a first record is sure to be the first: behind the cleaner, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.replay.as_of import AsOf
from jobs.replay_coverage import coverage_of

OFFSETS = "__consumer_offsets"
CLEANED = {
    "topic": OFFSETS,
    "partition": 3,
    "files": [{"name": f"{OFFSETS}-3/{number:020d}.log", "kind": "log"} for number in (0, 90)],
    "first_offset": 4,
    "log_start_offset": None,
    "first_dirty_offset": 80,
    "complete_from": 80,
    "gaps": [{"first_offset": 0, "end_offset": 4, "kind": "compaction"}],
}
CUT = [{"name": f"{OFFSETS}-3/{50:020d}.log", "kind": "log"}]


@pytest.mark.parametrize(
    ("changed", "cleaned_until"),
    [
        ({}, {(OFFSETS, 3): 80}),
        ({"first_dirty_offset": None}, {}),
        ({"complete_from": 90}, {}),
        ({"log_start_offset": 2}, {}),
        ({"files": CUT}, {}),
        ({"gaps": [{"first_offset": 20, "end_offset": 30, "kind": "unknown"}]}, {}),
        ({"first_dirty_offset": 0, "complete_from": 0}, {}),
    ],
)
def test_only_the_cleaners_checkpoint_tells_where_first_records_are_first(
    changed: dict[str, Any], cleaned_until: dict[tuple[str, int], int]
) -> None:
    manifest = {"partitions": [CLEANED | changed], "absent_partitions": {}, "options": {}}
    assert coverage_of(manifest, AsOf()).cleaned_until == cleaned_until


@pytest.mark.parametrize(
    ("directories", "topics"),
    [(["orders", "clicks"], frozenset({"orders", "clicks"})), ([], None)],
)
def test_of_a_dump_without_data_directories_no_topic_is_said_to_be_gone(
    directories: list[str], topics: frozenset[str] | None
) -> None:
    manifest = {"partitions": [CLEANED], "absent_partitions": {}, "options": {}}
    told = manifest | {"data_topics": [{"topic": each} for each in directories]}
    assert coverage_of(told, AsOf()).data_topics == topics
