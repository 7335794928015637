"""Which lines of diverged partitions are followed at an instant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Final

import pyarrow.compute as pc

from analytics.replay.dump.times import last_time
from analytics.replay.dump.written_instants import iso_time
from analytics.replay.log.lines import FollowedLine, lines_at
from analytics.workspace import BEFORE_SWAPS

# Which logs count where a cleaner left swap files: those, or the segments they take the place of.
#
# A broker that starts again loads what a cleaner left in a swap file: so state at the end of the
# dump, faults of loading and use of logs are of that. The segments that it takes the place of lie
# beside it, and hold what happened: so history is of them, and all that is asked of an earlier
# instant, when the broker had not cleaned them.

_READ: Final = "read_before_swaps"
"""In a manifest as `of_history` returns it, and never in a file: of which partitions it is."""


def of_history(manifest: Row) -> Row:
    """Return a manifest that says of partitions what they were before swap files.

    Args:
        manifest: Of a workspace with decoded tables.
    """
    earlier = manifest.get(BEFORE_SWAPS)
    if earlier is None or _READ in manifest:
        return manifest
    swapped = sorted({(each["topic"], each["partition"]) for each in earlier["partitions"]})
    rows = [e for e in manifest["partitions"] if (e["topic"], e["partition"]) not in swapped]
    return {
        **manifest,
        "partitions": [*rows, *earlier["partitions"]],
        "record_types": [*manifest["record_types"], *earlier["record_types"]],
        _READ: swapped,
    }


def at_instant(manifest: Row, *, is_end: bool) -> Row:
    """Return a manifest as it is of state at an instant.

    Args:
        manifest: Of a workspace with decoded tables.
        is_end: The instant is the end of the dump: a broker loads the swap files.
    """
    return manifest if is_end else of_history(manifest)


def read_before_swaps(manifest: Row) -> Sequence[tuple[str, int]]:
    """Return the partitions whose records a manifest tells of as they were before swap files."""
    found: Sequence[tuple[str, int]] = manifest.get(_READ, ())
    return found


def is_before_swaps(partitions: Sequence[tuple[str, int]]) -> pc.Expression:
    """Return whether a record is of one of some partitions; at least one."""
    return reduce(
        or_,
        [(pc.field("topic") == topic) & (pc.field("partition") == n) for topic, n in partitions],
    )


def is_elsewhere(partitions: Sequence[tuple[str, int]]) -> pc.Expression:
    """Return whether a record is of none of them, as is one without a partition."""
    is_nowhere = pc.field("partition").is_null() | pc.field("topic").is_null()
    return is_nowhere | ~is_before_swaps(partitions)


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
