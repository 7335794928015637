"""Which lines of diverged partitions are followed at an instant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from analytics.replay.dump.times import last_time
from analytics.replay.dump.written_instants import iso_time
from analytics.replay.log.lines import FollowedLine, lines_at

Row = Mapping[str, Any]


def followed_lines(manifest: Row, at: datetime | None) -> tuple[FollowedLine, ...]:
    """Return the lines that are followed instead of the surviving ones.

    A line that was chosen with `--prefer-copy` is followed at every instant.

    Args:
        manifest: Of a workspace with decoded tables.
        at: The instant; None is the end of the dump.
    """
    last = last_time(manifest)
    if manifest["options"].get("prefer_copy") or (at and last and at >= last):
        return ()
    return lines_at(manifest.get("divergences", ()), at)


def lines_metadata(lines: Iterable[FollowedLine]) -> list[dict[str, Any]]:
    """Return the lines as manifests and answers have them."""
    return [
        {
            "topic": each.topic,
            "partition": each.partition,
            "copy": each.copy,
            "diverges_at": each.diverges_at,
            "surviving_copy": each.surviving_copy,
            "elected_at": None if each.elected_at is None else iso_time(each.elected_at),
            "leader": each.at_that_time,
        }
        for each in lines
    ]
