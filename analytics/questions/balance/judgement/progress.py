"""Real work per member: how far the commits of its partitions advanced."""

from __future__ import annotations

from dataclasses import dataclass

from analytics.questions.balance.cases.case import Case


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
