"""When a dump ends: the time of its last record, of which a clock may have been wrong.

A time is not believed

- where time jumps ahead by more than a day and goes back in later records of the same partition;
- where a few batches lie more than a day beyond the end of the metadata log, to which controllers
  write all the time, and beyond all other records.

Where a few batches lie a week beyond everything else and nothing contradicts them, a clock may be
wrong, or the cluster was quiet: the dump cannot tell.

A broker whose clock was ahead while it led is named in a manifest (`leader_clocks`). What it wrote
had been written when the next broker was elected; where none was, its clock was ahead by as much as
is known, or more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from analytics.dump.batches.stretches import FORWARD_MS, Stretch
from analytics.epoch_times import LAST_MS, milliseconds_of
from analytics.replay.dump.written_instants import iso_time, moment
from schemas import CLUSTER_METADATA

Row = Mapping[str, Any]

QUIET_MS: Final = 7 * FORWARD_MS
"""A cluster that is quiet for less is nothing strange."""
_FEW: Final = 20
_SHARE: Final = 10
"""A few batches: at most so many, and at most one in so many of all."""


@dataclass(frozen=True)
class DumpEnd:
    """When a dump ends.

    Attributes:
        time: The latest time that is believed; None where no record has a time.
        notes: What is not believed, a sentence each.
        doubt: Why the dump may end later, None where it does not.
    """

    time: datetime | None
    notes: tuple[str, ...] = ()
    doubt: str | None = None


@dataclass(frozen=True)
class _Piece:
    """A stretch of a partition."""

    topic: str
    partition: int
    stretch: Stretch

    @property
    def place(self) -> str:
        own = self.stretch
        last = own.end_offset - 1
        offsets = (
            f"offset {last}"
            if last == own.first_offset
            else (f"offsets {own.first_offset} to {last}")
        )
        return f"{self.topic}-{self.partition}, {offsets}"


def dump_end(partitions: Iterable[Row]) -> DumpEnd:
    """Judge when a dump ends.

    Args:
        partitions: Rows of a manifest: of each partition the line that is in force.
    """
    pieces: list[_Piece] = []
    notes: list[str] = []
    for row in partitions:
        own = [_Piece(row["topic"], row["partition"], each) for each in _stretches(row)]
        for number, each in enumerate(own):
            back = _taken_back_to(own, number)
            if back is None:
                pieces.append(each)
            else:
                notes.append(
                    f"{each.place}: the time {_iso(each.stretch.last_ms)} is not believed, "
                    f"records behind it are of {_iso(back)}"
                )
    beyond, before = _last_island(pieces)
    doubt = None
    if beyond and before:
        end = max(each.stretch.last_ms for each in before)
        logs = [each.stretch.last_ms for each in before if each.topic == CLUSTER_METADATA]
        where = "; ".join(each.place for each in beyond)
        said = _iso(max(each.stretch.last_ms for each in beyond))
        is_in_log = any(each.topic == CLUSTER_METADATA for each in beyond)
        if logs and not is_in_log and end - max(logs) <= FORWARD_MS:
            pieces = before
            notes.append(
                f"{where}: the time {said} is not believed, everything else ends at {_iso(end)}, "
                f"and so does the metadata log"
            )
        elif min(each.stretch.first_ms for each in beyond) - end > QUIET_MS:
            pieces = before
            doubt = (
                f"whether this dump ends at {_iso(end)} or at {said}, which only {where} says: a "
                f"clock may have been wrong, or nothing else was written in between"
            )
    last = max((each.stretch.last_ms for each in pieces), default=None)
    return DumpEnd(None if last is None else moment(last), tuple(notes), doubt)


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


def _stretches(row: Row) -> Iterator[Stretch]:
    """Yield the stretches of a partition: one from its first time to its last, where not told."""
    if row.get("stretches"):
        told = (Stretch(**each) for each in row["stretches"])
        yield from (each for each in told if each.last_ms <= LAST_MS)
    elif row.get("last_timestamp"):
        first, last = row.get("first_timestamp") or row["last_timestamp"], row["last_timestamp"]
        yield Stretch(
            row.get("first_offset") or 0,
            row.get("end_offset") or 0,
            _ms(first),
            _ms(last),
            row.get("batches") or row.get("records") or 1,
        )


def _taken_back_to(own: list[_Piece], number: int) -> int | None:
    """Return the earlier time that later records have where time had jumped ahead, else None."""
    stretch = own[number].stretch
    before = [each.stretch.last_ms for each in own[:number]]
    if not before or stretch.first_ms - min(before) <= FORWARD_MS:
        return None
    # A time before all that the log began with is itself none: it takes nothing back.
    began = own[0].stretch.first_ms
    later = [each.stretch.first_ms for each in own[number + 1 :]]
    back = [each for each in later if began <= each < stretch.first_ms - FORWARD_MS]
    return min(back, default=None)


def _last_island(pieces: list[_Piece]) -> tuple[list[_Piece], list[_Piece]]:
    """Return what lies more than a day beyond all else, if it is little, and all else."""
    ordered = sorted(pieces, key=lambda each: each.stretch.first_ms)
    reached = None
    begins = 0
    for number, each in enumerate(ordered):
        if reached is not None and each.stretch.first_ms - reached > FORWARD_MS:
            begins = number
        reached = max(reached or 0, each.stretch.last_ms)
    beyond, before = ordered[begins:], ordered[:begins]
    batches = sum(each.stretch.batches for each in beyond)
    total = batches + sum(each.stretch.batches for each in before)
    is_little = batches <= _FEW and batches * _SHARE <= total
    return (beyond, before) if is_little else ([], ordered)


def _ms(text: str) -> int:
    return milliseconds_of(datetime.fromisoformat(text))


def _iso(time_ms: int) -> str:
    return iso_time(moment(time_ms))


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
