"""A thousand members and ten thousand partitions take seconds at most, however they start."""

from __future__ import annotations

import time

import pytest

from analytics.assignors.group import Group, Member
from analytics.assignors.measure import measure
from analytics.assignors.registry import ASSIGNORS, assign

MEMBERS, TOPICS, EACH = 1_000, 100, 100
SECONDS = 10  # about a hundred times what it takes


def group_of(*, equal: bool, greedy: bool) -> Group:
    topics = {f"topic-{n}": EACH for n in range(TOPICS)}
    everything = frozenset(topics)
    return Group(
        topics,
        tuple(
            Member(
                f"member-{n}",
                everything
                if equal or n == 0
                else frozenset({f"topic-{n % TOPICS}", f"topic-{(n + 1) % TOPICS}"}),
                {t: tuple(range(EACH)) for t in topics} if greedy and n == 0 else {},
            )
            for n in range(MEMBERS)
        ),
    )


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "chained"])
@pytest.mark.parametrize("greedy", [True, False], ids=["one owns all", "fresh"])
def test_it_takes_seconds(name: str, equal: bool, greedy: bool) -> None:
    group = group_of(equal=equal, greedy=greedy)
    start = time.perf_counter()
    assignment = assign(name, group)
    assert time.perf_counter() - start < SECONDS
    if name != "cooperative-sticky":
        assert measure(group, assignment).unread == ()
