"""What a broker knows about groups, offsets and share partitions, asked for by Kafka's own RPCs.

The whole of it has the form of ``tools/state.json.gz``, which ``tests.support.cuts`` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.brokers.asking import Answer, Ask
from tests.brokers.releases import INTERNAL, Release
from tests.support.cuts import PENDING, UNINITIALIZED

FAILED = -1
LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
GROUP_GONE = 69
FENCED = 74
_NOT_YET = frozenset((LOADING, NOT_AVAILABLE, NOT_COORDINATOR, GROUP_GONE))
_NAMES_ALL_TOPICS = 8  # OffsetFetch: newer versions name topics by ids
_OF_OFFSETS = 7  # ListOffsets
_LATEST = -1
_PROBES = 64
UNSETTLED = frozenset(("PreparingRebalance", "CompletingRebalance"))
_DESCRIBED_BY = {
    "classic": "DescribeGroups",
    "consumer": "ConsumerGroupDescribe",
    "share": "ShareGroupDescribe",
    "streams": "StreamsGroupDescribe",
}


class NotYetError(Exception):
    """A coordinator is not ready, or what was asked changed meanwhile: ask again."""


def state_of(ask: Ask, release: Release, at: int) -> Answer:
    """Ask for everything a broker knows.

    Args:
        ask: Puts the questions.
        release: Of the broker.
        at: When, in epoch milliseconds; it is only noted.

    Raises:
        NotYetError: It cannot say yet.
    """
    require_loaded(ask)
    groups = [_described(ask, each) for each in _listed(ask)]
    names = [each["group_id"] for each in groups]
    shared = [each["group_id"] for each in groups if each["listed"].get("groupType") == "share"]
    return {
        "release": release.number,
        "at": at,
        "groups": groups,
        "committed_offsets": [
            {
                "group_id": group,
                "topic": topic,
                "partition": told["partitionIndex"],
                "offset": told["committedOffset"],
                "leader_epoch": told["committedLeaderEpoch"],
                "metadata": told["metadata"],
            }
            for group, topic, told in _offsets(ask, names, require_stable=False)
        ],
        "share_partitions": [
            each for group in shared for each in _share_partitions(ask, release, group)
        ],
        "unstable_offsets": [
            {
                "group_id": group,
                "topic": topic,
                "partition": told["partitionIndex"],
                "error_code": told["errorCode"],
            }
            for group, topic, told in _offsets(ask, names, require_stable=True)
            if told["errorCode"] == PENDING
        ],
    }


def require_loaded(ask: Ask) -> None:
    """Ask about groups of every internal partition, there or not.

    Raises:
        NotYetError: Some partition is not loaded.
    """
    probes = [f"probe-{number}" for number in range(_PROBES)]
    for each in ask("DescribeGroups", {"groups": probes})["groups"]:
        if each["errorCode"] != GROUP_GONE:  # as newer brokers say of a group that is not there
            _require(each["errorCode"], each["groupId"])


def is_settled(state: Answer) -> bool:
    """Whether no group is in a state that exists in a coordinator's memory alone."""
    told = [group for each in state["groups"] for group in each["described"]["groups"]]
    return all(group["groupState"] not in UNSETTLED for group in told)


def announce_topics(ask: Ask, value: int) -> None:
    """Change a setting that means nothing, to a value that it did not have.

    Coordinators hear of topics with every change of metadata, and those of share groups in 4.0 and
    4.1 forget what they heard before they had loaded.
    """
    setting = {"name": "retention.ms", "configOperation": 0, "value": str(value)}
    compacted = {"resourceType": 2, "resourceName": "__consumer_offsets", "configs": [setting]}
    ask("IncrementalAlterConfigs", {"resources": [compacted]})


def changes(before: Answer, after: Answer) -> list[str]:
    """Name what differs between two states: the list, and the groups."""
    differing = []
    for name in ("groups", "committed_offsets", "unstable_offsets", "share_partitions"):
        one = [each for each in before[name] if each not in after[name]]
        other = [each for each in after[name] if each not in before[name]]
        groups = sorted({each["group_id"] for each in (*one, *other)})
        differing += [f"{name} of {' and '.join(groups)}"] if groups else []
    return differing


def without_unrecorded(state: Answer, release: Release) -> Answer:
    """Leave out what only a running broker has: 3.x keeps a group when its last offset goes.

    It keeps the one in its memory, and a fresh broker does not have it.
    """
    if release.line >= (4, 0):
        return state
    with_offsets = {each["group_id"] for each in state["committed_offsets"]}
    groups = [
        each
        for each in state["groups"]
        if each["listed"]["protocolType"] or each["group_id"] in with_offsets
    ]
    return {**state, "groups": groups}


def end_offsets(ask: Ask) -> dict[str, int]:
    """Return the log end of every internal partition, by ``topic-partition``."""
    asked = [
        {
            "name": topic,
            "partitions": [
                {"partitionIndex": number, "currentLeaderEpoch": -1, "timestamp": _LATEST}
                for number in range(count)
            ],
        }
        for topic, count in INTERNAL.items()
    ]
    answer = ask("ListOffsets", {"replicaId": -1, "topics": asked}, _OF_OFFSETS)
    return {
        f"{topic['name']}-{told['partitionIndex']}": told["offset"]
        for topic in answer["topics"]
        for told in topic["partitions"]
        if told["errorCode"] == 0
    }


def _require(error: int, where: str) -> None:
    if error in _NOT_YET:
        raise NotYetError(f"{where}: error {error}")
    if error:
        raise ValueError(f"{where}: error {error}")


def _listed(ask: Ask) -> list[Answer]:
    answer = ask("ListGroups", {})
    _require(answer["errorCode"], "ListGroups")
    return sorted(answer["groups"], key=lambda each: str(each["groupId"]))


def _described(ask: Ask, listed: Answer) -> Answer:
    kind = (listed.get("groupType") or "classic").lower()
    asked_for = "groups" if kind == "classic" else "groupIds"
    described = ask(_DESCRIBED_BY[kind], {asked_for: [listed["groupId"]]})
    (group,) = described["groups"]
    if kind == "streams" and group["errorCode"] == FAILED:
        # Kafka's StreamsGroup throws where it has no topology, and a log that is cut may have none.
        raise NotYetError(f"{listed['groupId']}: the broker fails to describe the streams group")
    _require(group["errorCode"], listed["groupId"])
    return {
        "group_id": listed["groupId"],
        "coordinator": 1,
        "listed": listed,
        "described": described,
    }


def _offsets(
    ask: Ask, groups: list[str], *, require_stable: bool
) -> Iterator[tuple[str, str, Answer]]:
    asked = [{"groupId": group, "topics": None} for group in groups]
    request = {"groups": asked, "requireStable": require_stable}
    for group in ask("OffsetFetch", request, _NAMES_ALL_TOPICS)["groups"] if asked else []:
        _require(group["errorCode"], group["groupId"])
        for topic in group["topics"]:
            for told in topic["partitions"]:
                yield group["groupId"], topic["name"], told


def _share_partitions(ask: Ask, release: Release, group: str) -> Iterator[Answer]:
    """Ask for the state of every partition there is.

    The epoch of a share partition's leader has to be named, and any higher than the coordinator
    has seen is noted in a record. The lowest is refused where it has seen a higher one; that of the
    topic's partition is not, and makes no record once its leader has begun.
    """
    lowest = -1 if release.line == (4, 0) else 0
    described = _described_offsets(ask, release, group)
    for topic in _topics(ask):
        epochs = {each["partitionIndex"]: each["leaderEpoch"] for each in topic["partitions"]}
        first = _states(ask, group, topic["topicId"], dict.fromkeys(epochs, lowest))
        fenced = {number for number, told in first.items() if told["errorCode"] == FENCED}
        again = {number: epochs[number] for number in fenced}
        states = first | (_states(ask, group, topic["topicId"], again) if again else {})
        for number, told in sorted(states.items()):
            _require_state(told, f"{group}: {topic['name']}-{number}")
            if release.line == (4, 0) and number not in fenced:
                continue  # 4.0 answers with a state even where there is none
            yield {
                "group_id": group,
                "topic": topic["name"],
                "topic_id": topic["topicId"],
                "partition": number,
                "described": described.get((topic["topicId"], number), {"partitionIndex": number}),
                "state": told,
            }


def _require_state(told: Answer, where: str) -> None:
    if told["errorCode"] not in {0, UNINITIALIZED}:
        raise NotYetError(f"{where}: error {told['errorCode']}")


def _topics(ask: Ask) -> list[Answer]:
    topics = ask("Metadata", {"topics": None, "allowAutoTopicCreation": False})["topics"]
    for topic in topics:
        _require_known(topic)
    return sorted(
        (topic for topic in topics if not topic["isInternal"]), key=lambda each: str(each["name"])
    )


def _require_known(topic: Answer) -> None:
    if topic["errorCode"] or any(each["errorCode"] for each in topic["partitions"]):
        raise NotYetError(f"{topic['name']} has no leader")


def _states(ask: Ask, group: str, topic_id: str, epochs: Mapping[int, int]) -> dict[int, Answer]:
    asked = [{"partition": number, "leaderEpoch": epoch} for number, epoch in epochs.items()]
    topics = [{"topicId": topic_id, "partitions": asked}]
    answer = ask("ReadShareGroupState", {"groupId": group, "topics": topics})
    return {told["partition"]: told for each in answer["results"] for told in each["partitions"]}


def _described_offsets(ask: Ask, release: Release, group: str) -> dict[tuple[str, int], Any]:
    if release.line < (4, 1):
        return {}
    request = {"groups": [{"groupId": group, "topics": None}]}
    (answer,) = ask("DescribeShareGroupOffsets", request)["groups"]
    _require(answer["errorCode"], group)
    return {
        (topic["topicId"], told["partitionIndex"]): told
        for topic in answer["topics"]
        for told in topic["partitions"]
    }
