"""Groups for tests of balance, written down shortly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st

from analytics.assignors.group import Group, Member
from analytics.questions.balance.case import Case

Held = Mapping[str, Iterable[int]]
Members = Mapping[str, tuple[str, Held]]


def case(
    topics: Mapping[str, int],
    members: Members,
    *,
    assignable: Mapping[str, frozenset[int]] | None = None,
    **about: Any,
) -> Case:
    """Return a case; members are name to ("topics wanted", what they have)."""
    group = Group(
        topics,
        tuple(
            Member(name, frozenset(wanted.split()), {t: tuple(held) for t, held in has.items()})
            for name, (wanted, has) in members.items()
        ),
        assignable,
    )
    given = {"group_id": "g", "group_type": "classic", "epoch": 7, "protocol": "sticky"}
    return Case(**{**given, "group": group, **about})


@st.composite
def small_groups(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, frozenset[str]]]:
    """Draw topics with partition counts, and members with the topics they want."""
    topics = draw(st.dictionaries(st.sampled_from("abc"), st.integers(0, 4), min_size=1))
    some = st.frozensets(st.sampled_from(sorted(topics)), min_size=1)
    return topics, draw(st.dictionaries(st.sampled_from("klmn"), some, min_size=1))


@st.composite
def assigned_groups(
    draw: st.DrawFn,
) -> tuple[dict[str, int], dict[str, frozenset[str]], dict[str, dict[str, list[int]]]]:
    """Draw a small group and an assignment: some partitions are nobody's, few have two owners."""
    topics, wants = draw(small_groups())
    assignment: dict[str, dict[str, list[int]]] = {member: {} for member in wants}
    for topic, count in topics.items():
        takers = sorted(member for member, wanted in wants.items() if topic in wanted)
        for partition in range(count if takers else 0):
            how_many = draw(st.sampled_from([1] * 12 + [0, 2]))
            owners = draw(st.permutations(takers))[:how_many]
            for owner in owners:
                assignment[owner].setdefault(topic, []).append(partition)
    return topics, wants, assignment
