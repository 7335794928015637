"""A merge as the job control plane of a region keeps it, as JSON.

``{"consolidatedOffsetMap": [[{"topic", "partition", "toString"}, offset], ...],
"contributedOperatorNames": [...], "nExpectedContributions", "nContributions", "complete",
"key": {"sequenceId", "resetAttempt"}}``. It names no group.
"""

from __future__ import annotations

from analytics.questions.region.contributions import (
    MERGE,
    CheckpointKey,
    Contribution,
    Partition,
)
from analytics.side_files import MOST_INT, bad
from jobs.checkpoints.fields import (
    Document,
    partition_of,
    text_or_none,
    texts,
    time_or_none,
    whole,
    whole_or_none,
)

_MAP = "consolidatedOffsetMap"
_NAMES = "contributedOperatorNames"


def is_merge(document: Document) -> bool:
    """Return whether a document is a merge."""
    return _MAP in document


def merge_document(document: Document, where: str, group: str | None) -> Contribution:
    """Return what all operators together contributed.

    Raises:
        InputNotRecognizedError: A field is not what it has to be.
    """
    key = document.get("key")
    if not isinstance(key, dict):
        raise bad(where, "key", key, 'an object, as in {"sequenceId": 7, "resetAttempt": 0}')
    names = tuple(dict.fromkeys(texts(document, _NAMES, where)))
    return Contribution(
        CheckpointKey(
            text_or_none(document, "group_id", where) or group,
            MERGE,
            None,
            whole(key, "sequenceId", f"{where}, key"),
        ),
        names,
        (),
        whole(document, "nExpectedContributions", where, most=MOST_INT),
        tuple(_offsets(document, where)),
        reset_attempt=_attempt(key, f"{where}, key"),
        at=time_or_none(document, "at", where),
    )


def _attempt(key: Document, where: str) -> int | None:
    """Return the reset attempt; -1 where it is not part of the key."""
    return whole_or_none(key, "resetAttempt", where, least=-1, most=MOST_INT)


def _offsets(document: Document, where: str) -> list[tuple[Partition, int | None]]:
    pairs = document.get(_MAP)
    wanted = "pairs of a partition and an offset"
    if not isinstance(pairs, list):
        raise bad(where, _MAP, pairs, wanted)
    found: dict[Partition, int | None] = {}
    for place, each in enumerate(pairs):
        at = f"{where}, {_MAP}[{place}]"
        if not isinstance(each, list) or len(each) != 2 or not isinstance(each[0], dict):
            raise bad(where, f"{_MAP}[{place}]", each, wanted)
        partition = partition_of(each[0], at)
        found[partition] = whole({"offset": each[1]}, "offset", at)
    return sorted(found.items())
