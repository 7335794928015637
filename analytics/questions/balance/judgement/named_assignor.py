"""Whether a group is dealt as Kafka's own assignor of that name deals.

Members of a classic group agree on an assignor by its name alone, and their leader runs it. Clients
that are not Kafka's own have assignors of the same names that deal otherwise, so the name says who
dealt only where the outcome is that of Kafka's.
"""

from __future__ import annotations

from dataclasses import replace

from analytics.assignors.group import Assignment, AssignmentRefusedError, Group
from analytics.assignors.registry import assign
from analytics.questions.balance.cases.case import CLASSIC, Case

COOPERATIVE = "cooperative-sticky"
STREAM = "stream"
"""The protocol of Kafka Streams in a classic group: no application can choose another."""

HANDS_OVER_IN_TWO_STEPS = frozenset({COOPERATIVE, STREAM})
"""Protocols that leave out what moves: it gets its new owner in the generation that follows."""


def settled(name: str, group: Group) -> Assignment:
    """Return what the members end up with.

    `cooperative-sticky` gives a partition that moves to nobody at first, and to its new owner in
    the rebalance that follows.

    Raises:
        AssignmentRefusedError: The assignor gives nothing.
    """
    assignment = assign(name, group)
    if name != COOPERATIVE:
        return assignment
    members = tuple(
        replace(
            member,
            current={t: tuple(held) for t, held in assignment.get(member.id, {}).items()},
            generation=member.generation + 1,
        )
        for member in group.members
    )
    return assign(name, replace(group, members=members))


def is_dealt_by_name(case: Case, name: str) -> bool:
    """Return whether Kafka's assignor of that name gives the members what they have.

    Partitions that came after the assignment was made are left aside. Brokers run assignors of
    their own, whose names need no proof.
    """
    if case.group_type != CLASSIC:
        return True
    group = case.group
    has = {member.id: group.owned(member) for member in group.members}
    counts = dict.fromkeys(group.topics, 0)
    for held in has.values():
        for topic, partitions in held.items():
            counts[topic] = max(counts[topic], partitions[-1] + 1)
    try:
        given = settled(name, replace(group, topics=counts))
    except AssignmentRefusedError:
        return False
    if name in HANDS_OVER_IN_TWO_STEPS:
        return all(_is_part(held, given.get(member, {})) for member, held in has.items())
    return all(held == _without_empty(given.get(member, {})) for member, held in has.items())


def _is_part(held: dict[str, list[int]], whole: dict[str, list[int]]) -> bool:
    return all(set(numbers) <= set(whole.get(topic, ())) for topic, numbers in held.items())


def _without_empty(partitions: dict[str, list[int]]) -> dict[str, list[int]]:
    return {topic: sorted(numbers) for topic, numbers in partitions.items() if numbers}
