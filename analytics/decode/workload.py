"""How much there is to do: where it is little, it is done in the process that asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.dump.files.model import Plan
    from schemas.manifest import Manifest

SMALL_BYTES = 16 * 1024 * 1024
"""So much of segments is read sooner than Spark starts."""

SMALL_RECORDS = 300_000
"""So many records are replayed in one go, in memory that any machine has."""

SMALL_LOGS = 96 * 1024 * 1024
"""So much of logs: a record of a group with many members holds more than a commit does."""


def is_small_plan(plan: Plan) -> bool:
    """Whether what is read of logs is decoded in this process, for which no Spark is needed."""
    return sum(each.to_position - each.from_position for each in plan.slices) <= SMALL_BYTES


def is_small_workspace(manifest: Manifest) -> bool:
    """Whether the records of a workspace are replayed in one go, for which no Spark is needed."""
    records: int = sum(kind["records"] for kind in manifest["record_types"])
    logs = (each for each in manifest["partitions"] if each.get("is_leading", True))
    size: int = sum(each.get("size") or 0 for each in logs)
    return records <= SMALL_RECORDS and size <= SMALL_LOGS


def packed_sizes(sizes: Sequence[int], task_bytes: int) -> list[list[int]]:
    """Pack what is to be read, in order, into tasks of about so many bytes.

    It depends on the sizes alone, so equal input gives equal parts on any cluster.

    Args:
        sizes: Of each, in bytes.
        task_bytes: Of a task; what is larger is a task of its own.

    Returns:
        The numbers of what each task reads.
    """
    tasks: list[list[int]] = []
    filled = task_bytes
    for number, size in enumerate(sizes):
        if filled >= task_bytes:
            tasks.append([])
            filled = 0
        tasks[-1].append(number)
        filled += size
    return tasks
