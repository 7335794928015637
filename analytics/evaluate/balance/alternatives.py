"""What other assignors would make of a group, as rows of `assignment_alternatives`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from analytics.assignors.group import Assignment, AssignmentRefusedError, Group
from analytics.assignors.measure import measure, sharing
from analytics.assignors.registry import assign
from analytics.evaluate.balance.case import CLASSIC, CONSUMER, SHARE, Case
from analytics.evaluate.balance.spread import score, spread_of

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
    is_current: bool


def alternatives(case: Case) -> Iterator[Alternative]:
    """Run every assignor that fits the group on its members and topics, from what they have now.

    Nothing where the assignment, a subscription or a partition count is not known, and for streams
    groups. A broker's assignor that refuses the group has no row.
    """
    if case.unreadable or case.unknown:
        return
    for name, recorded in FITTING.get(case.group_type, {}).items():
        try:
            assignment = _settled(name, case.group)
        except AssignmentRefusedError:
            continue
        outcome = measure(case.group, assignment)
        sizes = list(outcome.sizes.values())
        spread = spread_of(sizes)
        wanted = len(case.to_assign())
        covered = len(sharing(assignment))
        yield Alternative(
            group_id=case.group_id,
            epoch=case.epoch,
            assignor=name,
            min_partitions=spread.smallest,
            max_partitions=spread.largest,
            score=score(sizes, covered, wanted),
            moved_partitions=outcome.moved,
            idle_members=spread.idle,
            is_current=case.protocol == recorded,
        )


def _settled(name: str, group: Group) -> Assignment:
    """Return what the members end up with.

    `cooperative-sticky` gives a partition that moves to nobody at first, and to its new owner in
    the rebalance that follows.
    """
    assignment = assign(name, group)
    if name != "cooperative-sticky":
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
