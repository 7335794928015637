"""What other assignors would make of a group."""

from __future__ import annotations

from hypothesis import given

from analytics.evaluate.balance.alternatives import Alternative, alternatives
from analytics.evaluate.balance.case import Case
from tests.support.balance_cases import Members, assigned_groups, case
from tests.support.plain_balance import most_even

UNEVEN: Members = {
    "k": ("a", {"a": [0, 2, 4]}),
    "l": ("a b", {"a": [1, 3, 5], "b": range(8)}),
}


def tried(given: Case) -> dict[str, Alternative]:
    return {each.assignor: each for each in alternatives(given)}


def test_a_classic_group_is_tried_with_the_assignors_of_clients() -> None:
    found = tried(case({"a": 6, "b": 8}, UNEVEN, protocol="roundrobin"))
    figures = {
        name: (each.min_partitions, each.max_partitions, each.moved_partitions)
        for name, each in found.items()
    }
    assert figures == {
        "range": (3, 11, 2),
        "roundrobin": (3, 11, 0),
        "sticky": (6, 8, 3),
        "cooperative-sticky": (6, 8, 3),
    }
    assert [name for name, each in found.items() if each.is_current] == ["roundrobin"]


def test_groups_of_the_new_protocol_are_tried_with_the_assignors_of_brokers() -> None:
    consumer = case({"a": 6, "b": 8}, UNEVEN, group_type="consumer", protocol="uniform")
    assert list(tried(consumer)) == ["server-range", "server-uniform"]
    assert tried(consumer)["server-uniform"].is_current
    share = case({"a": 1}, {"k": ("a", {}), "l": ("a", {})}, group_type="share", protocol="simple")
    assert tried(share)["share-simple"].score == 100


def test_tasks_of_streams_are_assigned_by_rules_that_are_not_known_here() -> None:
    assert tried(case({"0": 2}, {"k": ("0", {"0": [0, 1]})}, group_type="streams")) == {}


def test_nothing_is_tried_on_what_is_not_known() -> None:
    assert tried(case({"a": 1}, {"k": ("a", {})}, unknown=("b",))) == {}
    assert tried(case({"a": 1}, {"k": ("a", {})}, unreadable="no consumers")) == {}


@given(assigned_groups())
def test_sticky_assignors_agree_on_sizes_and_none_beats_the_best(
    drawn: tuple[dict[str, int], dict[str, frozenset[str]], dict[str, dict[str, list[int]]]],
) -> None:
    topics, wants, assignment = drawn
    members = {m: (" ".join(sorted(wants[m])), held) for m, held in assignment.items()}
    found = tried(case(topics, members))
    best = most_even(topics, wants)
    for each in found.values():
        assert each.max_partitions >= best[-1]
        assert each.min_partitions <= best[0]
        assert 0 <= each.score <= 100
    if len(set(wants.values())) == 1:
        # With different subscriptions the second of the two rounds may even out more.
        sticky, cooperative = found["sticky"], found["cooperative-sticky"]
        assert (sticky.min_partitions, sticky.max_partitions) == (
            cooperative.min_partitions,
            cooperative.max_partitions,
        )
