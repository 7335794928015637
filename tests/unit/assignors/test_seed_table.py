"""The eight steps by which KIP-932 shows its SimpleAssignor, each from the step before.

The shipped class (4.1 and later) gives other partitions in three of them: it serves members in
the order of a map by member id, aims at fixed sizes, and never looks at the hashes the KIP names.
The sizes, and how many members share a partition, are the KIP's in every step.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from analytics.assignors import assign
from analytics.assignors.group import Assignment, Group, Member, sharing


@dataclass(frozen=True)
class Step:
    what: str
    topics: dict[str, int]
    kip: Assignment
    shipped: Assignment | None = None  # where it differs

    @property
    def subscriptions(self) -> dict[str, frozenset[str]]:
        return {member: frozenset({"T1", *topics}) for member, topics in self.kip.items()}


def owning(*partitions: int) -> dict[str, list[int]]:
    return {"T1": list(partitions)}


STEPS = [
    Step("M1 subscribes to T1", {"T1": 1}, {"M1": owning(0)}),
    Step("M2 joins", {"T1": 1}, {"M1": owning(0), "M2": owning(0)}),
    Step(
        "T1 gets three more partitions",
        {"T1": 4},
        {"M1": owning(0, 2), "M2": owning(1, 3)},
        {"M1": owning(1, 2), "M2": owning(0, 3)},
    ),
    Step(
        "M3 joins",
        {"T1": 4},
        {"M1": owning(0), "M2": owning(1, 3), "M3": owning(2)},
        {"M1": owning(0, 2), "M2": owning(1), "M3": owning(3)},
    ),
    Step("M4 joins", {"T1": 4}, {f"M{n + 1}": owning(n) for n in range(4)}),
    Step(
        "M5 to M8 join",
        {"T1": 4},
        {f"M{n + 1}": owning(n % 4) for n in range(8)},
        {f"M{n + 1}": owning(n if n < 4 else (n + 2) % 4) for n in range(8)},
    ),
    Step(
        "M1 subscribes to T2 too",
        {"T1": 4, "T2": 2},
        {
            "M1": {"T1": [0], "T2": [0, 1]},
            **{f"M{n + 1}": owning(n % 4) for n in range(1, 8)},
        },
    ),
    Step("all but M2 leave", {"T1": 4, "T2": 2}, {"M2": owning(0, 1, 2, 3)}),
]


def assigned(place: int) -> Assignment:
    """Run the assignor on a step, members owning what the KIP gave them in the step before."""
    step = STEPS[place]
    before = STEPS[place - 1].kip if place else {}
    members = tuple(
        Member(
            member,
            subscription,
            {topic: tuple(held) for topic, held in before.get(member, {}).items()},
        )
        for member, subscription in step.subscriptions.items()
    )
    # Which partition a member gives up first hangs on the topic's id; this one is of those that
    # explain the answers of the shipped class.
    return assign("share-simple", Group(step.topics, members, topic_ids={"T1": (0, 38084)}))


@pytest.mark.parametrize("place", range(len(STEPS)), ids=[step.what for step in STEPS])
def test_sizes_and_sharing_are_the_kips(place: int) -> None:
    ours, kip = assigned(place), STEPS[place].kip
    assert sorted(sizes(ours)) == sorted(sizes(kip))
    assert sharing(ours) == sharing(kip)


@pytest.mark.parametrize("place", range(len(STEPS)), ids=[step.what for step in STEPS])
def test_partitions_are_those_of_the_shipped_class(place: int) -> None:
    assert assigned(place) == (STEPS[place].shipped or STEPS[place].kip)


def sizes(assignment: Assignment) -> list[int]:
    return [sum(map(len, topics.values())) for topics in assignment.values()]
