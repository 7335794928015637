"""Every case that Kafka's own classes answered, partition by partition.

`oracle-client-assignors.json` is exact throughout. In `oracle-assignors.json` some answers hang on
topic ids that are not stated: there coverage, sizes and sharing are the contract. The cases of
`kafka-answers.json` state the ids, and are exact down to the order in which Java walks its maps.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from analytics.assignors import ASSIGNORS, assign
from analytics.assignors.case import read_case
from analytics.assignors.group import Assignment, Group, measure, sharing
from analytics.assignors.in_member_order import desired_counts, desired_sharing

CASES = Path(__file__).resolve().parents[2] / "cases" / "assignors"

TOPIC_IDS = {"T1": (0, 8426708), "T2": (0, 888598), "T3": (0, 841235)}

Case = dict[str, Any]


def cases_of(file: str) -> list[Case]:
    cases: list[Case] = json.loads((CASES / file).read_text(encoding="utf-8"))["cases"]
    return cases


SERVER = cases_of("oracle-assignors.json")
CLIENT = cases_of("oracle-client-assignors.json")
ANSWERED = cases_of("kafka-answers.json")


def group_of(case: Case) -> Group:
    return read_case(json.dumps(case)).group


def by_id(case: Case) -> str:
    return str(case["id"])


def without_nothing(assignment: Assignment) -> Assignment:
    """Members stay, topics of which a member has no partition go."""
    return {m: {t: ps for t, ps in topics.items() if ps} for m, topics in assignment.items()}


@pytest.mark.parametrize("case", CLIENT, ids=by_id)
def test_client_assignors_answer_as_the_clients_do(case: Case) -> None:
    group = group_of(case)
    assignment = assign(case["assignor"], group)
    outcome = measure(group, assignment)
    assert assignment == case["expect"]["exact"]
    assert sorted(outcome.sizes.values(), reverse=True) == case["expect"]["memberSizesSorted"]
    assert len(sharing(assignment)) == case["expect"]["distinctPartitionsAssigned"]
    assert outcome.unmoved == case["expect"]["kept"]


@pytest.mark.parametrize("case", [c for c in SERVER if "exact" in c["expect"]], ids=by_id)
def test_broker_assignors_answer_as_the_broker_where_it_has_no_choice(case: Case) -> None:
    assert without_nothing(assign(case["assignor"], group_of(case))) == case["expect"]["exact"]


@pytest.mark.parametrize("case", SERVER, ids=by_id)
def test_broker_assignors_cover_as_much_in_the_same_sizes(case: Case) -> None:
    assignment = assign(case["assignor"], group_of(case))
    sizes = [sum(map(len, topics.values())) for topics in assignment.values()]
    assert sorted(sizes, reverse=True) == case["expect"]["memberSizesSorted"]
    assert len(sharing(assignment)) == case["expect"]["distinctPartitionsAssigned"]


@pytest.mark.parametrize(
    ("case", "topic"),
    [(case, topic) for case in SERVER for topic in case["expect"].get("perTopic", ())],
    ids=lambda value: value if isinstance(value, str) else value["id"],
)
def test_share_groups_share_each_topic_as_much(case: Case, topic: str) -> None:
    expected = case["expect"]["perTopic"][topic]
    group = group_of(case)
    assignment = assign("share-simple", group)
    subscribers = [m for m in group.members if topic in m.subscription]
    held = [len(assignment[m.id].get(topic, ())) for m in subscribers]
    assert sorted(held, reverse=True) == sorted(expected["actualSorted"], reverse=True)
    shared = {tp: count for tp, count in sharing(assignment).items() if tp[0] == topic}
    partitions = case["topics"][topic]
    if "assignable" in case:
        partitions = len(case["assignable"].get(topic, ()))
    assert desired_sharing(len(subscribers), partitions) == expected["desiredSharing"]
    # Topics are shared on their own where subscriptions differ, or where there is one topic.
    if not group.subscriptions_are_equal or len(group.topics) == 1:
        desired = desired_counts(len(subscribers), partitions)
        assert sorted(desired, reverse=True) == expected["desiredCountMultiset"]
        assert set(shared.values()) <= {expected["desiredSharing"]}
    assert len(shared) == partitions


@pytest.mark.parametrize("case", ANSWERED, ids=by_id)
def test_javas_order_is_followed_where_the_answer_hangs_on_it(case: Case) -> None:
    assert without_nothing(assign(case["assignor"], group_of(case))) == case["answer"]


def test_every_assignor_is_asked_equal_and_different_subscriptions() -> None:
    asked = Counter(
        (case["assignor"], group_of(case).subscriptions_are_equal) for case in (*CLIENT, *ANSWERED)
    )
    assert set(asked) == set(product(ASSIGNORS, (True, False)))
    assert min(asked.values()) >= 10


@pytest.mark.parametrize("case", SERVER, ids=by_id)
def test_there_are_topic_ids_under_which_each_answer_is_the_brokers(case: Case) -> None:
    """The ids behind `oracle-assignors.json` are lost; one set of ids explains all its answers."""
    group = replace(group_of(case), topic_ids=TOPIC_IDS)
    expected = case["expect"].get("exact", case["expect"]["oneValidResult"])
    assert without_nothing(assign(case["assignor"], group)) == expected


def test_without_those_ids_20_of_29_answers_are_the_brokers() -> None:
    """A figure for `docs/assignors.md`."""
    met: Counter[tuple[str, bool]] = Counter()
    for case in SERVER:
        expected = case["expect"].get("exact", case["expect"]["oneValidResult"])
        answer = without_nothing(assign(case["assignor"], group_of(case)))
        met[case["assignor"], answer == expected] += 1
    assert met == {
        ("server-range", True): 4,
        ("server-uniform", True): 5,
        ("share-simple", True): 7,
        ("share-simple", False): 9,
    }
