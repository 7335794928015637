"""Checkpoints of the operators of a consistent region: rows of JSON Lines, JSON or Parquet.

``{group_id, region_index, checkpoint_sequence_id, reset_attempt, operator, operators[],
offsets[{topic, partition, offset}], at}``, and `drain_started_at` where it is known.
"""

from __future__ import annotations

from analytics.seeds.checkpoint_files.fields import (
    Document,
    listed,
    partition_of,
    text,
    text_or_none,
    texts,
    time_or_none,
    whole,
    whole_or_none,
)
from analytics.seeds.region.contributions import (
    REGION,
    CheckpointKey,
    Contribution,
    Partition,
)
from analytics.side_files import MOST_INT, bad

FIELDS = ("operator", "operators", "checkpoint_sequence_id")
"""A row has these, or is none."""


def is_region_row(document: Document) -> bool:
    """Return whether a document is a contribution of an operator."""
    return any(name in document for name in FIELDS)


def region_row(document: Document, where: str, group: str | None) -> Contribution:
    """Return the contribution that a row is.

    Args:
        document: The row.
        where: The file, and the place in it.
        group: The group of rows that name none.

    Raises:
        InputNotRecognizedError: A field is not what it has to be.
    """
    operators = tuple(dict.fromkeys(texts(document, "operators", where)))
    key = CheckpointKey(
        text_or_none(document, "group_id", where) or group,
        REGION,
        None,
        whole(document, "checkpoint_sequence_id", where),
    )
    return Contribution(
        key,
        (text(document, "operator", where),),
        operators,
        len(operators),
        tuple(offsets_of(document, where)),
        region_index=whole_or_none(document, "region_index", where, most=MOST_INT),
        reset_attempt=whole_or_none(document, "reset_attempt", where, most=MOST_INT),
        at=time_or_none(document, "at", where),
        drain_started_at=time_or_none(document, "drain_started_at", where),
    )


def offsets_of(document: Document, where: str) -> list[tuple[Partition, int | None]]:
    """Return `offsets` of a row, in the order of their partitions.

    Raises:
        InputNotRecognizedError: One is none, or a partition is named twice.
    """
    found: dict[Partition, int | None] = {}
    for place, each in enumerate(listed(document, "offsets", where)):
        at = f"{where}, offsets[{place}]"
        partition = partition_of(each, at)
        offset = whole(each, "offset", at)
        if found.get(partition, offset) != offset:
            raise bad(at, "offset", offset, f"{found[partition]}, as of this partition before")
        found[partition] = offset
    return sorted(found.items())
