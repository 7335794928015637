"""Every name in a dump, collected from its decoded records field by field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

NAMES = {
    "offset_commit": ("key.group", "key.topic", "value.metadata"),
    "group_metadata": (
        "key.group", "value.members.member_id", "value.members.client_id",
        "value.members.client_host", "value.members.group_instance_id",
        "value.members.subscription_decoded.topics",
    ),
    "consumer_group_member_metadata": (
        "key.group_id", "key.member_id", "value.instance_id", "value.rack_id", "value.client_id",
        "value.client_host", "value.subscribed_topic_names", "value.subscribed_topic_regex",
    ),
    "share_group_member_metadata": (
        "key.group_id", "key.member_id", "value.client_id", "value.client_host",
        "value.subscribed_topic_names",
    ),
    "streams_group_member_metadata": (
        "key.group_id", "key.member_id", "value.client_id", "value.client_host", "value.process_id",
    ),
    "transaction_log": ("key.transactional_id",),
    "topic_record": ("value.name",),
}  # fmt: skip
"""By table the fields that hold names."""


def names_in_dump(workspace: Path) -> set[str]:
    """Return all names in decoded records; Kafka's own topics are none."""
    found = {
        name
        for table, paths in NAMES.items()
        for row in _rows(workspace / "decoded" / table)
        for path in paths
        for name in _at(row, path.split("."))
    }
    return {name for name in found if name and not name.startswith("__")}


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.parquet")):
        yield from pq.read_table(path).to_pylist()


def _at(value: Any, path: list[str]) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _at(each, path)
    elif isinstance(value, dict):
        yield from _at(value[path[0]], path[1:])
    elif isinstance(value, str):
        yield value
