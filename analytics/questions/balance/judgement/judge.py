"""One group judged: figures, verdict and cause, as a row of `assignment_balance`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analytics.questions.balance.cases.case import Case
from analytics.questions.balance.judgement.causes import cause
from analytics.questions.balance.judgement.facts import Facts, facts_of
from analytics.questions.balance.judgement.named_assignor import HANDS_OVER_IN_TWO_STEPS
from analytics.questions.balance.judgement.progress import Progress, progress_of
from analytics.questions.balance.judgement.spread import is_even, score
from schemas.evaluation_rules import BalanceRules


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
