"""Why an assignment is as it is, in words."""

from __future__ import annotations

from collections.abc import Iterator

from analytics.assignors.group import TopicPartition
from analytics.assignors.registry import ASSIGNORS
from analytics.questions.balance.cases.case import CLASSIC, STREAMS, Case
from analytics.questions.balance.judgement.co_partitions import RANGE, CoPartitions
from analytics.questions.balance.judgement.facts import Facts
from analytics.questions.balance.judgement.named_assignor import (
    HANDS_OVER_IN_TWO_STEPS,
    is_dealt_by_name,
)
from analytics.questions.balance.judgement.partition_names import counted, listed, named

_WAY_OF = {
    RANGE: "range deals each topic by itself, so that the first members get every remainder",
    "roundrobin": "roundrobin deals partitions in turn, whatever a member has already",
    "simple": "share groups whose members want different topics are dealt topic by topic",
    "uniform": "uniform evens out the subscribers of each topic by itself",
}


def cause(case: Case, facts: Facts) -> str | None:
    """Return what has to be said about a case, most important first; None if nothing."""
    return "; ".join(_causes(case, facts)) or None


def _causes(case: Case, facts: Facts) -> Iterator[str]:
    if facts.doubled:
        yield _doubled(case, facts)
    if case.unknown:
        yield _unknown(case)
    if case.unsettled:
        yield case.unsettled
    if facts.unassigned:
        yield from _unread(case, facts.unassigned)
    if unwanted := case.unwanted():
        yield f"members still have {named(unwanted)}, which nobody subscribes to"
    if gone := case.partitions_of_deleted():
        yield f"{counted(gone, _unit(case))} assigned to members do not exist"
    if waiting := case.uninitialized():
        yield f"{counted(waiting, 'partition')} may not be given yet: not initialized"
    if facts.spread.largest > facts.spread.smallest and facts.best is not None:
        yield from _uneven(case, facts)


def _unknown(case: Case) -> str:
    if case.group_type == STREAMS:
        parts = listed(case.unknown)
        return f"how many tasks subtopology {parts} has is not known: a topic it reads is not there"
    topics = listed(case.unknown)
    return f"nothing in the dump tells how many partitions {topics} has (--topic-ids can)"


def _doubled(case: Case, facts: Facts) -> str:
    owners = case.owners()
    words = [
        f"{topic}-{number} ({', '.join(owners[topic, number])})" for topic, number in facts.doubled
    ]
    told = f"{counted(len(facts.doubled), _unit(case))} with several owners: {listed(words)}"
    if case.group_type == CLASSIC and case.protocol not in ASSIGNORS:
        # faust, for one, gives standby copies like that.
        told += f" (whether the assignor {case.protocol} means that is not known)"
    return told


def _unread(case: Case, unassigned: list[TopicPartition]) -> Iterator[str]:
    before = case.owned_before or frozenset()
    moving = [each for each in unassigned if each in before]
    if case.protocol in HANDS_OVER_IN_TWO_STEPS and moving:
        yield f"between owners until the next generation: {named(moving)}"
        unassigned = [each for each in unassigned if each not in before]
    grown = set() if case.unsettled else _grown(case, unassigned)
    if late := [each for each in unassigned if each[0] in grown]:
        yield f"nobody has {named(late)}: maybe the topic grew after partitions were assigned"
    if rest := [each for each in unassigned if each[0] not in grown]:
        yield f"nobody has {named(rest)}"


def _grown(case: Case, unassigned: list[TopicPartition]) -> set[str]:
    """Return the topics of which all is assigned up to some partition, and nothing behind it."""
    assigned: dict[str, set[int]] = {}
    for topic, number in case.owners():
        assigned.setdefault(topic, set()).add(number)
    first = dict(sorted(unassigned, reverse=True))
    return {topic for topic, held in assigned.items() if max(held) < first.get(topic, 0)}


def _uneven(case: Case, facts: Facts) -> Iterator[str]:
    if facts.forced:
        yield from _why_forced(case, facts)
    elif facts.forced is False and not (facts.unassigned or facts.doubled):
        yield _why_avoidable(case, facts)


def _why_forced(case: Case, facts: Facts) -> Iterator[str]:
    members = len(case.group.members)
    if facts.by_units:
        topics = CoPartitions(case.group).widest
        yield (
            f"range keeps {counted(len(topics), 'topic')} of {case.group.topics[topics[0]]} "
            "partitions together (co-partitioning), so that they go to members as one"
        )
    elif not case.group.subscriptions_are_equal:
        yield f"members want different topics: {_partly_wanted(case)}"
    elif facts.to_assign < members and not case.is_share:
        idle = members - facts.to_assign
        yield (
            f"{counted(facts.to_assign, _unit(case))} for {counted(members, 'member')}: "
            f"{idle} must be idle"
        )
    else:
        yield (
            f"{counted(facts.to_assign, _unit(case))} cannot split evenly over "
            f"{counted(members, 'member')}; nothing to fix"
        )


def _why_avoidable(case: Case, facts: Facts) -> str:
    assert facts.best is not None
    sizes = facts.best.sizes
    possible = f"{sizes[0]} to {sizes[-1]}" if sizes[0] != sizes[-1] else str(sizes[0])
    words = f"{possible} each would be possible"
    way = _WAY_OF.get(case.protocol or "")
    if way and is_dealt_by_name(case, case.protocol or ""):
        words += f": {way}"
    if not case.group.subscriptions_are_equal:
        words += f"; members want different topics: {_partly_wanted(case)}"
    return words


def _partly_wanted(case: Case) -> str:
    members = case.group.members
    wanting = {
        topic: sum(topic in member.subscription for member in members)
        for topic in sorted(case.group.subscribed_topics())
    }
    return listed(
        [
            f"{topic} ({case.group.topics[topic]}) by {number} of {len(members)}"
            for topic, number in wanting.items()
            if number < len(members)
        ]
    )


def _unit(case: Case) -> str:
    return "task" if case.group_type == STREAMS else "partition"
