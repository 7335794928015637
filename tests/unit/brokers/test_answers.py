"""A broker's answers become a state; what it cannot say yet is asked again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.answers import (
    NotYetError,
    announce_topics,
    changes,
    end_offsets,
    is_settled,
    state_of,
    without_unrecorded,
)
from tests.brokers.releases import Release
from tests.brokers.taken_dump import texts_by_segment
from tests.support.broker_state import CutGroup, CutOffset
from tests.support.cuts import read_state

TOPIC = "A" * 22
CLASSIC = {"groupId": "copy", "protocolType": "", "groupState": "Empty", "groupType": "classic"}
SHARE = {"groupId": "robots", "protocolType": "share", "groupState": "Empty", "groupType": "share"}
EMPTY_STATE = {"errorMessage": None, "stateEpoch": 0, "startOffset": -1, "stateBatches": []}
KNOWN_STATE = {"errorMessage": None, "stateEpoch": 4, "startOffset": 7, "stateBatches": []}
STREAMS = {"groupId": "exact-copier", "groupState": "Empty", "groupType": "Streams"}


class FakeBroker:
    """Answers from fields that a test may change. Partition 0 of the topic is shared, 1 is not."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.probe_error = 69
        self.described_error = self.group_error = 0
        self.listed = [CLASSIC, SHARE]
        self.state = "Empty"
        self.leader_epoch = 3

    def __call__(
        self,
        api: str,
        request: Mapping[str, Any],
        version: int | None = None,  # noqa: ARG002 - part of how brokers are asked
    ) -> dict[str, Any]:
        self.asked.append((api, request))
        answer: dict[str, Any] = getattr(self, api)(request)
        return answer

    def ListGroups(self, _: Any) -> Any:  # noqa: N802 - the name of the api
        return {"errorCode": 0, "groups": self.listed}

    def DescribeGroups(self, request: Any) -> Any:  # noqa: N802
        there = {"groupState": self.state, "protocolType": "", "protocolData": "", "members": []}
        known = {each["groupId"] for each in self.listed}
        return {
            "groups": [
                {
                    "groupId": name,
                    "errorCode": self.group_error if name in known else self.probe_error,
                    **there,
                }
                for name in request["groups"]
            ]
        }

    def ShareGroupDescribe(self, request: Any) -> Any:  # noqa: N802
        (name,) = request["groupIds"]
        told = {"groupEpoch": 2, "assignmentEpoch": 2, "assignorName": "simple", "members": []}
        return {"groups": [{"groupId": name, "errorCode": 0, "groupState": "Empty", **told}]}

    def StreamsGroupDescribe(self, request: Any) -> Any:  # noqa: N802
        (name,) = request["groupIds"]
        return {"groups": [{"groupId": name, "errorCode": self.described_error, "members": []}]}

    def DescribeShareGroupOffsets(self, request: Any) -> Any:  # noqa: N802
        told = {"partitionIndex": 0, "startOffset": 7, "leaderEpoch": 3, "lag": 1, "errorCode": 0}
        topics = [{"topicName": "t", "topicId": TOPIC, "partitions": [told]}]
        name = request["groups"][0]["groupId"]
        return {"groups": [{"groupId": name, "errorCode": 0, "topics": topics}]}

    def OffsetFetch(self, request: Any) -> Any:  # noqa: N802
        told = {"partitionIndex": 0, "committedLeaderEpoch": -1, "metadata": "m"}
        stable = {**told, "committedOffset": 5, "errorCode": 0}
        pending = {**told, "committedOffset": -1, "errorCode": 88}
        topics = [{"name": "t", "partitions": [pending if request["requireStable"] else stable]}]
        return {
            "groups": [
                {"groupId": each["groupId"], "errorCode": 0, "topics": topics}
                for each in request["groups"]
                if each["groupId"] == "copy"
            ]
        }

    def Metadata(self, _: Any) -> Any:  # noqa: N802
        partitions = [
            {"partitionIndex": number, "leaderEpoch": self.leader_epoch, "errorCode": 0}
            for number in (1, 0)
        ]
        topic = {"name": "t", "topicId": TOPIC, "isInternal": False, "errorCode": 0}
        return {"topics": [{**topic, "partitions": partitions}]}

    def ReadShareGroupState(self, request: Any) -> Any:  # noqa: N802
        results = [self._state(each) for each in request["topics"][0]["partitions"]]
        return {"results": [{"topicId": TOPIC, "partitions": results}]}

    def _state(self, asked: Mapping[str, int]) -> dict[str, Any]:
        number = asked["partition"]
        if number == 1:
            return {"partition": 1, "errorCode": 42, **EMPTY_STATE}
        if asked["leaderEpoch"] < 3:
            return {"partition": 0, "errorCode": 74, **EMPTY_STATE}
        return {"partition": 0, "errorCode": 0, **KNOWN_STATE}

    def IncrementalAlterConfigs(self, request: Any) -> Any:  # noqa: N802
        return {"responses": [{"errorCode": 0} for _ in request["resources"]]}

    def ListOffsets(self, request: Any) -> Any:  # noqa: N802
        return {
            "topics": [
                {
                    "name": topic["name"],
                    "partitions": [
                        {"partitionIndex": each["partitionIndex"], "errorCode": 0, "offset": 9}
                        for each in topic["partitions"]
                    ],
                }
                for topic in request["topics"]
            ]
        }


def test_a_state_reads_back_as_what_was_answered(tmp_path: Path) -> None:
    state = state_of(FakeBroker(), Release("4.4.0"), 1000)
    path = tmp_path / "state.json.gz"
    path.write_bytes(gzip.compress(json.dumps(state).encode()))
    told = read_state(path)
    assert told.release == "4.4.0"
    assert told.groups == (
        CutGroup("copy", "classic", "", "Empty", None, None, None, 0),
        CutGroup("robots", "share", "share", "Empty", 2, 2, "simple", 0),
    )
    assert told.committed_offsets == (CutOffset("copy", "t", 0, 5, None, "m"),)
    assert told.unstable_offsets == (("copy", "t", 0),)
    known, unknown = told.share_partitions
    assert (known.exists, known.start_offset, known.leader_epoch, known.lag) == (True, 7, 3, 1)
    assert (unknown.partition, unknown.exists, unknown.leader_epoch) == (1, False, None)


def test_share_state_is_read_with_an_epoch_that_leaves_no_record() -> None:
    """The lowest where there is no state, else that of the partition's leader, which it knows."""
    broker = FakeBroker()
    state_of(broker, Release("4.4.0"), 0)
    asked = [
        (each["partition"], each["leaderEpoch"])
        for api, request in broker.asked
        if api == "ReadShareGroupState"
        for each in request["topics"][0]["partitions"]
    ]
    assert sorted(asked) == [(0, 0), (0, 3), (1, 0)]


def test_the_state_that_4_0_answers_with_where_there_is_none_is_left_out() -> None:
    state = state_of(FakeBroker(), Release("4.0.2"), 0)
    (told,) = state["share_partitions"]
    assert (told["partition"], told["described"]) == (0, {"partitionIndex": 0})


def test_a_streams_group_that_the_broker_fails_to_describe_ends_no_run() -> None:
    """As 4.2.1 answered for a log that was cut: the group is named, and the cut not compared."""
    broker = FakeBroker()
    broker.listed, broker.described_error = [STREAMS], -1
    with pytest.raises(NotYetError, match="exact-copier: the broker fails to describe"):
        state_of(broker, Release("4.2.1"), 0)


@pytest.mark.parametrize(("kind", "error"), [("Streams", 87), ("Classic", -1)])
def test_another_error_of_a_group_is_none_that_passes(kind: str, error: int) -> None:
    broker = FakeBroker()
    broker.listed = [{**STREAMS, "groupType": kind}]
    broker.described_error = broker.group_error = error
    with pytest.raises(ValueError, match=f"error {error}"):
        state_of(broker, Release("4.2.1"), 0)


@pytest.mark.parametrize("error", [14, 15, 16])
def test_a_broker_that_is_loading_is_asked_again(error: int) -> None:
    broker = FakeBroker()
    broker.probe_error = error
    with pytest.raises(NotYetError):
        state_of(broker, Release("4.4.0"), 0)


def test_a_group_that_vanished_meanwhile_is_asked_about_again() -> None:
    broker = FakeBroker()
    broker.DescribeGroups = lambda request: {  # type: ignore[method-assign]
        "groups": [{"groupId": name, "errorCode": 69} for name in request["groups"]]
    }
    with pytest.raises(NotYetError):
        state_of(broker, Release("4.4.0"), 0)


@pytest.mark.parametrize(("state", "settled"), [("Stable", True), ("PreparingRebalance", False)])
def test_groups_between_two_generations_are_not_settled(state: str, settled: bool) -> None:
    broker = FakeBroker()
    broker.state = state
    assert is_settled(state_of(broker, Release("4.4.0"), 0)) is settled


def test_a_loading_broker_is_made_to_tell_its_coordinators_of_the_topics() -> None:
    broker = FakeBroker()
    announce_topics(broker, 12345)
    ((api, request),) = broker.asked
    (resource,) = request["resources"]
    assert (api, resource["configs"][0]["value"]) == ("IncrementalAlterConfigs", "12345")


def test_what_changed_is_named() -> None:
    broker = FakeBroker()
    before = state_of(broker, Release("4.4.0"), 0)
    broker.state = "Dead"
    after = state_of(broker, Release("4.4.0"), 0)
    assert (changes(before, before), changes(before, after)) == ([], ["groups of copy"])


def test_a_group_that_3_x_keeps_in_memory_without_an_offset_is_not_compared() -> None:
    broker = FakeBroker()
    broker.listed = [CLASSIC, {**CLASSIC, "groupId": "left"}]
    for number, kept in (("3.9.2", ["copy"]), ("4.0.2", ["copy", "left"])):
        release = Release(number)
        told = without_unrecorded(state_of(broker, release, 0), release)
        assert [each["group_id"] for each in told["groups"]] == kept


def test_end_offsets_are_those_of_every_internal_partition() -> None:
    ends = end_offsets(FakeBroker())
    assert ends["__consumer_offsets-4"] == 9
    assert ends["__share_group_state-2"] == 9


def test_what_the_tool_printed_is_parted_by_segment() -> None:
    printed = (
        b"Dumping b/t-0/0.log\nLog starting offset: 0\nDumping elsewhere\nDumping b/t-0/7.log\n"
    )
    assert dict(texts_by_segment(printed, ["b/t-0/0.log", "b/t-0/7.log"])) == {
        "b/t-0/0.log": b"Dumping b/t-0/0.log\nLog starting offset: 0\nDumping elsewhere\n",
        "b/t-0/7.log": b"Dumping b/t-0/7.log\n",
    }
