"""The most even sizes that subscriptions allow, whatever the assignor.

Giving partitions to members as evenly as possible is an optimal semi-matching (Harvey, Ladner,
Lovász and Tamir, 2003): it is reached when no chain of hand-overs leads from a member to one that
has at least two less, and then no other assignment has a lower maximum or a higher minimum. Members
that want the same are as one here, as what they have can be dealt among them at will.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from analytics.assignors.group import Group

MOST_WORK = 2_000_000
"""Steps along chains after which the search ends without knowing that it found the best."""


@dataclass(frozen=True)
class BestSpread:
    """Sizes of all members, ascending, and whether nothing more even exists for certain."""

    sizes: tuple[int, ...]
    is_certain: bool


def best_spread(group: Group) -> BestSpread:
    """Return the most even sizes for one owner a partition."""
    dealing = _Dealing(group)
    dealing.give_out()
    is_certain = dealing.even_out()
    return BestSpread(tuple(sorted(dealing.sizes())), is_certain)


class _Dealing:
    """Kinds of members (all that want the same), and how much of each topic a kind has."""

    def __init__(self, group: Group) -> None:
        self.counts = {topic: group.topics[topic] for topic in group.subscribed_topics()}
        numbers: dict[frozenset[str], int] = {}
        for member in group.members:
            wanted = frozenset(self.counts).intersection(member.subscription)
            numbers[wanted] = numbers.get(wanted, 0) + 1
        self.kinds = sorted(numbers, key=sorted)
        self.members = [numbers[kind] for kind in self.kinds]
        self.loads = [0] * len(self.kinds)
        self.given: list[dict[str, int]] = [{} for _ in self.kinds]
        self.wanting: dict[str, list[int]] = {topic: [] for topic in self.counts}
        for number, kind in enumerate(self.kinds):
            for topic in kind:
                self.wanting[topic].append(number)
        self.work = 0

    def sizes(self) -> Iterable[int]:
        for load, members in zip(self.loads, self.members, strict=True):
            quota, extras = divmod(load, members)
            yield from [quota + 1] * extras
            yield from [quota] * (members - extras)

    def give_out(self) -> None:
        """Give each partition to the kind whose smallest member is smallest, rare topics first."""
        for topic in sorted(self.counts, key=lambda t: (len(self.wanting[t]), t)):
            ladder = [
                (self.loads[kind] // self.members[kind], kind) for kind in self.wanting[topic]
            ]
            heapq.heapify(ladder)
            for _ in range(self.counts[topic]):
                kind = ladder[0][1]
                self.loads[kind] += 1
                self.given[kind][topic] = self.given[kind].get(topic, 0) + 1
                heapq.heapreplace(ladder, (self._smallest(kind), kind))

    def even_out(self) -> bool:
        """Hand partitions along chains while that helps; return whether the end was reached."""
        while True:
            for giver in sorted(range(len(self.kinds)), key=lambda kind: -self._largest(kind)):
                if self.work > MOST_WORK:
                    return False
                if chain := self._chain_from(giver):
                    self._hand_along(giver, chain)
                    break
            else:
                return True

    def _smallest(self, kind: int) -> int:
        return self.loads[kind] // self.members[kind]

    def _largest(self, kind: int) -> int:
        return -(-self.loads[kind] // self.members[kind])

    def _chain_from(self, giver: int) -> list[tuple[str, int]]:
        """Return topics and takers that lead to a member with at least two less; empty if none."""
        low_enough = self._largest(giver) - 2
        before: dict[int, tuple[int, str]] = {}
        seen_topics: set[str] = set()
        queue = deque([giver])
        while queue:
            kind = queue.popleft()
            if kind != giver and self._smallest(kind) <= low_enough:
                return self._unwound(giver, kind, before)
            for topic, count in self.given[kind].items():
                if not count or topic in seen_topics:
                    continue
                seen_topics.add(topic)
                self.work += len(self.wanting[topic])
                for taker in self.wanting[topic]:
                    if taker != giver and taker not in before:
                        before[taker] = kind, topic
                        queue.append(taker)
        return []

    @staticmethod
    def _unwound(
        giver: int, last: int, before: dict[int, tuple[int, str]]
    ) -> list[tuple[str, int]]:
        chain = []
        kind = last
        while kind != giver:
            previous, topic = before[kind]
            chain.append((topic, kind))
            kind = previous
        return chain[::-1]

    def _hand_along(self, giver: int, chain: list[tuple[str, int]]) -> None:
        kind = giver
        for topic, taker in chain:
            self.given[kind][topic] -= 1
            self.given[taker][topic] = self.given[taker].get(topic, 0) + 1
            kind = taker
        self.loads[giver] -= 1
        self.loads[kind] += 1
