"""Instants held against what a dump holds: when its records begin, and when they end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from analytics.dump.batches.stretches import FORWARD_MS, Stretch
from analytics.epoch_times import LAST_MS, milliseconds_of
from analytics.errors import CannotTellError
from analytics.replay.dump.choices import (
    END,
    BeforeEnd,
    instant_milliseconds,
    iso_time,
    moment,
)
from schemas import CLUSTER_METADATA

if TYPE_CHECKING:
    from schemas.manifest import LeaderClockEntry, Manifest, PartitionEntry, StretchEntry

# When a dump ends: the time of its last record, of which a clock may have been wrong.
#
# A time is not believed
#
# - where time jumps ahead by more than a day and goes back in later records of the same partition;
# - where a few batches lie more than a day beyond the end of the metadata log, to which controllers
# write all the time, and beyond all other records.
#
# Where a few batches lie a week beyond everything else and nothing contradicts them, a clock may be
# wrong, or the cluster was quiet: the dump cannot tell.
#
# A broker whose clock was ahead while it led is named in a manifest (`leader_clocks`). What it
# wrote had been written when the next broker was elected; where none was, its clock was ahead by
# as much as is known, or more.

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


def dump_end(partitions: Iterable[PartitionEntry]) -> DumpEnd:
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


def with_bounded_ends(
    rows: Iterable[PartitionEntry], clocks: Sequence[LeaderClockEntry]
) -> Iterator[PartitionEntry]:
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


def _stretches(row: PartitionEntry) -> Iterator[Stretch]:
    """Yield the stretches of a partition: one from its first time to its last, where not told."""
    if row.get("stretches"):
        told = (Stretch(**each) for each in row["stretches"])
        yield from (each for each in told if each.last_ms <= LAST_MS)
    elif last := row.get("last_timestamp"):
        first = row.get("first_timestamp") or last
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


def _bounded(row: PartitionEntry, end_ms: int) -> PartitionEntry:
    bounded = row.copy()
    if row.get("stretches"):
        bounded["stretches"] = [_bounded_stretch(each, end_ms) for each in row["stretches"]]
    if _is_after(row.get("first_timestamp"), end_ms):
        bounded["first_timestamp"] = _iso(end_ms)
    if _is_after(row.get("last_timestamp"), end_ms):
        bounded["last_timestamp"] = _iso(end_ms)
    return bounded


def _bounded_stretch(stretch: StretchEntry, end_ms: int) -> StretchEntry:
    first, last = min(stretch["first_ms"], end_ms), min(stretch["last_ms"], end_ms)
    return {**stretch, "first_ms": first, "last_ms": last}


def _is_after(time: str | None, end_ms: int) -> bool:
    return time is not None and _ms(time) > end_ms


Ends = Mapping[tuple[str, int], int]


def resolved(instant: int | BeforeEnd | str | None, manifest: Manifest) -> int | str | None:
    """Return an instant with what is relative to the end of the dump in epoch milliseconds.

    Args:
        instant: As the option has it; all but `BeforeEnd` is returned as it is.
        manifest: Of a workspace with decoded tables.

    Raises:
        CannotTellError: No record of the dump has a time.
    """
    if not isinstance(instant, BeforeEnd):
        return instant
    last = last_time(manifest)
    if last is None:
        raise CannotTellError("no record of this dump has a time: nothing is before its end")
    return milliseconds(last) - instant.milliseconds


def resolved_time(
    instant: datetime | str | int | BeforeEnd | None, manifest: Manifest
) -> datetime | None:
    """Return an instant as a time; None where it is the end of the dump.

    Args:
        instant: A datetime, ISO 8601, epoch milliseconds, or a time before the end of the dump.
        manifest: Of a workspace with decoded tables.

    Raises:
        CannotTellError: It is a time before the end, and no record of the dump has one.
        ValueError: A text is no ISO 8601.
    """
    if isinstance(instant, datetime) or (isinstance(instant, str) and instant != END):
        instant = instant_milliseconds(instant)
    time_ms = resolved(instant, manifest)
    return moment(time_ms) if isinstance(time_ms, int) else None


def first_time(manifest: Manifest, topics: Collection[str] | None = None) -> datetime | None:
    """Return when the first record of a dump was appended, None where none has a time.

    Args:
        manifest: Of a workspace with decoded tables.
        topics: Of these topics alone; None is all of them.
    """
    rows = (each for each in _in_force(manifest) if topics is None or each["topic"] in topics)
    written = (first for each in rows if (first := each.get("first_timestamp")))
    return min(map(datetime.fromisoformat, written), default=None)


def last_time(manifest: Manifest) -> datetime | None:
    """Return when the last record of a dump was appended, None where none has a time.

    Times that cannot be right are not believed (`dump_end`).
    """
    return end_of(manifest).time


def end_of(manifest: Manifest) -> DumpEnd:
    """Judge when a dump ends, and whose clocks made the times of it."""
    clocks = manifest.get("leader_clocks", ())
    end = dump_end(with_bounded_ends(_in_force(manifest), clocks))
    return replace(end, notes=(*end.notes, *(each["what"] for each in clocks)))


def remarks(instant: int | str | None, ends: Ends, manifest: Manifest) -> Iterator[str]:
    """Yield what has to be said of an instant that reaches past the end of the dump.

    Args:
        instant: Epoch milliseconds, or the end.
        ends: End offsets by topic and partition.
        manifest: Of a workspace with decoded tables.

    Raises:
        CannotTellError: Nothing is known of the instant: it is before the first record, or in a
            partition that the dump has no copy of; or no record has a time.
    """
    first, last = first_time(manifest), last_time(manifest)
    if isinstance(instant, int) and first is None and _has_no_times(manifest):
        raise CannotTellError(
            "no record of this dump has a time: what was there at "
            f"{iso_time(moment(instant))} is not known; --as-of-offset names an instant by offsets"
        )
    if isinstance(instant, int) and first is not None and last is not None:
        asked = moment(instant)
        if asked < first:
            raise CannotTellError(
                f"the records of this dump begin at {iso_time(first)}: nothing is known of "
                f"{iso_time(asked)}"
            )
        if asked > last:
            yield f"this dump ends at {iso_time(last)}: {iso_time(asked)} is answered as of then"
    held = {(each["topic"], each["partition"]): each for each in _in_force(manifest)}
    for (topic, partition), end in ends.items():
        place = f"{topic}-{partition}"
        if (topic, partition) not in held:
            raise CannotTellError(f"this dump has no copy of {place}, which --as-of-offset names")
        last_offset = held[topic, partition]["end_offset"]
        if last_offset is not None and end > last_offset:
            yield f"{place} ends at offset {last_offset}: {end} is answered as of its end"


def last_record_time(
    partitions: Iterable[PartitionEntry], clocks: Sequence[LeaderClockEntry] = ()
) -> str | None:
    """Return when the last record of a dump was appended, as the manifest has it.

    Args:
        partitions: The section of a manifest; lines that did not survive do not count.
        clocks: Its `leader_clocks`.
    """
    rows = (each for each in partitions if each.get("is_leading", True))
    end = dump_end(with_bounded_ends(rows, clocks)).time
    return None if end is None else iso_time(end)


def milliseconds(when: datetime) -> int:
    """Return a time as epoch milliseconds."""
    return milliseconds_of(when)


def _has_no_times(manifest: Manifest) -> bool:
    """Return whether records were read and none has a time."""
    rows = [each for each in _in_force(manifest) if "first_timestamp" in each]
    return any(each.get("records") for each in rows)


def _in_force(manifest: Manifest) -> Iterator[PartitionEntry]:
    """Yield the partitions of the lines that are decoded."""
    preferred = manifest["options"].get("prefer_copy")
    partitions = manifest.get("partitions", ())
    chosen = {
        (each["topic"], each["partition"]) for each in partitions if each.get("copy") == preferred
    }
    for each in partitions:
        is_chosen = preferred is not None and (each["topic"], each["partition"]) in chosen
        if each.get("copy") == preferred if is_chosen else each.get("is_leading", True):
            yield each
