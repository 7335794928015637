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
    return lines_at(_believed(manifest), at)


def _believed(manifest: Row) -> list[Row]:
    """Return the divergences, without a first time where a clock that differed may have said it.

    Records of such a line are cut at the instant one by one, as those of any other.
    """
    named: dict[tuple[str, int], int] = {}
    for clock in manifest.get("leader_clocks", ()):
        for led in clock["led"]:
            key = led["topic"], led["partition"]
            named[key] = min(led["leader_epoch"], named.get(key, led["leader_epoch"]))
    return [
        {**each, "lost_from_timestamp": None} if _may_be_of(each, named) else each
        for each in manifest.get("divergences", ())
    ]


def _may_be_of(line: Row, named: Mapping[tuple[str, int], int]) -> bool:
    first = named.get((line["topic"], line["partition"]))
    last = line.get("lost_leader_epoch")
    return first is not None and (last is None or last >= first)


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
