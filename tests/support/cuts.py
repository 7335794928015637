"""What real brokers answered after they had loaded a dump up to a cut, as plain values.

``<dump>/tools/replay/<copy>-NN/cut.json`` names the end offset of each internal partition,
``state.json.gz`` beside it what a fresh broker of the dump's release said when it had loaded
exactly those records. ``<dump>/tools/state.json.gz`` has the same shape: what the running brokers
said last. Every list is sorted and free of what is never comparable (throttle times, authorised
operations, which broker was asked), so that two states are compared with ``==``.

What a cut cannot show:

- The broker that loaded a cut knew the whole metadata log. Topic names are those of the end; an
  assignment of a topic that was deleted later is left out, because the broker cannot name its id,
  and a share partition of such a topic is not described. Offsets of a topic that is gone are still
  answered: they are keyed by name.
- It started fresh, so what lives in memory alone is not there: classic groups come back ``Stable``
  or ``Empty`` only, a member whose session ended between load and question is gone, and streams
  groups of 4.1.2 read ``NotReady`` though they were ``Stable`` before.
- Partitions that a cut does not name hold nothing.
- A pending offset is told (error 88) only where the partition already has a stable one.
- For the failover dump the broker was a fresh one-node cluster with the original topic ids: lag of
  data partitions that the disk does not have is not comparable, a topic whose highest partitions
  are not on the disk has too few of them, and without ``__transaction_state`` what was pending
  stays pending.
- Releases before 2.4 answered without the leader epoch of a commit and without the state and type
  of a listed group: those fields are None here.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.broker_state import (
    BrokerState,
    CutAssignment,
    CutBatch,
    CutGroup,
    CutMember,
    CutOffset,
    CutSharePartition,
    joined,
)
from tests.support.consumer_protocol import parse_assignment, parse_subscription

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PENDING = 88  # UNSTABLE_OFFSET_COMMIT
UNINITIALIZED = 42  # INVALID_REQUEST: no state of that share partition
_CLASSIC, _KIP_848 = 0, 1  # memberType of ConsumerGroupDescribe


@dataclass(frozen=True)
class Cut:
    """One cut of one copy. ``end_offsets`` are by topic and partition, exclusive.

    ``kind`` is instant (all partitions cut at one append time, ``as_of_ms``), offsets (each
    somewhere of its own), whole or end (everything).
    """

    dump: str
    name: str
    copy: str
    kind: str
    as_of_ms: int | None
    end_offsets: dict[tuple[str, int], int]
    path: Path = field(compare=False)

    @property
    def state(self) -> BrokerState:
        """What the broker answered."""
        return read_state(self.path / "state.json.gz")

    def __str__(self) -> str:
        return f"{self.dump}/{self.name}"


def cuts_of(dump: Path) -> list[Cut]:
    """Every cut of a dump, by name."""
    return [_read_cut(dump, path.parent) for path in sorted(dump.glob("tools/replay/*/cut.json"))]


def _read_cut(dump: Path, folder: Path) -> Cut:
    about = json.loads((folder / "cut.json").read_text("utf-8"))
    ends = {}
    for name, offset in about["end_offsets"].items():
        topic, partition = name.rsplit("-", 1)
        ends[topic, int(partition)] = int(offset)
    return Cut(
        dump=dump.name,
        name=folder.name,
        copy=folder.name.rsplit("-", 1)[0],
        kind=about["kind"],
        as_of_ms=about.get("as_of_ms"),
        end_offsets=ends,
        path=folder,
    )


def read_state(path: Path) -> BrokerState:
    """Read a ``state.json.gz``."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        told: dict[str, Any] = json.load(file)
    groups: list[CutGroup] = []
    members: list[CutMember] = []
    assignments: list[CutAssignment] = []
    left_since: list[tuple[str, str]] = []
    for entry in told["groups"]:
        (described,) = entry["described"]["groups"]
        group = _group(entry["listed"], described)
        groups.append(group)
        listed = entry["listed"].get("groupState") or group.state
        if group.state == "Empty" != listed:
            left_since.append((group.group_id, listed))
        for member in described["members"]:
            members.append(_member(group, member))
            assignments.extend(_assignments(group, member))
    return BrokerState(
        release=told["release"],
        groups=tuple(sorted(groups)),
        members=tuple(sorted(members, key=lambda each: (each.group_id, each.member_id))),
        assignments=tuple(sorted(assignments, key=_assignment_order)),
        committed_offsets=tuple(sorted(_offset(each) for each in told["committed_offsets"])),
        unstable_offsets=tuple(sorted(_unstable(told.get("unstable_offsets", [])))),
        share_partitions=tuple(
            sorted(
                (_share_partition(each) for each in told["share_partitions"]),
                key=lambda each: each.key,
            )
        ),
        left_since=tuple(left_since),
        asked_for_pending="unstable_offsets" in told,
    )


def _group(listed: dict[str, Any], described: dict[str, Any]) -> CutGroup:
    return CutGroup(
        group_id=listed["groupId"],
        group_type=listed.get("groupType") or "classic",
        protocol_type=listed["protocolType"],
        state=described["groupState"],
        epoch=described.get("groupEpoch"),
        assignment_epoch=described.get("assignmentEpoch"),
        protocol=described.get("assignorName") or described.get("protocolData") or None,
        member_count=len(described["members"]),
    )


def _member(group: CutGroup, told: dict[str, Any]) -> CutMember:
    subscription = _octets(told.get("memberMetadata"))
    topics, rack = told.get("subscribedTopicNames"), told.get("rackId")
    if subscription is not None and group.protocol_type == "consumer":
        parsed = parse_subscription(subscription) or {}
        topics, rack = parsed.get("topics"), parsed.get("rackId")
    is_classic = told.get("isClassic")
    if "memberType" in told:
        is_classic = {_CLASSIC: True, _KIP_848: False}.get(told["memberType"])
    return CutMember(
        group_id=group.group_id,
        group_type=group.group_type,
        member_id=told["memberId"],
        group_instance_id=told.get("groupInstanceId", told.get("instanceId")),
        client_id=told["clientId"],
        client_host=told["clientHost"],
        rack_id=rack,
        member_epoch=told.get("memberEpoch"),
        subscribed_topics=None if topics is None else tuple(sorted(topics)),
        subscribed_regex=told.get("subscribedTopicRegex") or None,
        is_classic=is_classic,
        process_id=told.get("processId"),
        topology_epoch=told.get("topologyEpoch"),
        subscription=subscription,
        assignment=_octets(told.get("memberAssignment")),
    )


def _octets(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _assignments(group: CutGroup, told: dict[str, Any]) -> Iterable[CutAssignment]:
    member = told["memberId"]
    if "memberAssignment" in told:
        if group.protocol_type == "consumer":
            parsed = parse_assignment(base64.b64decode(told["memberAssignment"])) or {}
            for topic in parsed.get("assignedPartitions", []):
                yield from _of_topic(group, member, "current", topic["topic"], None, topic)
        return
    for kind, where in (("current", "assignment"), ("target", "targetAssignment")):
        given = told.get(where) or {}
        for topic in given.get("topicPartitions", []):
            yield from _of_topic(group, member, kind, topic["topicName"], topic["topicId"], topic)
        for role in ("active", "standby", "warmup"):
            for task in given.get(f"{role}Tasks", []):
                subtopology = task["subtopologyId"]
                for number in task["partitions"]:
                    yield CutAssignment(
                        group.group_id, member, kind, role, subtopology, None, None, number
                    )


def _of_topic(
    group: CutGroup,
    member: str,
    kind: str,
    topic: str,
    topic_id: str | None,
    told: dict[str, Any],
) -> Iterable[CutAssignment]:
    for number in told["partitions"]:
        yield CutAssignment(group.group_id, member, kind, None, None, topic, topic_id, number)


def _assignment_order(each: CutAssignment) -> tuple[object, ...]:
    return (
        each.group_id,
        each.member_id,
        each.kind,
        each.role or "",
        each.subtopology_id or "",
        each.topic or "",
        each.partition,
    )


def _offset(told: dict[str, Any]) -> CutOffset:
    epoch = told.get("leader_epoch", -1)
    return CutOffset(
        group_id=told["group_id"],
        topic=told["topic"],
        partition=told["partition"],
        committed_offset=told["offset"],
        leader_epoch=None if epoch == -1 else epoch,
        metadata=told["metadata"],
    )


def _unstable(told: Iterable[dict[str, Any]]) -> Iterable[tuple[str, str, int]]:
    for each in told:
        if each["error_code"] != PENDING:
            raise ValueError(f"not a pending offset: {each}")
        yield each["group_id"], each["topic"], each["partition"]


def _share_partition(told: dict[str, Any]) -> CutSharePartition:
    state, described = told["state"], told["described"]
    if state["errorCode"] not in {0, UNINITIALIZED}:
        raise ValueError(f"an answer of another kind: {told}")
    lag = described.get("lag", -1)
    return CutSharePartition(
        group_id=told["group_id"],
        topic_id=told["topic_id"],
        topic=told["topic"],
        partition=told["partition"],
        exists=state["errorCode"] == 0,
        state_epoch=state["stateEpoch"],
        start_offset=None if state["startOffset"] == -1 else state["startOffset"],
        leader_epoch=described.get("leaderEpoch"),
        lag=None if lag == -1 else lag,
        batches=joined(
            CutBatch(
                each["firstOffset"],
                each["lastOffset"],
                each["deliveryState"],
                each["deliveryCount"],
            )
            for each in state["stateBatches"]
        ),
    )
