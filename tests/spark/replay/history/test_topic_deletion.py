"""Which deletion of a topic an offset could have gone with: a name may have lived twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from analytics.replay.history.removed_offsets import with_topic_deletion

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELETED = datetime(2026, 11, 22, 1, 3, 19, tzinfo=UTC)
SOON, LATER = DELETED + timedelta(seconds=1), DELETED + timedelta(seconds=18)
OLD, NEW, ZERO = "gtb2stGYRk-vWZ2zAozmoA", "EYAGe3ybSjSvj5d44sPkEw", "AAAAAAAAAAAAAAAAAAAAAA"

Case = tuple[datetime, tuple[str | None, datetime | None] | None]
"""When the offset was removed, and the commit removed: its topic's id, when it took effect."""

CASES: dict[str, tuple[Case, bool]] = {
    "committed before, not named": ((SOON, (None, DELETED - timedelta(minutes=1))), True),
    "committed before, with no id": ((LATER, (ZERO, DELETED)), True),
    "committed as it was deleted": ((LATER, (None, SOON)), True),
    "committed to the next topic of that name": ((LATER, (None, LATER)), False),
    "named, whenever it was committed": ((LATER, (OLD, LATER)), True),
    "the next topic, named": ((LATER, (NEW, DELETED)), False),
    "removed before": ((DELETED - timedelta(seconds=9), (None, DELETED)), False),
    "compacted away": ((LATER, None), True),
    "committed at a time not told": ((LATER, (None, None)), True),
}


def test_an_offset_goes_with_the_life_of_the_topic_it_was_committed_for(
    spark: SparkSession,
) -> None:
    """A broker of 4.0.2 deleted a group 18 s after a topic of its name was born again."""
    removed = spark.createDataFrame(
        [
            (place, place, "t", at, None if commit is None else (*commit, 0))
            for place, ((at, commit), _) in enumerate(CASES.values())
        ],
        "coordinator_partition int, position bigint, topic string, at timestamp, "
        "removed struct<topic_id: string, at: timestamp, position: bigint>",
    )
    topics = spark.createDataFrame(
        [("t", OLD, DELETED), ("t", NEW, None)],
        "topic string, topic_id string, deleted_at timestamp",
    )
    rows = with_topic_deletion(removed, topics).collect()
    found = {row.position: row.topic_deleted_at is not None for row in rows}
    assert {name: found[place] for place, name in enumerate(CASES)} == {
        name: expected for name, (_, expected) in CASES.items()
    }


def test_what_is_committed_behind_a_deletions_tombstones_is_for_the_next_life(
    spark: SparkSession,
) -> None:
    """A broker of 4.0.2 removed the offsets 0.2 s after the deletion; 0.8 s later came a commit."""
    purge, before = DELETED + timedelta(milliseconds=179), DELETED - timedelta(minutes=1)
    rows = [
        # Coordinator's partition, tombstone, when; the commit it removed: no id, when, where.
        (1, 87, purge, (None, before, 40)),
        (1, 88, purge, (None, DELETED + timedelta(milliseconds=90), 86)),
        (1, 278, LATER, (None, SOON, 98)),
        (2, 278, LATER, (None, SOON, 98)),
    ]
    removed = spark.createDataFrame(
        [(partition, position, "t", at, commit) for partition, position, at, commit in rows],
        "coordinator_partition int, position bigint, topic string, at timestamp, "
        "removed struct<topic_id: string, at: timestamp, position: bigint>",
    )
    topics = spark.createDataFrame(
        [("t", OLD, DELETED)], "topic string, topic_id string, deleted_at timestamp"
    )
    found = {
        (row.coordinator_partition, row.position)
        for row in with_topic_deletion(removed, topics).collect()
        if row.topic_deleted_at is not None
    }
    assert found == {(1, 87), (1, 88), (2, 278)}
