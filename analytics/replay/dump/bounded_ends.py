"""When logs end in which a broker led whose clock was ahead: no later than elections allow.

Such a broker is named in a manifest (`leader_clocks`). What it wrote had been written when the next
broker was elected; where none was, its clock was ahead by as much as is known, or more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from analytics.epoch_times import milliseconds_of
from analytics.replay.dump.written_instants import iso_time, moment

Row = Mapping[str, Any]


def with_bounded_ends(rows: Iterable[Row], clocks: Sequence[Row]) -> Iterator[Row]:
    """Yield partitions of a manifest, without times that a clock said that was ahead.

    Args:
        rows: Partitions of a manifest.
        clocks: Its `leader_clocks`.
    """
    ahead = {
        (led["topic"], led["partition"], led["leader_epoch"]): (led["to_ms"], clock["ahead_ms"])
        for clock in clocks
        if clock["ahead_ms"] > 0
        for led in clock["led"]
    }
    for row in rows:
        ends = [
            _end(most, ahead.get((row["topic"], row["partition"], epoch)))
            for epoch, _, most in row.get("epoch_times") or ()
        ]
        yield _bounded(row, max(ends)) if ends and ahead else row


def _end(most_ms: int, bound: tuple[int | None, int] | None) -> int:
    if bound is None:
        return most_ms
    until, ahead_ms = bound
    return most_ms - ahead_ms if until is None else min(most_ms, until)


def _bounded(row: Row, end_ms: int) -> Row:
    stretches = [
        {
            **each,
            "first_ms": min(each["first_ms"], end_ms),
            "last_ms": min(each["last_ms"], end_ms),
        }
        for each in row.get("stretches") or ()
    ]
    times = {
        name: iso_time(moment(end_ms))
        for name in ("first_timestamp", "last_timestamp")
        if (said := row.get(name)) and milliseconds_of(datetime.fromisoformat(said)) > end_ms
    }
    return {**row, **({"stretches": stretches} if stretches else {}), **times}
