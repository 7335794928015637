"""Where Kafka's own classes give an answer nobody wants, and ours differs (`docs/assignors.md`)."""

from __future__ import annotations

import pytest

from analytics.assignors import ASSIGNORS, assign
from analytics.assignors.group import AssignmentRefusedError, Group, Member

BROKERS = ["server-range", "server-uniform", "share-simple"]


def member(
    name: str, *topics: str, owns: dict[str, tuple[int, ...]] | None = None, generation: int = 0
) -> Member:
    return Member(name, frozenset(topics), owns or {}, generation=generation)


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_a_partition_that_is_no_more_is_not_handed_on(name: str) -> None:
    """Kafka lets its owner keep it where subscriptions differ, and counts it."""
    group = Group(
        {"orders": 4, "parcels": 2},
        (member("a", "orders", owns={"orders": (0, 7)}), member("b", "orders", "parcels")),
    )
    assert assign(name, group) == {
        "a": {"orders": [0, 1, 2]},
        "b": {"orders": [3], "parcels": [0, 1]},
    }


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_a_member_that_wants_nothing_gets_nothing(name: str) -> None:
    """Kafka takes subscriptions for equal when it meets the empty one first."""
    group = Group({"orders": 2}, (member("a"), member("b", "orders")))
    assert assign(name, group) == {"a": {}, "b": {"orders": [0, 1]}}


def test_an_older_owner_gets_nothing_back_that_it_does_not_want() -> None:
    group = Group(
        {"orders": 6, "parcels": 1},
        (
            member("a", "orders", owns={"orders": (0, 1, 2, 3, 4, 5)}, generation=2),
            member("b", "parcels", owns={"orders": (0, 1, 2)}, generation=1),
        ),
    )
    assert assign("sticky", group) == {"a": {"orders": [0, 1, 2, 3, 4, 5]}, "b": {"parcels": [0]}}


def test_of_two_owners_of_a_partition_uniform_lets_the_first_keep_it() -> None:
    """Kafka refuses; its own records never say so, those of a share group do."""
    owns = {"orders": (0, 1)}
    group = Group(
        {"orders": 4}, (member("a", "orders", owns=owns), member("b", "orders", owns=owns))
    )
    assert assign("server-uniform", group) == {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}}


def test_a_topic_nobody_wants_any_more_is_let_go_by_share_groups() -> None:
    """Kafka lets members keep it where subscriptions differ."""
    group = Group(
        {"orders": 1, "parcels": 1},
        (member("a", "orders", owns={"parcels": (0,)}), member("b")),
    )
    assert assign("share-simple", group) == {"a": {"orders": [0]}, "b": {}}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_a_group_without_members_has_an_empty_assignment(name: str) -> None:
    """Kafka never asks; two of its classes would fail."""
    assert assign(name, Group({"orders": 3}, ())) == {}


@pytest.mark.parametrize("name", BROKERS)
def test_an_unknown_topic_is_refused_by_the_brokers_assignors(name: str) -> None:
    group = Group({"orders": 1}, (member("a", "orders"), member("b", "orders", "gone")))
    with pytest.raises(AssignmentRefusedError, match="'b' is subscribed to topic 'gone'"):
        assign(name, group)


@pytest.mark.parametrize("name", [name for name in ASSIGNORS if name not in BROKERS])
def test_an_unknown_topic_is_passed_over_by_the_clients_assignors(name: str) -> None:
    group = Group({"orders": 1}, (member("a", "orders", "gone"),))
    assert assign(name, group) == {"a": {"orders": [0]}}
