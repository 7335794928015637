"""Kafka's cleaner, and what is live, as slow and as simple as can be: one record after the other.

Written from ``LogCleaner.Cleaner`` (shouldRetainRecord, CleanedTransactionMetadata), and not from
what the tests hold against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A record, or a marker where ``marker`` is COMMIT or ABORT.

    ``producer`` is -1 outside of transactions; ``value`` None is a tombstone; ``horizon`` is the
    delete horizon of the record's batch.
    """

    offset: int
    key: str = ""
    value: int | None = 0
    size: int = 10
    producer: int = -1
    marker: str | None = None
    horizon: int | None = None


def fate(log: Sequence[Entry], record: Entry) -> str:
    """Return how the record's transaction ended: counts, aborted or open."""
    if record.producer < 0:
        return "counts"
    for each in log:
        if each.marker and each.producer == record.producer and each.offset > record.offset:
            return "aborted" if each.marker == "ABORT" else "counts"
    return "open"


def fates(log: Sequence[Entry]) -> dict[int, str]:
    """Return what becomes of each record, by its offset."""
    found = {}
    for record in log:
        if record.marker:
            continue
        found[record.offset] = fate(log, record)
        if found[record.offset] != "counts":
            continue
        later = [
            each
            for each in log
            if not each.marker
            and each.key == record.key
            and each.offset > record.offset
            and fate(log, each) == "counts"
        ]
        if not later:
            found[record.offset] = "live" if record.value is not None else "standing"
        elif later[-1].value is None and record.value is not None:
            found[record.offset] = "tombstoned"
        else:
            found[record.offset] = "superseded"
    return found


def unchanged(log: Sequence[Entry]) -> int:
    """Return how many values are what the record of the key before them was."""
    last: dict[str, int | None] = {}
    count = 0
    for record in log:
        if record.marker or fate(log, record) != "counts":
            continue
        count += record.value is not None and last.get(record.key) == record.value
        last[record.key] = record.value
    return count


def cleaned(log: Sequence[Entry], bound: int, now: int) -> list[int]:
    """Return the offsets of data records below a bound that a pass of the cleaner leaves there."""
    below = [each for each in log if each.offset < bound and not each.marker]
    latest: dict[str, int] = {}
    for each in below:
        if fate(log, each) != "aborted":
            latest[each.key] = each.offset
    return [
        each.offset
        for each in below
        if fate(log, each) != "aborted"
        and latest[each.key] == each.offset
        and (each.value is not None or each.horizon is None or now < each.horizon)
    ]
