"""Checkpoints of Flink, exported as JSON: an object a checkpoint.

``{"checkpoint_id", "checkpoint_timestamp", "completed", "group_id", "operators": [{"uid",
"subtask", "parallelism", "splits": [{"topic", "partition", "startingOffset"}]}]}``. No library but
Flink's own reads `_metadata`: its state processor gives the splits of a ``KafkaSource``.
"""

from __future__ import annotations

from collections.abc import Sequence

from analytics.seeds.checkpoint_files.fields import (
    Document,
    listed,
    partition_of,
    text,
    text_or_none,
    time_or_none,
    whole,
    whole_or_none,
)
from analytics.seeds.region.contributions import CheckpointKey, Contribution, Partition
from analytics.side_files import bad

FLINK = "flink"
_MOST_SUBTASKS = 2**15
"""Flink takes no more."""
METADATA = "_metadata"
_MARKERS = {
    -1: "the marker -1 (the latest offset)",
    -2: "the marker -2 (the earliest offset)",
    -3: "the marker -3 (the committed offset)",
}
"""Of ``KafkaPartitionSplit``: such a split was not read yet; no number tells where it begins."""


def is_flink_export(document: Document) -> bool:
    """Return whether a document is an exported checkpoint."""
    return "checkpoint_id" in document and "operators" in document


def flink_export(
    document: Document, where: str, source: str, group: str | None
) -> list[Contribution]:
    """Return what the subtasks of each source contribute.

    Raises:
        InputNotRecognizedError: A field is not what it has to be.
    """
    key = CheckpointKey(
        text_or_none(document, "group_id", where) or group,
        FLINK,
        source,
        whole(document, "checkpoint_id", where),
    )
    finished = document.get("completed")
    if finished is not None and not isinstance(finished, bool):
        raise bad(where, "completed", finished, "true or false")
    subtasks = listed(document, "operators", where)
    names = _names(subtasks, where)
    return [
        Contribution(
            key,
            (_name(each, f"{where}, operators[{place}]"),),
            names,
            len(names),
            tuple((split, offset if offset >= 0 else None) for split, offset in splits),
            at=time_or_none(document, "checkpoint_timestamp", where),
            is_finished=finished,
            markers=tuple((split, _MARKERS[offset]) for split, offset in splits if offset < 0),
        )
        for place, each in enumerate(subtasks)
        for splits in (_splits(each, f"{where}, operators[{place}]"),)
    ]


def _name(subtask: Document, where: str) -> str:
    return f"{text(subtask, 'uid', where)}/{whole_or_none(subtask, 'subtask', where) or 0}"


def _names(subtasks: Sequence[Document], where: str) -> tuple[str, ...]:
    """Return the names of all subtasks there should be."""
    names: dict[str, None] = {}
    for place, each in enumerate(subtasks):
        at = f"{where}, operators[{place}]"
        names[_name(each, at)] = None
        count = whole_or_none(each, "parallelism", at, least=1, most=_MOST_SUBTASKS) or 0
        names |= {f"{text(each, 'uid', at)}/{number}": None for number in range(count)}
    return tuple(names)


def _splits(subtask: Document, where: str) -> list[tuple[Partition, int]]:
    """Return the next offset to read of each split, or the marker that stands for one."""
    found: dict[Partition, int] = {}
    for place, each in enumerate(listed(subtask, "splits", where)):
        at = f"{where}, splits[{place}]"
        found[partition_of(each, at)] = whole(each, "startingOffset", at, least=min(_MARKERS))
    return sorted(found.items())
