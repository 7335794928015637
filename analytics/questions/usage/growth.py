"""The table `usage_growth`: how internal partitions grew since an earlier dump."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from analytics.contracts import table_of
from analytics.questions.usage.cleaner import milliseconds
from analytics.replay.dump.times import end_of
from analytics.replay.dump.times import milliseconds as milliseconds_of

if TYPE_CHECKING:
    import pyarrow as pa

DAY_MS: Final = 86_400_000
_LIMITS: Final = ("topics", "partitions")
"""Options of decoding with which a manifest has some of a copy's logs only."""


@dataclass(frozen=True)
class DiskOutlook:
    """When the internal topics of a broker's copy take all the room they are given.

    Attributes:
        copy: The copy.
        file_bytes: What they take now.
        bytes_per_day: How much more a day.
        full_at_ms: When they take all of it; None where they do not grow.
        is_full: They take it all already.
    """

    copy: str
    file_bytes: int
    bytes_per_day: float
    full_at_ms: int | None
    is_full: bool


def usage_growth(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> pa.Table:
    """Return how every copy that both dumps have grew, the fastest first.

    A partition that the earlier dump lacks is new only where all its records are of later; of the
    others `not_in_both` tells. Where one of the two is of some partitions only (`is_limited`),
    nothing tells when its copies end: of what both have sizes are told, without times and rates.

    Args:
        earlier: The manifest of the earlier decode run.
        now: That of this one.
    """
    before, after = _copies(earlier), _copies(now)
    has_ends = not (is_limited(earlier) or is_limited(now))
    # Else the end of what both have is held against itself.
    common = None if has_ends else before.keys() & after.keys()
    starts, ends = _end(earlier, common), _end(now, common)
    found = []
    for key, row in after.items():
        copy, topic, partition = key
        start, end = starts.get(copy), ends.get(copy)
        if start is None or end is None or end < start or (has_ends and end == start):
            continue
        old = before.get(key)
        if old is None and (not has_ends or not _began_after(row, start)):
            continue
        days = (end - start) / DAY_MS if has_ends else None
        size, was = _size(row), _size(old) if old else 0
        ended = (old["end_offset"] or 0) if old else 0
        written = (row["end_offset"] or 0) - ended
        appended = written if written >= 0 else None
        found.append(
            {
                "topic": topic,
                "partition": partition,
                "copy": copy,
                "from_timestamp": start if has_ends else None,
                "to_timestamp": end if has_ends else None,
                "earlier_bytes": was,
                "file_bytes": size,
                "bytes_per_day": None if days is None else round((size - was) / days),
                "appended_records": appended,
                "appended_per_day": None
                if appended is None or days is None
                else round(appended / days),
            }
        )
    keys = [(name, "ascending") for name in ("topic", "partition", "copy")]
    return table_of("usage_growth", found).sort_by([("bytes_per_day", "descending"), *keys])


def not_in_both(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the partitions of which nobody can tell how they grew, by their names.

    The earlier dump has their broker and lacks them, and they have records from before its end; or
    nothing tells when it ends.
    """
    before, ends = _copies(earlier), _end(earlier)
    has_end = not is_limited(earlier)
    return sorted(
        f"{topic}-{partition}"
        for key, row in _copies(now).items()
        for copy, topic, partition in [key]
        if key not in before and copy in ends and not (has_end and _began_after(row, ends[copy]))
    )


def is_limited(manifest: Mapping[str, Any]) -> bool:
    """Return whether a decode run was told to read some internal partitions only."""
    return any(manifest["options"].get(each) for each in _LIMITS)


def outlooks(growth: pa.Table, room_bytes: int) -> list[DiskOutlook]:
    """Return when each copy takes all the room, at the rate at which it grew.

    Args:
        growth: The table `usage_growth`, with rates.
        room_bytes: What the internal topics may take on a broker.
    """
    rows = growth.to_pylist()
    found = []
    for copy in sorted({row["copy"] for row in rows}):
        here = [row for row in rows if row["copy"] == copy]
        size = sum(row["file_bytes"] for row in here)
        rate = float(sum(row["bytes_per_day"] for row in here))
        end = round(here[0]["to_timestamp"].timestamp() * 1000)
        left = room_bytes - size
        full = end + round(left / rate * DAY_MS) if left > 0 and rate > 0 else None
        found.append(DiskOutlook(copy, size, rate, full, left <= 0))
    return found


def _copies(manifest: Mapping[str, Any]) -> dict[tuple[str, str, int], Mapping[str, Any]]:
    return {
        (each["copy"], each["topic"], each["partition"]): each
        for each in manifest["partitions"]
        if each["copy"] is not None
    }


def _began_after(row: Mapping[str, Any], time_ms: int) -> bool:
    """Return whether a log is whole from its start and has no record from before a time."""
    first = milliseconds(row.get("first_timestamp"))
    is_whole = not row.get("complete_from") and not row.get("log_start_offset")
    return is_whole and (row["end_offset"] == 0 or (first is not None and first > time_ms))


def _size(row: Mapping[str, Any]) -> int:
    return sum(each["size"] for each in row["files"])


def _end(
    manifest: Mapping[str, Any], of: Collection[tuple[str, str, int]] | None = None
) -> dict[str, int]:
    """Return the time of the last record of each copy, of those that are believed.

    Args:
        manifest: Of a decode run.
        of: Of these logs alone; None is all of them.
    """
    believed = end_of(manifest).time
    ends: dict[str, int] = {}
    for key, each in _copies(manifest).items():
        if believed is None or (of is not None and key not in of):
            continue
        times = [stretch["last_ms"] for stretch in each.get("stretches") or ()]
        times.append(milliseconds(each["last_timestamp"]))
        latest = milliseconds_of(believed)
        last = max((at for at in times if at is not None and at <= latest), default=None)
        if last is not None:
            ends[key[0]] = max(last, ends.get(key[0], last))
    return ends
