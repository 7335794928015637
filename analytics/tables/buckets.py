"""Buckets: whole groups, or whole share partitions, of partitions of an internal topic.

What follows the records of a group needs all of that group and of no other. So the records are laid
into buckets that fit into memory: small partitions share one, a large one is divided by its keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from analytics.decode.run.workload import SMALL_RECORDS

MOST_ROWS: Final = SMALL_RECORDS
"""So many records are looked at in one go."""


@dataclass(frozen=True)
class Bucket:
    """Some of the records of an internal topic.

    Attributes:
        topic: The internal topic.
        partitions: The partitions that are meant, or with `is_rest` those that are not.
        is_rest: All partitions but those named.
        part: Which part of their keys.
        parts: Into how many parts their keys are divided, by a hash.
    """

    topic: str
    partitions: tuple[int, ...] = ()
    is_rest: bool = False
    part: int = 0
    parts: int = 1

    @property
    def is_first(self) -> bool:
        """Whether it also has what is not of a key: each such record is in one bucket."""
        return self.part == 0


def buckets(topic: str, records: Mapping[int, int], most: int = MOST_ROWS) -> list[Bucket]:
    """Lay the records of a topic into buckets; partitions that are not named are in the first.

    Args:
        topic: The internal topic.
        records: How many each partition has.
        most: So many a bucket shall have at most.
    """
    large = [number for number, count in records.items() if count > most]
    found = [
        Bucket(topic, (number,), part=part, parts=-(-records[number] // most))
        for number in sorted(large)
        for part in range(-(-records[number] // most))
    ]
    small = set(records) - set(large)
    _, *others = packed({number: records[number] for number in small}, most)
    found += [Bucket(topic, tuple(each)) for each in others]
    rest = tuple(sorted({number for each in others for number in each} | set(large)))
    return [Bucket(topic, rest, is_rest=True), *found]


def packed(counts: Mapping[int, int], at_once: int) -> Iterator[list[int]]:
    """Yield partitions that are read together: no more records than that, or one partition."""
    lot: list[int] = []
    held = 0
    for partition in sorted(counts):
        if lot and held + counts[partition] > at_once:
            yield lot
            lot, held = [], 0
        lot.append(partition)
        held += counts[partition]
    yield lot
