"""What other assignors would make of a group."""

from __future__ import annotations

from hypothesis import given

from analytics.questions.balance.case import Case
from analytics.questions.balance.judge import Alternative, alternatives
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


def test_a_name_is_kafkas_assignor_only_where_the_outcome_is() -> None:
    """Sarama's roundrobin deals in another order."""
    sarama = case(
        {"a": 2, "b": 2},
        {"k": ("a b", {"a": [0, 1]}), "l": ("a b", {"b": [0, 1]})},
        protocol="roundrobin",
    )
    found = tried(sarama)
    assert found["roundrobin"].is_current is None
    assert "otherwise than Kafka's" in str(found["roundrobin"].remark)
    assert {name: each.is_current for name, each in found.items() if name != "roundrobin"} == {
        "range": False,
        "sticky": False,
        "cooperative-sticky": False,
    }
    java = case(
        {"a": 2, "b": 2},
        {"k": ("a b", {"a": [0], "b": [0]}), "l": ("a b", {"a": [1], "b": [1]})},
        protocol="roundrobin",
    )
    assert (tried(java)["roundrobin"].is_current, tried(java)["roundrobin"].remark) == (True, None)


def test_partitions_that_came_later_do_not_hide_which_assignor_it_was() -> None:
    grown = case({"a": 5}, {"k": ("a", {"a": [0]}), "l": ("a", {"a": [1]})}, protocol="range")
    assert tried(grown)["range"].is_current


def test_cooperative_sticky_is_known_while_it_hands_over() -> None:
    moving = case({"a": 2}, {"k": ("a", {"a": [0]}), "l": ("a", {})}, protocol="cooperative-sticky")
    assert tried(moving)["cooperative-sticky"].is_current


def test_an_application_of_kafka_streams_cannot_choose() -> None:
    assert tried(case({"a": 2}, {"k": ("a", {"a": [0, 1]})}, protocol="stream")) == {}


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
