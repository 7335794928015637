"""What clusters answered to `snapshot`, as the manifest has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.dump.files.model import Copy
    from schemas.manifest import SnapshotEntry
    from schemas.snapshot import Setting, Snapshot


def snapshot_rows(copies: Iterable[Copy]) -> list[SnapshotEntry]:
    """Return an entry for each copy that was fetched from a running cluster."""
    return [_entry(each.name, each.snapshot) for each in copies if each.snapshot is not None]


def _entry(copy: str, snapshot: Snapshot) -> SnapshotEntry:
    of_groups = {each.group_id: _values(each.configs) for each in snapshot.groups}
    entry: SnapshotEntry = {
        "copy": copy,
        "taken_at": snapshot.taken_at,
        "finished_at": snapshot.finished_at,
        "read_beyond_ends": _is_read_beyond_ends(snapshot),
        "brokers": [
            {"node_id": each.node_id, "settings": _values(each.configs)}
            for each in snapshot.brokers
        ],
        "topics": [
            {
                "topic": topic.topic,
                "topic_id": topic.topic_id,
                "partitions": [
                    [
                        *(each.partition, each.leader),
                        *(each.log_start_offset, each.log_end_offset, each.later_end_offset),
                    ]
                    for each in topic.partitions
                ],
                "settings": _values(topic.configs),
            }
            for topic in snapshot.topics
        ],
        "groups": [
            {"group_id": group, "settings": settings}
            for group, settings in of_groups.items()
            if settings
        ],
    }
    # Without the key it is what it was before there was one: saved runs are known by their digest.
    if since := _resumed_from(snapshot):
        entry["resumed_from"] = since
    return entry


def _resumed_from(snapshot: Snapshot) -> str | None:
    """Return of when the snapshot is that this one has batches of; null where it has none."""
    is_held = any(each.fetched_from is not None for each in snapshot.logs)
    return snapshot.resumed_from if is_held else None


def _is_read_beyond_ends(snapshot: Snapshot) -> bool:
    ends = {
        (topic.topic, each.partition): each.log_end_offset
        for topic in snapshot.topics
        for each in topic.partitions
    }
    # A batch that begins below the end is there whole.
    return any(
        each.next_offset is not None
        and each.next_offset > (ends.get((each.topic, each.partition)) or 0)
        for each in snapshot.logs
    )


def _values(configs: Sequence[Setting] | None) -> dict[str, str] | None:
    return None if configs is None else {each.name: each.value for each in configs}
