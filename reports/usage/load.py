"""Load of coordinators and growth, as they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from reports.columns import printable
from reports.quantities import count, duration, size_of
from reports.row_formats import Section

_LOAD_HEADS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "leader": "LEADER",
    "groups": "#GROUPS",
    "records": "RECORDS",
    "file_bytes": "BYTES",
    "times": "TIMES-MEAN",
    "load": "LOADS-IN",
    "misplaced_groups": "MISPLACED",
}
_GROWTH_HEADS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "copy": "COPY",
    "earlier_bytes": "BYTES-THEN",
    "file_bytes": "BYTES-NOW",
    "bytes_per_day": "BYTES/DAY",
    "appended_records": "APPENDED",
    "appended_per_day": "APPENDED/DAY",
}
_MOST_NAMED: Final = 5


def load_section(rows: pa.Table) -> Section:
    """Return the table `coordinator_load`."""
    times = [None if each is None else f"{each:.1f}" for each in rows["times_mean"].to_pylist()]
    loads = [duration(each) for each in rows["load_ms"].to_pylist()]
    wrong = [
        bool(hot or misplaced)
        for hot, misplaced in zip(
            rows["is_hot"].to_pylist(), rows["misplaced_groups"].to_pylist(), strict=True
        )
    ]
    shown = (
        rows.append_column("times", pa.array(times, pa.string()))
        .append_column("load", pa.array(loads, pa.string()))
        .append_column("is_problem", pa.array(wrong, pa.bool_()))
    )
    also = [each for each in rows.column_names if each not in _LOAD_HEADS]
    return Section(
        shown,
        _LOAD_HEADS,
        also,
        name="coordinator_load",
        key="coordinator_load",
        title="Load of coordinators",
        problem="is_problem",
        spare=("records",),
    )


def brokers_text(rows: pa.Table) -> str:
    """Return what each broker leads, in words; empty where no leader is known."""
    sums: dict[int, list[int]] = {}
    for row in rows.to_pylist():
        if row["leader"] is not None:
            total = sums.setdefault(row["leader"], [0, 0, 0])
            total[0] += 1
            total[1] += row["groups"]
            total[2] += row["file_bytes"] or 0
    lines = [
        f"broker {leader} leads {count(total[0], 'partition')} with {size_of(total[2])}, "
        f"{count(total[1], 'group')}"
        for leader, total in sorted(sums.items(), key=lambda item: -item[1][2])
    ]
    return "\n".join(lines)


def placement_text(found: Any) -> str:  # noqa: ANN401 - of another layer
    """Return which groups lie where no broker looks for them; empty where none does.

    Args:
        found: Has `partitions`, `misplaced` (name, partition, home) and `fits`.
    """
    lines = []
    if found.misplaced:
        named = ", ".join(
            # A line's end in a name would begin a sentence of its own.
            f"{printable(name)} in {here}, belongs in {home}"
            for name, here, home in found.misplaced[:_MOST_NAMED]
        )
        more = len(found.misplaced) - _MOST_NAMED
        named += f" and {more:,} more" if more > 0 else ""
        lines.append(
            f"{count(len(found.misplaced), 'group')} of __consumer_offsets lie where no broker "
            f"looks for them, with {found.partitions} partitions: {named}"
        )
    if found.fits is not None:
        said = "nothing says" if found.partitions is None else f"{found.partitions} do not fit"
        lines.append(
            f"Hashes of all groups fit {found.fits} partitions of __consumer_offsets; {said}."
        )
    return "\n".join(lines)


def growth_section(rows: pa.Table) -> Section:
    """Return the table `usage_growth`."""
    also = [each for each in rows.column_names if each not in _GROWTH_HEADS]
    return Section(
        rows, _GROWTH_HEADS, also, name="usage_growth", key="usage_growth", title="Growth"
    )


def outlook_text(found: Iterable[Any], room_bytes: int) -> str:
    """Return when internal topics take all the room they have, broker by broker.

    Args:
        found: Has `copy`, `file_bytes`, `bytes_per_day`, `full_at_ms`, `is_full`.
        room_bytes: The room.
    """
    lines = []
    for each in found:
        grown = f"{each.copy}: {size_of(each.file_bytes)}, {_signed(each.bytes_per_day)} a day"
        if each.is_full:
            lines.append(f"{grown}: more than {size_of(room_bytes)} already")
        elif each.full_at_ms is None:
            lines.append(f"{grown}: never {size_of(room_bytes)} at this rate")
        else:
            lines.append(f"{grown}: {size_of(room_bytes)} at {_time(each.full_at_ms)}")
    return "\n".join(lines)


def _signed(rate: float) -> str:
    return ("-" if rate < 0 else "+") + size_of(round(abs(rate)))


def _time(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return "a time beyond the calendar"
