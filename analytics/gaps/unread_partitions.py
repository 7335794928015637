"""Whether a part of what was decoded could not be read at all, as its manifest has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.replay.log.losses_at import leading


def is_unread(manifest: Mapping[str, Any]) -> bool:
    """Return whether a file was unreadable, or records of a partition are lost and none is left."""
    return bool(manifest.get("unreadable") or nothing_left(manifest))


def nothing_left(manifest: Mapping[str, Any]) -> list[str]:
    """Return the partitions of which records are lost and none could be read."""
    return [
        f"{each['topic']}-{each['partition']}"
        for each in leading(manifest)
        if each.get("losses") and each.get("batches") == 0 and not _is_filled(manifest, each)
    ]


def _is_filled(manifest: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Return whether another copy gave records to the line of a partition."""
    given = manifest.get("filled") or ()
    return any(
        (each["topic"], each["partition"], each["line"]) == (row["topic"], row["partition"], "")
        for each in given
    )
