"""What a cluster says of itself: brokers, topics, where logs start and end, groups.

Metadata, ListOffsets and ListGroups, as an admin client asks them; nothing is created or changed.
"""

from __future__ import annotations

import base64
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from analytics.snapshot.cluster_connection import (
    ClusterConnection,
    NotAnsweredError,
    error_name,
    is_passing,
)
from schemas.names import COORDINATOR_TOPICS
from schemas.snapshot import Broker, ListedGroup, Partition, Topic, Unread

if TYPE_CHECKING:
    from uuid import UUID


_LATEST: Final = -1
_EARLIEST: Final = -2
_AS_A_CLIENT: Final = -1
_READ_UNCOMMITTED: Final = 0
_NO_NUMBER: Final = -1
"""What brokers answer for an offset, a leader or an epoch that there is none of."""
_BETWEEN: Final = 0.3
_TRIES: Final = 5
"""Of offsets, while leaders change."""
NO_LEADER: Final = "LEADER_NOT_AVAILABLE"

TopicPartition = tuple[str, int]


@dataclass(frozen=True)
class LogEdges:
    """Where logs start and end, by partition; where that is not answered, Kafka's name of why."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    errors: Mapping[TopicPartition, str]


@dataclass
class Topics:
    """Topics as Metadata describes them.

    Attributes:
        by_name: Partitions have no offsets yet.
        errors: Of topics that were asked for by name, Kafka's name of why they are not described.
        cluster_id: Null where there is none.
        controller_id: Likewise.
        brokers: By node id.
    """

    by_name: dict[str, Topic] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    cluster_id: str | None = None
    controller_id: int | None = None
    brokers: list[Broker] = field(default_factory=list)


def described_topics(cluster: ClusterConnection, names: Sequence[str] | None = None) -> Topics:
    """Ask for topics by name, or for all that may be described.

    Raises:
        NotAnsweredError: No broker answers.
    """
    from kafka.protocol.metadata import MetadataRequest  # noqa: PLC0415 - optional

    of_topic = MetadataRequest.MetadataRequestTopic
    asked = None if names is None else [of_topic(name=name) for name in names]
    response = cluster.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
    cluster.note_brokers(response)
    topics = Topics(
        cluster_id=response.cluster_id or None,
        controller_id=_number(response.controller_id),
        brokers=sorted(
            (
                Broker(
                    node_id=each.node_id,
                    host=each.host,
                    port=each.port,
                    rack=each.rack or None,
                    configs=None,
                )
                for each in response.brokers
            ),
            key=lambda broker: broker.node_id,
        ),
    )
    for each in sorted(response.topics, key=lambda topic: topic.name or ""):
        # A topic whose partitions lack leaders is described all the same.
        if each.error_code and not each.partitions:
            topics.errors[each.name] = error_name(each.error_code)
        else:
            topics.by_name[each.name] = _topic(each)
    return topics


def _topic(described: Any) -> Topic:  # noqa: ANN401 - untyped library
    return Topic(
        topic=described.name,
        topic_id=_id_text(described.topic_id),
        is_internal=bool(described.is_internal),
        partitions=[
            Partition(
                partition=each.partition_index,
                leader=_number(each.leader_id),
                leader_epoch=_number(each.leader_epoch),
                replicas=list(each.replica_nodes or ()),
                isr=list(each.isr_nodes or ()),
                log_start_offset=None,
                log_end_offset=None,
                later_end_offset=None,
                error=error_name(each.error_code) if each.error_code else None,
            )
            for each in sorted(
                described.partitions, key=lambda partition: partition.partition_index
            )
        ],
        configs=None,
    )


def _number(answered: int | None) -> int | None:
    return None if answered is None or answered <= _NO_NUMBER else answered


def _id_text(topic_id: UUID | None) -> str | None:
    """Return an id as Kafka's tools print it (``Uuid.toString``)."""
    if topic_id is None:
        return None
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def log_edges(cluster: ClusterConnection, topics: Mapping[str, Topic]) -> LogEdges:
    """Ask leaders where their logs end, then where they start.

    The end is what clients can read up to: the high watermark. Those of internal topics are asked
    for first: what was committed below them lies below the ends of the other logs.
    """
    internal = {name: each for name, each in topics.items() if name in COORDINATOR_TOPICS}
    others = {name: each for name, each in topics.items() if name not in COORDINATOR_TOPICS}
    ends, errors = _offsets(cluster, internal, _LATEST)
    of_others, errors_of_others = _offsets(cluster, others, _LATEST)
    starts, more = _offsets(cluster, topics, _EARLIEST)
    return LogEdges(starts, ends | of_others, {**more, **errors, **errors_of_others})


def with_later_ends(cluster: ClusterConnection, topics: Iterable[Topic]) -> list[Topic]:
    """Return topics with where their logs end by now; null where that is not answered."""
    by_name = {each.topic: each for each in topics}
    ends, _ = _offsets(cluster, by_name, _LATEST)
    return [
        msgspec.structs.replace(
            topic,
            partitions=[
                msgspec.structs.replace(
                    each, later_end_offset=ends.get((topic.topic, each.partition))
                )
                for each in topic.partitions
            ],
        )
        for topic in by_name.values()
    ]


def _offsets(
    cluster: ClusterConnection, topics: Mapping[str, Topic], which: int
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
    found: dict[TopicPartition, int] = {}
    errors: dict[TopicPartition, str] = {}
    places = _leaders(topics)
    for left in reversed(range(_TRIES)):
        passing = False
        for leader, keys in _by_leader(places, found).items():
            answered, codes, why = _asked_leader(cluster, leader, keys, which)
            found |= answered
            errors |= dict.fromkeys(keys, why) if why else {}
            errors |= {key: error_name(code) for key, code in codes.items()}
            passing |= bool(why) or any(map(is_passing, codes.values()))
        if not passing or not left:
            break
        time.sleep(_BETWEEN)
        places = _moved(cluster, topics, places)
    without = {key: NO_LEADER for key, leader in places.items() if leader is None}
    return found, {key: why for key, why in (without | errors).items() if key not in found}


def _leaders(topics: Mapping[str, Topic]) -> dict[TopicPartition, int | None]:
    return {
        (topic.topic, each.partition): each.leader
        for topic in topics.values()
        for each in topic.partitions
    }


def _moved(
    cluster: ClusterConnection,
    topics: Mapping[str, Topic],
    places: dict[TopicPartition, int | None],
) -> dict[TopicPartition, int | None]:
    """Return who leads now."""
    try:
        return places | _leaders(described_topics(cluster, list(topics)).by_name)
    except NotAnsweredError:
        return places


def _by_leader(
    places: Mapping[TopicPartition, int | None], answered: Mapping[TopicPartition, int]
) -> dict[int, list[TopicPartition]]:
    grouped: dict[int, list[TopicPartition]] = defaultdict(list)
    for key, leader in places.items():
        if leader is not None and key not in answered:
            grouped[leader].append(key)
    return grouped


def _asked_leader(
    cluster: ClusterConnection, leader: int, keys: Iterable[TopicPartition], which: int
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int], str | None]:
    """Return offsets, error codes, and why nothing was answered at all."""
    from kafka.protocol.consumer import ListOffsetsRequest  # noqa: PLC0415 - optional

    partitions = defaultdict(list)
    of_partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    for topic, number in keys:
        partitions[topic].append(of_partition(partition_index=number, timestamp=which))
    request = ListOffsetsRequest(
        replica_id=_AS_A_CLIENT,
        isolation_level=_READ_UNCOMMITTED,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=asked)
            for topic, asked in partitions.items()
        ],
        # Version 0 answers in segments.
        min_version=1,
    )
    try:
        response = cluster.ask(request, leader)
    except NotAnsweredError as error:
        return {}, {}, str(error)
    found: dict[TopicPartition, int] = {}
    codes: dict[TopicPartition, int] = {}
    for topic in response.topics:
        for each in topic.partitions:
            if each.error_code:
                codes[topic.name, each.partition_index] = each.error_code
            elif each.offset >= 0:
                found[topic.name, each.partition_index] = each.offset
    return found, codes, None


def with_edges(topic: Topic, edges: LogEdges) -> Topic:
    """Return a topic whose partitions have the offsets of their logs."""
    partitions = [
        _with_edges(each, (topic.topic, each.partition), edges) for each in topic.partitions
    ]
    return msgspec.structs.replace(topic, partitions=partitions)


def _with_edges(partition: Partition, key: TopicPartition, edges: LogEdges) -> Partition:
    start, end = edges.starts.get(key), edges.ends.get(key)
    is_whole = start is not None and end is not None
    return msgspec.structs.replace(
        partition,
        log_start_offset=start,
        log_end_offset=end,
        error=None if is_whole else edges.errors.get(key, partition.error),
    )


def listed_groups(cluster: ClusterConnection) -> tuple[list[ListedGroup], list[Unread]]:
    """Ask every broker for the groups that it coordinates.

    Brokers leave out groups that the user may not describe, without a word.
    """
    groups: list[ListedGroup] = []
    unread: list[Unread] = []
    for node in cluster.nodes:
        try:
            groups += _groups_of(cluster, node)
        except NotAnsweredError as error:
            unread.append(Unread(what=f"groups of broker {node}", reason=str(error)))
    return sorted(groups, key=lambda group: (group.coordinator, group.group_id)), unread


def _groups_of(cluster: ClusterConnection, node: int) -> list[ListedGroup]:
    from kafka.protocol.admin import ListGroupsRequest  # noqa: PLC0415 - optional

    for left in reversed(range(_TRIES)):
        response = cluster.ask(ListGroupsRequest(states_filter=[], types_filter=[]), node)
        code = response.error_code
        if not code and response.groups is None:
            raise NotAnsweredError("an answer without groups", is_passing=False)
        if not code:
            break
        if not (is_passing(code) and left):
            raise NotAnsweredError(error_name(code), is_passing=is_passing(code))
        time.sleep(_BETWEEN)
    return [
        ListedGroup(
            group_id=each.group_id,
            coordinator=node,
            protocol_type=each.protocol_type or "",
            state=each.group_state or None,
            group_type=each.group_type or None,
            configs=None,
        )
        for each in response.groups
    ]
