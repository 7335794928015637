"""Which deletion of a topic an offset could have gone with: a name may have lived twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from analytics.contracts import TIME, contract_schema
from analytics.replay.removals.removed_offsets import (
    purges_in_all,
    topic_purges,
    with_topic_deletion,
)

REMOVED: dict[str, Any] = {
    "coordinator_partition": pl.Int32,
    "position": pl.Int64,
    "topic": pl.String,
    "at": TIME,
    "removed_topic_id": pl.String,
    "removed_at": TIME,
    "removed_position": pl.Int64,
}
TOPICS = contract_schema("topics")

DELETED = datetime(2026, 11, 22, 1, 3, 19, tzinfo=UTC)
SOON, LATER = DELETED + timedelta(seconds=1), DELETED + timedelta(seconds=18)
FAR = timedelta(days=4380)
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
    "committed at a time that is not believed": ((SOON, (None, DELETED + FAR)), True),
    "committed to the next topic, at such a time": ((LATER, (None, DELETED + FAR)), False),
}


def frame_of(removed: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(removed, REMOVED, orient="row")


def deleted_with(removed: Sequence[tuple[Any, ...]], topics: list[dict[str, Any]]) -> set[Any]:
    """Return the places of the tombstones that came with a deletion of the topic."""
    rows = frame_of(removed)
    known = pl.DataFrame(topics, TOPICS)
    told = with_topic_deletion(rows, known, topic_purges(rows, known))
    went = told.filter(pl.col("topic_deleted_at").is_not_null())
    return set(went.select("coordinator_partition", "position").rows())


def test_an_offset_goes_with_the_life_of_the_topic_it_was_committed_for() -> None:
    """A broker of 4.0.2 deleted a group 18 s after a topic of its name was born again."""
    removed = [
        (place, place, "t", at, *((None, None, None) if commit is None else (*commit, 0)))
        for place, ((at, commit), _) in enumerate(CASES.values())
    ]
    old = {"topic": "t", "topic_id": OLD, "deleted_at": DELETED}
    found = deleted_with(removed, [old, {"topic": "t", "topic_id": NEW}])
    assert {name: (place, place) in found for place, name in enumerate(CASES)} == {
        name: expected for name, (_, expected) in CASES.items()
    }


def test_what_is_committed_behind_a_deletions_tombstones_is_for_the_next_life() -> None:
    """A broker of 4.0.2 removed the offsets 0.2 s after the deletion; 0.8 s later came a commit."""
    purge, before = DELETED + timedelta(milliseconds=179), DELETED - timedelta(minutes=1)
    removed = [
        # Coordinator's partition, tombstone, when; the commit it removed: no id, when, where.
        (1, 87, "t", purge, None, before, 40),
        (1, 88, "t", purge, None, DELETED + timedelta(milliseconds=90), 86),
        (1, 278, "t", LATER, None, SOON, 98),
        (2, 278, "t", LATER, None, SOON, 98),
    ]
    topics = [{"topic": "t", "topic_id": OLD, "deleted_at": DELETED}]
    assert deleted_with(removed, topics) == {(1, 87), (1, 88), (2, 278)}


def test_the_first_of_a_deletions_tombstones_may_be_of_another_group() -> None:
    """The same, of groups that are looked at one after the other."""
    first = [(1, 87, "t", DELETED, None, DELETED - timedelta(minutes=1), 40)]
    other = [(1, 278, "t", LATER, None, SOON, 98)]
    topics = pl.DataFrame([{"topic": "t", "topic_id": OLD, "deleted_at": DELETED}], TOPICS)
    parts = [frame_of(rows) for rows in (first, other)]
    purges = purges_in_all([topic_purges(rows, topics) for rows in parts])
    assert purges.rows() == [(1, "t", OLD, 87)]
    went = [with_topic_deletion(rows, topics, purges)["topic_deleted_at"] for rows in parts]
    assert [each.to_list() for each in went] == [[DELETED], [None]]
