"""What other assignors would make of a group, as rows of `assignment_alternatives`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analytics.assignors.group import AssignmentRefusedError
from analytics.assignors.measure import measure, sharing
from analytics.questions.balance.cases.case import CLASSIC, CONSUMER, SHARE, Case
from analytics.questions.balance.judgement.named_assignor import STREAM, is_dealt_by_name, settled
from analytics.questions.balance.judgement.spread import score, spread_of

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
