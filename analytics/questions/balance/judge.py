"""One group judged: figures, verdict and cause, as a row of `assignment_balance`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from analytics.assignors import ASSIGNORS, assign
from analytics.assignors.group import (
    Assignment,
    AssignmentRefusedError,
    Group,
    TopicPartition,
    measure,
    sharing,
)
from analytics.questions.balance.case import (
    CLASSIC,
    CONSUMER,
    SHARE,
    STREAMS,
    Case,
    counted,
    listed,
    named,
)
from analytics.questions.balance.facts import (
    RANGE,
    CoPartitions,
    Facts,
    facts_of,
    is_even,
    score,
    spread_of,
)
from schemas.evaluation_rules import BalanceRules

# Whether a group is dealt as Kafka's own assignor of that name deals.
#
# Members of a classic group agree on an assignor by its name alone, and their leader runs it.
# Clients that are not Kafka's own have assignors of the same names that deal otherwise, so the
# name says who dealt only where the outcome is that of Kafka's.

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


# Why an assignment is as it is, in words.

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


# Real work per member: how far the commits of its partitions advanced.


@dataclass(frozen=True)
class Progress:
    """How evenly the work was shared; all None where no commit advanced anything."""

    progress_score: float | None = None
    busiest_share: float | None = None
    busiest_member: str | None = None


def progress_of(case: Case) -> Progress | None:
    """Return how evenly the progress of a group's commits is shared by its members.

    The score is the share of the progress that would not have to change its member for all to have
    the mean, in relation to one member having all. None where nothing advanced, and for share
    groups, whose members have no progress of their own.
    """
    advanced = {each: far for each, far in (case.progress or {}).items() if far > 0}
    if not advanced or case.is_share:
        return None
    done = {member.id: 0 for member in case.group.members}
    for partition, owners in case.owners().items():
        done[owners[0]] += advanced.get(partition, 0)
    total = sum(done.values())
    if not total:
        return None
    mean = total / len(done)
    worst = total - mean
    above = sum(max(0.0, each - mean) for each in done.values())
    busiest = min(done, key=lambda member: (-done[member], member))
    return Progress(100 * (1 - above / worst) if worst else 100.0, done[busiest] / total, busiest)


@dataclass(frozen=True)
class Judgement:
    """The columns of `assignment_balance` that depend on the group alone."""

    group_id: str
    group_type: str
    epoch: int
    member_count: int
    verdict: str
    counted_by: str
    protocol: str | None = None
    topic_count: int | None = None
    partition_count: int | None = None
    min_partitions: int | None = None
    max_partitions: int | None = None
    mean_partitions: float | None = None
    stddev_partitions: float | None = None
    score: float | None = None
    idle_members: int | None = None
    unassigned_partitions: int | None = None
    shared_partitions: int | None = None
    moved_partitions: int | None = None
    forced: bool | None = None
    cause: str | None = None
    best_min_partitions: int | None = None
    best_max_partitions: int | None = None
    gone_partitions: int | None = None
    uninitialized_partitions: int | None = None
    progress_score: float | None = None
    busiest_share: float | None = None
    busiest_member: str | None = None
    member_with_most: str | None = None
    member_with_fewest: str | None = None


CANNOT_TELL, UNSETTLED = "cannot_tell", "unsettled"


def judge(case: Case, rules: BalanceRules) -> Judgement:
    """Judge the balance of a group that has members."""
    if case.unreadable:
        return Judgement(
            group_id=case.group_id,
            group_type=case.group_type,
            epoch=case.epoch,
            member_count=len(case.group.members),
            verdict=CANNOT_TELL,
            counted_by=case.counted_by,
            protocol=case.protocol,
            cause=case.unreadable,
        )
    facts = facts_of(case)
    is_known = not case.unknown
    best = facts.best.sizes if facts.best and facts.best.is_certain else None
    covered = facts.to_assign - len(facts.unassigned)
    progress = vars(progress_of(case) or Progress())
    sizes = case.sizes()
    word = verdict(case, facts, rules)
    is_judged = is_known and word != UNSETTLED
    most, fewest = _extremes(sizes)
    return Judgement(
        group_id=case.group_id,
        group_type=case.group_type,
        epoch=case.epoch,
        member_count=len(case.group.members),
        verdict=word,
        counted_by=case.counted_by,
        protocol=case.protocol,
        topic_count=len(
            {topic for m in case.group.members for topic, held in m.current.items() if held}
        ),
        partition_count=facts.to_assign if is_known else None,
        min_partitions=facts.spread.smallest,
        max_partitions=facts.spread.largest,
        mean_partitions=facts.spread.mean,
        stddev_partitions=facts.spread.deviation,
        score=score(list(sizes.values()), covered, facts.to_assign) if is_judged else None,
        idle_members=facts.spread.idle,
        unassigned_partitions=len(facts.unassigned) if is_known else None,
        shared_partitions=facts.shared,
        moved_partitions=case.moved,
        forced=facts.forced,
        cause=cause(case, facts),
        best_min_partitions=best[0] if best else None,
        best_max_partitions=best[-1] if best else None,
        gone_partitions=case.partitions_of_deleted(),
        uninitialized_partitions=case.uninitialized() if is_known else None,
        member_with_most=most,
        member_with_fewest=fewest,
        **progress,
    )


def _extremes(sizes: Mapping[str, int]) -> tuple[str | None, str | None]:
    """Return who has most and who has fewest; nobody where all have equally many."""
    if len(set(sizes.values())) < 2:
        return None, None
    return (
        min(sizes, key=lambda member: (-sizes[member], member)),
        min(sizes, key=lambda member: (sizes[member], member)),
    )


def verdict(case: Case, facts: Facts, rules: BalanceRules) -> str:
    """Return the judgement in one word, as `rules/balance.json` defines it."""
    evenly = is_even(facts.spread, rules)
    if facts.doubled:
        return "doubled"
    if case.unknown:
        return CANNOT_TELL
    if _is_unsettled(case, facts, evenly=evenly):
        return UNSETTLED
    if facts.unassigned:
        return "unread"
    if case.unwanted():
        return UNSETTLED
    uneven = {True: "forced", False: "avoidable", None: CANNOT_TELL}[facts.forced]
    return "even" if evenly else uneven


def _is_unsettled(case: Case, facts: Facts, *, evenly: bool) -> bool:
    """Whether what is missing or uneven is on its way.

    cooperative-sticky and Kafka Streams leave out what moves, for the next generation.
    """
    if case.unsettled:
        return bool(facts.unassigned) or not evenly
    before = case.owned_before or frozenset()
    are_moving = case.protocol in HANDS_OVER_IN_TWO_STEPS and before.issuperset(facts.unassigned)
    return bool(facts.unassigned) and are_moving
