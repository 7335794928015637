"""What is said about a group's balance: verdict, cause, forced or not."""

from __future__ import annotations

import pytest
from hypothesis import given

from analytics.questions.balance.case import Case
from analytics.questions.balance.judge import Judgement, judge
from schemas.evaluation_rules import balance_rules
from tests.support.balance_cases import Members, assigned_groups, case
from tests.support.plain_balance import plain_balance

RULES = balance_rules()


def judged(given: Case) -> Judgement:
    return judge(given, RULES)


def said(given: Case) -> tuple[str, bool | None, str | None]:
    found = judged(given)
    assert found.verdict in RULES.verdicts
    return found.verdict, found.forced, found.cause


def test_equal_sizes_are_even_and_nothing_is_forced() -> None:
    given = case({"a": 4}, {"k": ("a", {"a": [0, 1]}), "l": ("a", {"a": [2, 3]})})
    assert said(given) == ("even", False, None)
    assert judged(given).score == 100


def test_a_remainder_is_even_and_forced() -> None:
    given = case({"a": 3}, {"k": ("a", {"a": [0, 1]}), "l": ("a", {"a": [2]})})
    assert said(given) == (
        "even",
        True,
        "3 partitions cannot split evenly over 2 members; nothing to fix",
    )


def test_more_members_than_partitions_must_be_idle() -> None:
    nobody: tuple[str, dict[str, list[int]]] = ("a", {})
    given = case({"a": 1}, {"k": ("a", {"a": [0]}), "l": nobody, "m": nobody})
    assert said(given) == ("forced", True, "1 partition for 3 members: 2 must be idle")


def test_a_topic_that_grew_unseen_leaves_partitions_that_nobody_reads() -> None:
    given = case({"a": 3}, {"k": ("a", {"a": [0]}), "l": ("a", {})})
    cause = "nobody has a 1-2: maybe the topic grew after partitions were assigned"
    assert said(given) == ("unread", False, cause)
    assert judged(given).unassigned_partitions == 2


def test_holes_in_an_assignment_are_no_growth() -> None:
    given = case({"a": 3, "b": 1}, {"k": ("a b", {"a": [0, 2]})})
    assert said(given) == ("unread", False, "nobody has a 1, b 0")


def test_what_subscriptions_force() -> None:
    given = case(
        {"a": 6, "b": 8},
        {"k": ("a", {"a": range(6)}), "l": ("a b", {"b": range(8)})},
    )
    assert said(given) == ("forced", True, "members want different topics: b (8) by 1 of 2")


def test_what_subscriptions_do_not_force_says_what_would_be_possible() -> None:
    given = case(
        {"a": 6, "b": 8},
        {"k": ("a", {"a": [0, 2, 4]}), "l": ("a b", {"a": [1, 3, 5], "b": range(8)})},
        protocol="roundrobin",
    )
    verdict, forced, cause = said(given)
    assert (verdict, forced) == ("avoidable", False)
    assert cause == (
        "6 to 8 each would be possible: roundrobin deals partitions in turn, whatever a member "
        "has already; members want different topics: b (8) by 1 of 2"
    )


def test_range_keeps_equally_large_topics_together() -> None:
    halves: Members = {
        "k": ("a b", {"a": range(3), "b": range(3)}),
        "l": ("a b", {"a": [3, 4], "b": [3, 4]}),
    }
    given = case({"a": 5, "b": 5}, halves, protocol="range")
    verdict, forced, cause = said(given)
    assert (verdict, forced) == ("forced", True)
    assert cause == (
        "range keeps 2 topics of 5 partitions together (co-partitioning), so that they go to "
        "members as one"
    )
    assert (judged(given).best_min_partitions, judged(given).best_max_partitions) == (5, 5)
    assert said(case({"a": 5, "b": 5}, halves))[:2] == ("avoidable", False)


def test_range_piles_up_the_remainders_of_topics_that_differ() -> None:
    members: Members = {
        "k": ("a b c", {"a": [0], "b": [0, 1], "c": [0, 1, 2]}),
        "l": ("a b c", {"b": [2], "c": [3, 4]}),
    }
    given = case({"a": 1, "b": 3, "c": 5}, members, protocol="range")
    verdict, forced, cause = said(given)
    assert (verdict, forced) == ("avoidable", False)
    assert cause == (
        "4 to 5 each would be possible: range deals each topic by itself, so that the first "
        "members get every remainder"
    )


def test_what_kafkas_assignor_is_like_is_not_said_of_another_of_the_same_name() -> None:
    swapped = {"l": ("a", {"a": [0, 1, 2]}), "k": ("a", {"a": [3]})}
    cause = str(judged(case({"a": 4}, swapped, protocol="range")).cause)
    assert cause == "2 each would be possible"


def test_two_owners_are_an_error_but_in_a_share_group() -> None:
    twice = {"k": ("a", {"a": [0, 1]}), "l": ("a", {"a": [1]})}
    given = case({"a": 2}, twice, group_type="consumer")
    assert judged(given).verdict == "doubled"
    assert judged(given).cause == "1 partition with several owners: a-1 (k, l)"
    share = case({"a": 1}, {"k": ("a", {"a": [0]}), "l": ("a", {"a": [0]})}, group_type="share")
    assert said(share) == ("even", False, None)
    assert judged(share).shared_partitions == judged(given).shared_partitions == 1


def test_an_assignor_that_is_not_kafkas_may_mean_several_owners() -> None:
    twice = {"k": ("a", {"a": [0]}), "l": ("a", {"a": [0]})}
    assert judged(case({"a": 1}, twice, protocol="faust")).cause == (
        "1 partition with several owners: a-0 (k, l) (whether the assignor faust means that is not "
        "known)"
    )


def test_who_has_most_and_fewest_is_named_where_sizes_differ() -> None:
    given = case({"a": 4}, {"k": ("a", {"a": [0]}), "l": ("a", {"a": [1, 2, 3]}), "m": ("a", {})})
    assert (judged(given).member_with_most, judged(given).member_with_fewest) == ("l", "m")
    even = case({"a": 2}, {"k": ("a", {"a": [0]}), "l": ("a", {"a": [1]})})
    assert judged(even).member_with_most is judged(even).member_with_fewest is None


def test_a_share_group_is_measured_by_what_it_may_be_given() -> None:
    given = case(
        {"a": 3},
        {"k": ("a", {"a": [0]}), "l": ("a", {"a": [1]})},
        group_type="share",
        protocol="simple",
        assignable={"a": frozenset({0, 1})},
    )
    assert said(given) == ("even", False, "1 partition may not be given yet: not initialized")
    assert judged(given).partition_count == 2
    assert judged(given).uninitialized_partitions == 1


def test_members_that_have_yet_to_follow_are_no_verdict_on_the_assignor() -> None:
    late = {"k": ("a", {"a": [0]}), "l": ("a", {})}
    given = case({"a": 2}, late, group_type="consumer", unsettled="1 member of 2 is late")
    assert said(given)[0] == "unsettled"
    assert str(said(given)[2]).startswith("1 member of 2 is late; nobody has a 1")


@pytest.mark.parametrize("protocol", ["cooperative-sticky", "stream"])
def test_what_moves_in_two_steps_is_not_judged_between_them(protocol: str) -> None:
    given = case(
        {"a": 2},
        {"k": ("a", {"a": [0]}), "l": ("a", {})},
        protocol=protocol,
        owned_before=frozenset({("a", 0), ("a", 1)}),
    )
    assert said(given)[0] == "unsettled"
    assert judged(given).score is None
    assert said(given)[2] == "between owners until the next generation: a 1"


def test_what_nobody_counted_cannot_be_told() -> None:
    given = case({"a": 1}, {"k": ("a", {"a": [0]})}, unknown=("b",), counted_by="unknown")
    found = judged(given)
    assert (found.verdict, found.forced, found.score) == ("cannot_tell", False, None)
    assert (found.partition_count, found.unassigned_partitions) == (None, None)
    assert found.cause == "nothing in the dump tells how many partitions b has (--topic-ids can)"
    assert (found.min_partitions, found.max_partitions) == (1, 1)


def test_an_assignment_that_cannot_be_read_has_no_figures() -> None:
    found = judged(case({}, {"k": ("", {})}, unreadable="no consumers"))
    assert (found.verdict, found.cause, found.member_count) == ("cannot_tell", "no consumers", 1)
    assert found.min_partitions is found.idle_members is None
    assert found.score is None


@pytest.mark.parametrize(("group_type", "largest"), [("classic", 2), ("consumer", 1), ("share", 1)])
def test_partitions_that_are_gone_count_where_a_broker_still_names_them(
    group_type: str, largest: int
) -> None:
    held = {"k": ("a", {"a": [0]}), "l": ("a", {"gone": [0, 1]})}
    found = judged(case({"a": 1}, held, group_type=group_type))
    assert (found.max_partitions, found.gone_partitions, found.forced) == (largest, 2, False)
    assert "2 partitions assigned to members do not exist" in str(found.cause)


def test_commits_say_who_does_the_work() -> None:
    given = case(
        {"a": 2},
        {"k": ("a", {"a": [0]}), "l": ("a", {"a": [1]})},
        progress={("a", 0): 300, ("a", 1): 100},
    )
    found = judged(given)
    assert found.score == 100
    assert found.progress_score == pytest.approx(50)
    assert found.busiest_member == "k"
    assert found.busiest_share == pytest.approx(0.75)


def test_nothing_is_said_about_work_without_commits() -> None:
    given = case({"a": 1}, {"k": ("a", {"a": [0]})}, progress={("a", 0): -5})
    assert judged(given).progress_score is None
    assert judged(given).busiest_member is None


@given(assigned_groups())
def test_figures_are_those_of_the_plain_model(
    drawn: tuple[dict[str, int], dict[str, frozenset[str]], dict[str, dict[str, list[int]]]],
) -> None:
    topics, wants, assignment = drawn
    members = {m: (" ".join(sorted(wants[m])), held) for m, held in assignment.items()}
    found = judged(case(topics, members))
    plain = plain_balance(topics, wants, assignment)
    assert (found.min_partitions, found.max_partitions) == (plain.smallest, plain.largest)
    assert found.mean_partitions == pytest.approx(plain.mean)
    assert found.stddev_partitions == pytest.approx(plain.deviation)
    assert found.idle_members == plain.idle
    assert found.unassigned_partitions == plain.unassigned
    assert found.shared_partitions == plain.shared
    if not plain.shared:
        assert found.forced == plain.forced
        assert (found.cause is None) == (plain.smallest == plain.largest and not plain.unassigned)
    assert (found.verdict == "doubled") == (plain.shared > 0)


def test_partitions_that_nobody_subscribes_to_any_more_are_not_even() -> None:
    given = case(
        {"a": 2, "b": 2},
        {"k": ("a", {"a": [0], "b": [0]}), "l": ("a", {"a": [1], "b": [1]})},
        group_type="consumer",
    )
    verdict, _, cause = said(given)
    assert verdict == "unsettled"
    assert cause == "members still have b 0-1, which nobody subscribes to"
    assert judged(given).score is None
