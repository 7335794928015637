"""What a person vouches for where the dump cannot tell; every answer says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

NO_TRANSACTIONS, COMPLETE_ARCHIVE = "no-transactions", "complete-archive"
CLEAN_ELECTIONS = "clean-elections"


def archived(manifest: Mapping[str, Any], topic: str) -> frozenset[int]:
    """Return the partitions of an internal topic whose records are archived rows."""
    return frozenset(
        each["partition"]
        for each in manifest["partitions"]
        if each["topic"] == topic and each.get("copy", "") is None
    )


def assumed_of(manifest: Mapping[str, Any], assume: Iterable[str]) -> list[str]:
    """Return what is assumed of a dump: only of what it cannot tell itself."""
    rows = manifest["partitions"]
    open_questions: set[str] = set()
    if any(each.get("copy", "") is None for each in rows):
        open_questions |= {NO_TRANSACTIONS, COMPLETE_ARCHIVE}
    if any(each.get("unjudged_elections") for each in rows):
        open_questions.add(CLEAN_ELECTIONS)
    return sorted(open_questions & set(assume))


def assumed_in(manifest: Mapping[str, Any]) -> list[str]:
    """Return what was assumed when a workspace was replayed."""
    return list(manifest.get("replay", {}).get("assumed", ()))
