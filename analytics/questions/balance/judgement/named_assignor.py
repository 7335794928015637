"""Whether a group is dealt as Kafka's own assignor of that name deals.

Members of a classic group agree on an assignor by its name alone, and their leader runs it. Clients
that are not Kafka's own have assignors of the same names that deal otherwise, so the name says who
dealt only where the outcome is that of Kafka's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from analytics.assignors.group import Assignment, AssignmentRefusedError, Group
from analytics.assignors.measure import measure, sharing
from analytics.assignors.registry import assign
from analytics.questions.balance.cases.case import CLASSIC, CONSUMER, SHARE, Case
from analytics.questions.balance.judgement.spread import score, spread_of

# What other assignors would make of a group, as rows of `assignment_alternatives`.

FITTING = {
    CLASSIC: {
        "range": "range",
        "roundrobin": "roundrobin",
        "sticky": "sticky",
        "cooperative-sticky": "cooperative-sticky",
    },
    CONSUMER: {"server-range": "range", "server-uniform": "uniform"},
    SHARE: {"share-simple": "simple"},
}
"""Assignors by type of group, each with the name that groups have it recorded under."""


@dataclass(frozen=True)
class Alternative:
    """The columns of `assignment_alternatives` that depend on the group alone."""

    group_id: str
    epoch: int
    assignor: str
    min_partitions: int
    max_partitions: int
    score: float
    moved_partitions: int
    idle_members: int
    is_current: bool | None
    remark: str | None = None


def alternatives(case: Case) -> Iterator[Alternative]:
    """Run every assignor that fits the group on its members and topics, from what they have now.

    Nothing where the assignment, a subscription or a partition count is not known, and for Kafka
    Streams, whose applications cannot choose one. A broker's assignor that refuses the group has no
    row.
    """
    if case.unreadable or case.unknown or case.protocol == STREAM:
        return
    for name, recorded in FITTING.get(case.group_type, {}).items():
        try:
            assignment = settled(name, case.group)
        except AssignmentRefusedError:
            continue
        outcome = measure(case.group, assignment)
        sizes = list(outcome.sizes.values())
        spread = spread_of(sizes)
        wanted = len(case.to_assign())
        covered = len(sharing(assignment))
        is_current, remark = _use_of(case, name, recorded)
        yield Alternative(
            group_id=case.group_id,
            epoch=case.epoch,
            assignor=name,
            min_partitions=spread.smallest,
            max_partitions=spread.largest,
            score=score(sizes, covered, wanted),
            moved_partitions=outcome.moved,
            idle_members=spread.idle,
            is_current=is_current,
            remark=remark,
        )


def _use_of(case: Case, name: str, recorded: str) -> tuple[bool | None, str | None]:
    """Return whether an assignor is the one in use, None where that cannot be told, and why."""
    if case.protocol != recorded:
        return False, None
    if is_dealt_by_name(case, name):
        return True, None
    return None, (f"cannot tell: the group's own {recorded} deals otherwise than Kafka's")


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
