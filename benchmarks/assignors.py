"""How long each assignor takes for 1,000 members and 10,000 partitions.

Each assignor gets a fresh group, the same group after a tenth of its members was replaced, both
with equal and with different subscriptions, and the worst starts known: everything owned by one
member, a chain of members that overlap in one topic each, and as many topics as partitions.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from analytics.assignors import ASSIGNORS, assign
from analytics.assignors.group import Group, Member
from benchmarks.report import Figure, Report

if TYPE_CHECKING:
    from benchmarks.data import Data

MEMBERS = 1_000
PARTITIONS = 10_000
TOPICS = 100

Current = Mapping[str, Mapping[str, list[int]]]


def topics_of(partitions: int) -> dict[str, int]:
    """Return topics of equal size that hold so many partitions."""
    return {f"topic-{number:03}": partitions // TOPICS for number in range(TOPICS)}


def group_of(
    topics: Mapping[str, int],
    subscriptions: Iterable[Iterable[str]],
    current: Current,
    *,
    first: int = 0,
) -> Group:
    """Return a group whose members are numbered from `first` on."""
    members = []
    for number, subscription in enumerate(subscriptions, start=first):
        name = f"consumer-{number:05}-{number * 2654435761 % 2**32:08x}"
        owned = {topic: tuple(held) for topic, held in current.get(name, {}).items()}
        members.append(Member(name, frozenset(subscription), owned))
    return Group(topics, tuple(members))


def equal(topics: Mapping[str, int], members: int) -> list[list[str]]:
    """Return everybody wanting everything."""
    return [list(topics)] * members


def different(topics: Mapping[str, int], members: int) -> list[list[str]]:
    """Return everybody wanting a few topics, drawn at random."""
    draw = random.Random(11)
    return [draw.sample(list(topics), draw.randint(1, 20)) for _ in range(members)]


def chain(topics: Mapping[str, int], members: int) -> list[list[str]]:
    """Return each member sharing one topic with the one before it, and one with the one after."""
    names = list(topics)
    return [[names[n * TOPICS // members], names[(n + 1) % TOPICS]] for n in range(members)]


def scenarios(members: int, partitions: int, name: str) -> Iterable[tuple[str, Group]]:
    """Return what an assignor is asked, by a name for it."""
    topics = topics_of(partitions)
    for label, subscribe in (("equal", equal), ("different", different)):
        subscriptions = subscribe(topics, members)
        yield f"{label}, fresh", group_of(topics, subscriptions, {})
        before = assign(name, group_of(topics, subscriptions, {}))
        tenth = members // 10
        yield f"{label}, a tenth new", group_of(topics, subscriptions, before, first=tenth)
        greedy = group_of(topics, subscriptions, {}).members[0]
        everything = {greedy.id: {t: list(range(topics[t])) for t in greedy.subscription}}
        yield f"{label}, one owns all", group_of(topics, subscriptions, everything)
    yield "chain, fresh", group_of(topics, chain(topics, members), {})
    single = {f"single-{number:05}": 1 for number in range(partitions)}
    yield "equal, a topic each", group_of(single, equal(single, members), {})


def median(assigning: Callable[[], object], rounds: int) -> float:
    """Return the median time of some runs, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        assigning()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def run(data: Data) -> list[Report]:
    """Measure."""
    members, partitions = (50, 500) if data.rounds == 1 else (MEMBERS, PARTITIONS)
    report = Report(
        f"Assignors: {members:,} members, {partitions:,} partitions; the slowest of the scenarios"
    )
    for name in ASSIGNORS:
        taken = {
            label: median(partial(assign, name, group), data.rounds)
            for label, group in scenarios(members, partitions, name)
        }
        slowest = max(taken, key=lambda label: taken[label])
        report.figures.append(Figure(name, taken[slowest], "s", at_most=10, note=slowest))
        report.details += [
            f"    {name + ': ' + label:<44} wall {each:8.3f} s" for label, each in taken.items()
        ]
    return [report]
