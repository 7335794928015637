"""How far back a first record is sure to be the first: behind the cleaner, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.dump.inspection.found_losses import with_archived_losses
from analytics.replay.dump.coverage import coverage_of
from analytics.replay.log.log_times import AsOf

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


def test_archived_rows_are_whole_and_without_transactions_only_where_that_is_assumed() -> None:
    gaps = [(0, 4, "not_archived"), (7, 8, "not_decoded"), (20, 21, "not_archived")]
    names = ("first_offset", "end_offset", "kind")
    row = {
        "topic": OFFSETS,
        "partition": 3,
        "copy": None,
        "files": [],
        "complete_from": 21,
        "gaps": [dict(zip(names, gap, strict=True)) for gap in gaps],
    }
    manifest = {"partitions": [row], "absent_partitions": {}, "options": {}}
    told = coverage_of(with_archived_losses(manifest), AsOf())
    assert (told.undecided, told.complete_from) == ({3}, {(OFFSETS, 3): 21})
    whole = with_archived_losses(manifest, is_whole=True)
    told = coverage_of(whole, AsOf(), assumed=["complete-archive", "no-transactions"])
    # What a row that cannot be decoded held is still not known.
    assert (told.undecided, told.complete_from) == (frozenset(), {(OFFSETS, 3): 8})
    assert told.uncompacted_from == {(OFFSETS, 3): 21}
    assert with_archived_losses(whole) == with_archived_losses(manifest)


@pytest.mark.parametrize(
    ("directories", "absent", "topics"),
    [
        ({"orders": [0, 1], "clicks": [0]}, [], frozenset({"orders", "clicks"})),
        ({}, [], None),
        # The disk of one broker of several: where the others' topics are it cannot tell.
        ({"orders": [0, 2], "clicks": [0]}, [], None),
        ({"orders": [0, 1], "clicks": [0]}, [3], None),
    ],
)
def test_a_topic_without_a_directory_is_gone_only_where_the_dump_lacks_no_partition(
    directories: dict[str, list[int]], absent: list[int], topics: frozenset[str] | None
) -> None:
    manifest = {"partitions": [CLEANED], "absent_partitions": {CLEANED["topic"]: absent}}
    held = [{"topic": each, "partitions": numbers} for each, numbers in directories.items()]
    told = manifest | {"options": {}, "data_topics": held}
    assert coverage_of(told, AsOf()).data_topics == topics
