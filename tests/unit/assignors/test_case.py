"""What a case file may say, and what is said about one that says something else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analytics.assignors.case import CaseError, read_case

MEMBER = {"id": "a", "subscription": ["orders"]}
CASE = {"topics": {"orders": 2}, "members": [MEMBER]}


def refusal(content: object) -> str:
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    with pytest.raises(CaseError) as refused:
        read_case(text)
    return str(refused.value)


def with_member(**entries: Any) -> dict[str, Any]:
    return {**CASE, "members": [{**MEMBER, **entries}]}


def test_topics_and_members_are_enough() -> None:
    case = read_case(json.dumps(CASE))
    assert case.assignor is None
    assert case.group.topics == {"orders": 2}
    assert case.group.members[0].subscription == {"orders"}
    assert case.group.members[0].current == {}


def test_everything_an_assignor_looks_at_can_be_said() -> None:
    case = read_case(
        json.dumps(
            with_member(current={"orders": [1]}, instanceId="i", rack="r", generation=4)
            | {
                "assignor": "range",
                "assignable": {"orders": [0]},
                "replicaRacks": {"orders": [["r", None], []]},
                "topicIds": {"orders": "q1Zr5n0SRT2d8bJ2dVx3Aw"},
            }
        )
    )
    group, member = case.group, case.group.members[0]
    assert case.assignor == "range"
    assert (member.current, member.instance_id, member.rack) == ({"orders": (1,)}, "i", "r")
    assert member.generation == 4
    assert group.assignable == {"orders": {0}}
    assert group.replica_racks == {"orders": ({"r"}, frozenset())}
    assert group.topic_ids == {"orders": (-6100570007541758659, -7065670118522718461)}


def test_keys_it_does_not_know_are_left_alone() -> None:
    case = read_case(json.dumps(with_member(note="x") | {"expect": {}, "id": "case-1"}))
    assert len(case.group.members) == 1


def test_null_is_absent() -> None:
    nothing = dict.fromkeys(["current", "instanceId", "rack", "generation"])
    assert read_case(json.dumps(with_member(**nothing))) == read_case(json.dumps(CASE))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ([], "the file: an object is wanted, not a list"),
        ({"cases": []}, "a list of cases: give a file with one of them"),
        ({"members": []}, "the file: 'topics' is missing"),
        ({"topics": {}}, "the file: 'members' is missing"),
        ({"topics": {"t": -1}, "members": []}, "topics['t']: -1 is below 0"),
        ({"topics": {"t": True}, "members": []}, "an integer is wanted, not a boolean"),
        ({"topics": {"t": 1.5}, "members": []}, "an integer is wanted, not a number"),
        ({"topics": {"t": 1 << 40}, "members": []}, "does not fit into 32 bits"),
        ({"topics": {"t": 1 << 30}, "members": []}, "more than 2,000,000 partitions"),
        ({"topics": {}, "members": {}}, "members: a list is wanted, not an object"),
        ({"topics": {}, "members": [None]}, "members[0]: an object is wanted, not null"),
        ({"topics": {}, "members": [{"id": "a"}]}, "members[0]: 'subscription' is missing"),
        (with_member(id=7), "members[0].id: a string is wanted, not a number"),
        (with_member(subscription="orders"), "members[0].subscription: a list is wanted"),
        (with_member(current={"orders": [-1]}), "members[0].current['orders']: -1 is below 0"),
        (with_member(rack=1), "members[0].rack: a string is wanted"),
        ({**CASE, "members": [MEMBER, MEMBER]}, "two of them have the id 'a'"),
        ({**CASE, "assignor": 1}, "the file.assignor: a string is wanted"),
        ({**CASE, "assignable": []}, "assignable: an object is wanted"),
        ({**CASE, "replicaRacks": {"orders": ["r"]}}, "replicaRacks['orders']: a list is wanted"),
        ({**CASE, "topicIds": {"orders": "x"}}, "topicIds['orders']: not a topic id"),
        ({**CASE, "topicIds": {"orders": "é"}}, "topicIds['orders']: not a topic id"),
    ],
)
def test_what_is_wrong_is_named(content: object, said: str) -> None:
    assert said in refusal(content)
