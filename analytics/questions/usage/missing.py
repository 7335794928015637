"""What of usage cannot be told, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analytics.questions.usage.partition_usage import Identity

_MOST_NAMED = 5
_FILTERS = {
    "groups": "--group",
    "exclude_groups": "--exclude-group",
    "data_topics": "--topic",
    "topics": "--topics",
    "partitions": "--partitions",
}


def limitations(manifest: Mapping[str, Any], found: Identity) -> list[str]:
    """Return what the dump does not tell, one sentence each.

    Args:
        manifest: Of a decode run.
        found: Whether bytes come out even.
    """
    return [
        *_filtered(manifest),
        *_absent(manifest),
        *_lost(manifest),
        *_later(manifest),
        *(f"what is in {_file(each)}: {each['why']}" for each in manifest.get("unreadable", ())),
        *_archived(manifest),
        *_uneven(found),
    ]


def _filtered(manifest: Mapping[str, Any]) -> list[str]:
    """What a decode run was told to leave out is in no table."""
    options = manifest.get("options", {})
    given = [words for name, words in _FILTERS.items() if options.get(name)]
    if not given:
        return []
    return [f"what records are that were left out when this was decoded ({', '.join(given)})"]


def _absent(manifest: Mapping[str, Any]) -> list[str]:
    return [
        f"what is in {topic}-{_named(numbers)}, which no copy holds"
        for topic, numbers in manifest["absent_partitions"].items()
        if numbers
    ]


def _lost(manifest: Mapping[str, Any]) -> list[str]:
    """A record that is lost may be the last of its key, or a marker."""
    return [
        f"whether records are the last of their key: {each['lacks']}"
        for each in manifest["partitions"]
        if each.get("lacks") and each.get("is_leading", True)
    ]


def _later(manifest: Mapping[str, Any]) -> list[str]:
    """A later leader may have written the last record of any key."""
    return [
        f"whether records of {each['topic']}-{each['partition']} are the last of their key: "
        f"{each['absent_leaders'][0]['why']}"
        for each in manifest["partitions"]
        if each.get("absent_leaders")
    ]


def _archived(manifest: Mapping[str, Any]) -> list[str]:
    rows = [each for each in manifest["partitions"] if each["copy"] is None]
    if not rows:
        return []
    what = f"bytes of {len(rows)} partitions, and what compaction left of them"
    return [f"{what}: archived rows have neither batches nor files"]


def _uneven(found: Identity) -> list[str]:
    said = []
    if found.unchecked:
        said.append(
            "what the bytes are of partitions that another version of groupscope decoded: "
            "decode the dump again"
        )
    if found.unexplained:
        said.append(
            f"{found.unexplained:,} bytes of files: they changed while they were read, "
            "or what was decoded is not what was listed"
        )
    if found.uncounted:
        topic, partition = next(iter(found.uncounted))
        uncounted = sum(map(abs, found.uncounted.values()))
        said.append(
            f"whose {uncounted:,} bytes of records are that files hold "
            f"and no table has, the first in {topic}-{partition}"
        )
    return said


def _file(row: Mapping[str, Any]) -> str:
    return ": ".join(row[name] for name in ("copy", "segment") if row[name])


def _named(numbers: list[int]) -> str:
    more = len(numbers) - _MOST_NAMED
    return ", ".join(map(str, numbers[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
