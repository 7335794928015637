"""What a running cluster answered to `snapshot`: topics with ids, settings, where logs end.

It answered at an instant of its own. What it said of topics and settings is in force at the end of
the dump; of earlier instants nothing of it is certain but which id a topic's name has by now.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.contracts import contract_schema
from analytics.replay.metadata.metadata_log import CERTAIN
from analytics.replay.metadata.topics import SNAPSHOT
from schemas.kafka_settings import BROKER, GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from schemas.manifest import Manifest, SnapshotBroker, SnapshotEntry

ALL_BROKERS: Final = ""
"""The resource of settings in which all brokers agree."""
_TOPIC: Final = "topic"
_TOPICS: Final = {"topic": str, "topic_id": str, "partitions": pl.Int32, "source": str}
_Row = tuple[str, str, str, str]
"""Type of a resource, its name, a setting's name and value."""


def last_snapshot(manifest: Manifest) -> SnapshotEntry | None:
    """Return what the cluster answered last; None where no copy is a snapshot."""
    return max(
        manifest.get("snapshots", ()),
        key=lambda each: datetime.fromisoformat(each["taken_at"]),
        default=None,
    )


def snapshot_topics(manifest: Manifest, *, is_end: bool) -> pl.DataFrame:
    """Return topics as the cluster described them.

    Args:
        manifest: Of a workspace.
        is_end: The end of the dump is asked about: before it a topic may have had fewer partitions.

    Returns:
        `topic`, `topic_id` (null where releases have none), `partitions` (null before the end) and
        `source`.
    """
    snapshot = last_snapshot(manifest)
    rows = [
        (
            each["topic"],
            each["topic_id"],
            len(each["partitions"]) if is_end else None,
            SNAPSHOT,
        )
        for each in (snapshot["topics"] if snapshot is not None else ())
    ]
    return pl.DataFrame(rows, _TOPICS, orient="row")


def snapshot_configs(manifest: Manifest, *, is_end: bool) -> pl.DataFrame:
    """Return rows of the table `configs` that the cluster answered.

    What all brokers answer alike is of `ALL_BROKERS`, if all of them did; all else of the broker.

    Args:
        manifest: Of a workspace.
        is_end: The end of the dump is asked about: what was set before it nobody answered.
    """
    snapshot = last_snapshot(manifest)
    rows: list[dict[str, Any]] = []
    if snapshot is not None and is_end:
        at = datetime.fromisoformat(snapshot["taken_at"])
        names = ("resource_type", "resource", "name", "value")
        rows = [
            {**dict(zip(names, row, strict=True)), "since": at, "source": SNAPSHOT}
            for row in _settings(snapshot)
        ]
    schema = contract_schema("configs")
    beside = {name: kind for name, kind in schema.items() if name not in _MARKS}
    return pl.DataFrame(rows, beside, orient="row").with_columns(CERTAIN).select(list(schema))


_MARKS: Final = ("complete", "missing")


def _settings(snapshot: SnapshotEntry) -> Iterator[_Row]:
    yield from _of_brokers(snapshot["brokers"])
    for topic in snapshot["topics"]:
        for name, value in (topic["settings"] or {}).items():
            yield _TOPIC, topic["topic"], name, value
    for group in snapshot["groups"]:
        for name, value in group["settings"].items():
            yield GROUP, group["group_id"], name, value


def _of_brokers(brokers: Sequence[SnapshotBroker]) -> Iterator[_Row]:
    answered = [each["settings"] for each in brokers]
    whole = [each for each in answered if each is not None]
    agreed = set(whole[0].items()) if whole and len(whole) == len(answered) else set()
    for each in whole:
        agreed &= set(each.items())
    yield from ((BROKER, ALL_BROKERS, name, value) for name, value in sorted(agreed))
    for broker in brokers:
        for name, value in (broker["settings"] or {}).items():
            if (name, value) not in agreed:
                yield BROKER, str(broker["node_id"]), name, value
