"""A thousand members and ten thousand partitions are shared out, however they start.

How long it takes is measured by `make bench`; here work is counted in lines of Python that run.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from analytics.assignors import ASSIGNORS, assign
from analytics.assignors.group import Group, Member, measure

if TYPE_CHECKING:
    from types import FrameType

GROWTH = 4
ALLOWED = 5  # times the work; a sort takes a little more than 4, two loops in each other 16


def group_of(members: int, topics: int, each: int, *, equal: bool, greedy: bool) -> Group:
    sizes = {f"topic-{n}": each for n in range(topics)}
    everything = frozenset(sizes)
    return Group(
        sizes,
        tuple(
            Member(
                f"member-{n}",
                everything
                if equal or n == 0
                else frozenset({f"topic-{n % topics}", f"topic-{(n + 1) % topics}"}),
                {t: tuple(range(each)) for t in sizes} if greedy and n == 0 else {},
            )
            for n in range(members)
        ),
    )


def lines_run(name: str, group: Group) -> int:
    """How many lines of Python run while the group is assigned."""
    count = 0

    def line(_: FrameType, event: str, __: object) -> object:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        assign(name, group)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "chained"])
@pytest.mark.parametrize("greedy", [True, False], ids=["one owns all", "fresh"])
def test_a_large_group_is_read_whole(name: str, equal: bool, greedy: bool) -> None:
    group = group_of(1_000, 100, 100, equal=equal, greedy=greedy)
    assignment = assign(name, group)
    if name != "cooperative-sticky":
        assert measure(group, assignment).unread == ()


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "chained"])
@pytest.mark.parametrize("greedy", [True, False], ids=["one owns all", "fresh"])
def test_work_grows_with_what_there_is_to_assign(name: str, equal: bool, greedy: bool) -> None:
    small, large = (
        lines_run(name, group_of(25 * times, 10, 25 * times, equal=equal, greedy=greedy))
        for times in (1, GROWTH)
    )
    assert large < ALLOWED * small
