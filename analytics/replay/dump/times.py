"""Instants held against what a dump holds: when its records begin, and when they end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from analytics.epoch_times import milliseconds_of
from analytics.errors import CannotTellError
from analytics.replay.dump.dump_end import DumpEnd, dump_end, with_bounded_ends
from analytics.replay.dump.written_instants import (
    END,
    BeforeEnd,
    instant_milliseconds,
    iso_time,
    moment,
)

Row = Mapping[str, Any]
Ends = Mapping[tuple[str, int], int]


def resolved(instant: int | BeforeEnd | str | None, manifest: Row) -> int | str | None:
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
    instant: datetime | str | int | BeforeEnd | None, manifest: Row
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


def first_time(manifest: Row, topics: Collection[str] | None = None) -> datetime | None:
    """Return when the first record of a dump was appended, None where none has a time.

    Args:
        manifest: Of a workspace with decoded tables.
        topics: Of these topics alone; None is all of them.
    """
    rows = (each for each in _in_force(manifest) if topics is None or each["topic"] in topics)
    written = (each["first_timestamp"] for each in rows if each.get("first_timestamp"))
    return min(map(datetime.fromisoformat, written), default=None)


def last_time(manifest: Row) -> datetime | None:
    """Return when the last record of a dump was appended, None where none has a time.

    Times that cannot be right are not believed (`dump_end`).
    """
    return end_of(manifest).time


def end_of(manifest: Row) -> DumpEnd:
    """Judge when a dump ends, and whose clocks made the times of it."""
    clocks = manifest.get("leader_clocks", ())
    end = dump_end(with_bounded_ends(_in_force(manifest), clocks))
    return replace(end, notes=(*end.notes, *(each["what"] for each in clocks)))


def remarks(instant: int | str | None, ends: Ends, manifest: Row) -> Iterator[str]:
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


def last_record_time(partitions: Iterable[Row], clocks: Sequence[Row] = ()) -> str | None:
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


def _has_no_times(manifest: Row) -> bool:
    """Return whether records were read and none has a time."""
    rows = [each for each in _in_force(manifest) if "first_timestamp" in each]
    return any(each.get("records") for each in rows)


def _in_force(manifest: Row) -> Iterator[Row]:
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
