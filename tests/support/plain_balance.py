"""What is to be said of an assignment, by trying every other one: slow, and plain.

An independent model of the balance of small groups: it shares nothing with the product.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Assignment = Mapping[str, Mapping[str, Sequence[int]]]
"""Member to topic to partitions."""


@dataclass(frozen=True)
class PlainBalance:
    """Figures of an assignment."""

    smallest: int
    largest: int
    mean: float
    deviation: float
    idle: int
    unassigned: int
    shared: int
    forced: bool


def plain_balance(
    topics: Mapping[str, int], wants: Mapping[str, frozenset[str]], assignment: Assignment
) -> PlainBalance:
    """Judge an assignment of partitions that exist."""
    owners = Counter(
        (topic, partition)
        for held in assignment.values()
        for topic, partitions in held.items()
        for partition in partitions
    )
    sizes = [sum(map(len, assignment.get(member, {}).values())) for member in wants]
    wanted = [
        (topic, partition)
        for topic, count in topics.items()
        for partition in range(count)
        if any(topic in each for each in wants.values())
    ]
    unassigned = sum(partition not in owners for partition in wanted)
    is_uneven = max(sizes) > min(sizes)
    return PlainBalance(
        smallest=min(sizes),
        largest=max(sizes),
        mean=statistics.fmean(sizes),
        deviation=statistics.pstdev(sizes),
        idle=sizes.count(0),
        unassigned=unassigned,
        shared=sum(count > 1 for count in owners.values()),
        forced=not wanted
        or (is_uneven and not unassigned and _squares(sizes) <= _squares(most_even(topics, wants))),
    )


def most_even(topics: Mapping[str, int], wants: Mapping[str, frozenset[str]]) -> tuple[int, ...]:
    """Return the sizes, ascending, of the most even of all assignments with one owner each."""
    members = list(wants)
    reached = {(0,) * len(members)}
    for topic, count in topics.items():
        takers = [place for place, member in enumerate(members) if topic in wants[member]]
        for _ in range(count if takers else 0):
            reached = {
                (*sizes[:place], sizes[place] + 1, *sizes[place + 1 :])
                for sizes in reached
                for place in takers
            }
    return tuple(sorted(min(reached, key=_squares)))


def fewest_moves(sizes: Sequence[int]) -> int:
    """Return how many single moves it takes until sizes are at most one apart."""
    left = list(sizes)
    moves = 0
    while left and max(left) - min(left) > 1:
        left[left.index(max(left))] -= 1
        left[left.index(min(left))] += 1
        moves += 1
    return moves


def _squares(sizes: Iterable[int]) -> int:
    return sum(size * size for size in sizes)
