"""What a dump lacks, as `decode` and `replay` say it when they are done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reports.quantities import count, ranges

_MOST_NAMED = 20


def missing_records(manifest: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each thing a dump lacks; none where it lacks nothing.

    Args:
        manifest: Of the workspace.
    """
    partitions = [each for each in manifest["partitions"] if each.get("is_leading", True)]
    lacking = [each["lacks"] for each in partitions if each.get("lacks")]
    more = len(lacking) - _MOST_NAMED
    return [
        *lacking[:_MOST_NAMED],
        *([f"{count(more, 'more partition')} lack records: see manifest.json"] if more > 0 else []),
        *_absent(manifest),
        *_damaged(partitions),
    ]


def _absent(manifest: Mapping[str, Any]) -> Iterator[str]:
    for topic, numbers in absent_partitions(manifest):
        yield f"no copy of {topic} {ranges(numbers)}"


def absent_partitions(manifest: Mapping[str, Any]) -> Iterator[tuple[str, list[int]]]:
    """Yield topics of which the dump has no copy of some partitions, and these.

    Args:
        manifest: Of the workspace.
    """
    for topic, absent in manifest.get("absent_partitions", {}).items():
        if absent:
            yield topic, list(absent)


def _damaged(partitions: list[Mapping[str, Any]]) -> Iterator[str]:
    size = sum(each.get("bytes_damaged") or 0 for each in partitions)
    if size:
        yield f"{count(size, 'damaged byte')} could not be read: see the table undecoded"
