"""What a running cluster answered to `snapshot`, as far as answers take it from the manifest.

`snapshot.json` of the dump has more (`schemas.snapshot`): settings' sources, replicas, addresses.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

Edges = list[int | None]
"""Of a partition: its number, leader, log start and end offset, and the later end offset."""


class SnapshotBroker(TypedDict):
    """A broker; `settings` are null where it did not answer."""

    node_id: int
    settings: dict[str, str] | None


class SnapshotTopic(TypedDict):
    """A topic; `settings` are its own, null where they were not answered."""

    topic: str
    topic_id: str | None
    partitions: list[Edges]
    settings: dict[str, str] | None


class SnapshotGroup(TypedDict):
    """A group that has settings of its own."""

    group_id: str
    settings: dict[str, str]


class SnapshotEntry(TypedDict):
    """What a cluster answered between `taken_at` and `finished_at`.

    Keys:
        read_beyond_ends: An internal log was read further than where it ended at first: commits
            may have come after the first end offsets of other logs.
        resumed_from: `taken_at` of the earlier snapshot that it goes on from: it has records that
            the cleaner has removed since. Absent where it was fetched whole.
    """

    copy: str
    taken_at: str
    finished_at: str
    read_beyond_ends: bool
    brokers: list[SnapshotBroker]
    topics: list[SnapshotTopic]
    groups: list[SnapshotGroup]
    resumed_from: NotRequired[str]
