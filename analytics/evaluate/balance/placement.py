"""How groups lie on the partitions of `__consumer_offsets` (``Utils.abs(hashCode)`` mod N)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from analytics.replay.log.key_homes import home_of
from schemas.evaluation_rules import RebalanceRules


@dataclass(frozen=True)
class Placement:
    """Groups over the partitions of the topic.

    Attributes:
        partitions: How many partitions the topic has; None: not known.
        groups: How many groups there are.
        used: Partitions that hold a group.
        most: Groups in the fullest partition, and
        fullest: which that is; None without groups.
        overloaded: Partitions with too many groups, ascending.
        misplaced: Groups that lie elsewhere than their hash says, with where they are and where
            they should be. No broker finds these.
    """

    partitions: int | None
    groups: int
    used: int
    most: int
    fullest: int | None
    overloaded: tuple[int, ...]
    misplaced: tuple[tuple[str, int, int], ...]


def placement(
    groups: Iterable[tuple[str, int]],
    partitions: int | None,
    rules: RebalanceRules,
    present: int | None = None,
) -> Placement:
    """Verify where groups are, and find partitions that hold too many of them.

    Args:
        groups: Ids with the partition their records are in.
        partitions: How many partitions the topic has; None where that is not known.
        rules: From when on a partition is overloaded.
        present: How many of the partitions the dump has; None: all. The others are not empty.
    """
    places = sorted(groups)
    loads = Counter(partition for _, partition in places)
    fullest = min(loads, key=lambda each: (-loads[each], each), default=None)
    mean = len(places) / (present or partitions) if partitions else 0.0
    limit = max(mean * rules.skew_times, mean + rules.skew_groups_above)
    misplaced = (
        (group, partition, home)
        for group, partition in places
        if partitions and (home := home_of(group, partitions)) != partition
    )
    return Placement(
        partitions=partitions,
        groups=len(places),
        used=len(loads),
        most=loads[fullest] if fullest is not None else 0,
        fullest=fullest,
        overloaded=tuple(sorted(each for each, n in loads.items() if partitions and n > limit)),
        misplaced=tuple(misplaced),
    )
