"""The document `snapshot.json`: what a cluster answered while its internal topics were fetched.

Times are ISO 8601 in UTC with milliseconds. Offsets are those of records in their log; an end
offset is the one after the last. Null is what the cluster did not answer, never a default.

Settings are those that brokers answer to DescribeConfigs and that `rules/config_values.json` lets
be kept: never one that brokers, or its name, call sensitive.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import msgspec

from schemas.reading import SchemaError, Shape

SNAPSHOT_VERSION: Final = 1
"""Raised by a change that earlier readers cannot follow."""


Int32 = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Setting(Shape, frozen=True):
    """A setting as a broker answers it.

    Attributes:
        name: Kafka's.
        value: As text, which may be empty.
        source: Kafka's name of what sets it (``ConfigEntry.ConfigSource``): DEFAULT_CONFIG where
            nothing does.
    """

    name: str
    value: str
    source: str


class Broker(Shape, frozen=True):
    """A broker, at the address that clients use.

    Attributes:
        node_id: Its id.
        host: As it advertises it.
        port: Likewise.
        rack: Null where it has none.
        configs: All that it goes by, defaults too, as it answers itself; null where it does not.
    """

    node_id: Int32
    host: str
    port: int
    rack: str | None
    configs: list[Setting] | None


class Partition(Shape, frozen=True):
    """A partition of any topic, and its log as ListOffsets answers.

    Attributes:
        partition: Its number.
        leader: Node id; null where there is none.
        leader_epoch: Null where brokers do not tell it (before 2.1).
        replicas: Node ids, the preferred leader first.
        isr: Node ids of those in sync.
        log_start_offset: The earliest offset that clients can read.
        log_end_offset: The high watermark, which is where clients' reading ends. Those of internal
            topics are asked for before those of others: no offset that was committed below them is
            beyond these, unless an end went back.
        later_end_offset: The same when all internal topics had been read, just before
            `Snapshot.finished_at`.
        error: Kafka's name of the error where the first two are null.
    """

    partition: Int32
    leader: Int32 | None
    leader_epoch: int | None
    replicas: list[int]
    isr: list[int]
    log_start_offset: Offset | None
    log_end_offset: Offset | None
    later_end_offset: Offset | None
    error: str | None


class Topic(Shape, frozen=True):
    """A topic that the user of the snapshot may describe.

    Attributes:
        topic: Its name.
        topic_id: 22 characters, as Kafka's tools print it; null before 2.8.
        is_internal: As brokers say.
        partitions: All, by number.
        configs: Those that are set for the topic itself.
    """

    topic: str
    topic_id: str | None
    is_internal: bool
    partitions: list[Partition]
    configs: list[Setting] | None


class Log(Shape, frozen=True):
    """A partition of an internal topic, as far as its batches lie beside this document.

    Attributes:
        topic: Whose.
        partition: Its number.
        leader: Node id of the broker that it was read from.
        leader_epoch: Of that leader; all of the log was read within it. Null before 2.1.
        log_start_offset: Where the log began when reading began.
        log_end_offset: The high watermark up to which it was read: all batches that begin below it
            are there. That of `Snapshot.taken_at`, unless records are missing: a newer record of
            their keys may lie above it, so that reading went on to where the log ended then.
        has_gaps: Offsets or records between start and end are missing: the cleaner removed them.
        next_offset: The offset after the last record of the last batch that is there, or the end
            where no record is left below it.
        bytes: Of all batches.
        readings: How often it was read from its start: more than once where the log changed.
        read_until: When the last batch had come.
        failure: Why it is not there to its end; null where it is.
        last_batch_offset: The last offset of the last batch that is there; null where none is.
        last_batch_bytes: Its bytes.
        fetched_from: The offset from which on it was fetched: what lies below is of the earlier
            snapshot. Null where all of it was fetched.
        why_whole: Why all was fetched although an earlier snapshot had some of it; else null.
    """

    topic: str
    partition: Int32
    leader: Int32 | None
    leader_epoch: int | None
    log_start_offset: Offset | None
    log_end_offset: Offset | None
    has_gaps: bool
    next_offset: int | None
    bytes: int
    readings: int
    read_until: str | None
    failure: str | None
    last_batch_offset: Offset | None = None
    last_batch_bytes: Int32 | None = None
    fetched_from: Offset | None = None
    why_whole: str | None = None


class ListedGroup(Shape, frozen=True):
    """A group as its coordinator lists it.

    Attributes:
        group_id: Its name.
        coordinator: Node id of the broker that lists it.
        protocol_type: As members name it; empty where none did.
        state: Null before 2.6.
        group_type: Null before 3.8.
        configs: Those that are set for the group itself; null, too, where the release has none.
    """

    group_id: str
    coordinator: Int32
    protocol_type: str
    state: str | None
    group_type: str | None
    configs: list[Setting] | None


class Unread(Shape, frozen=True):
    """Something that was asked for and not answered.

    Attributes:
        what: A topic, a partition of one, or what was asked.
        reason: Kafka's name of the error, or a sentence.
    """

    what: str
    reason: str


class Snapshot(Shape, frozen=True):
    """The whole document.

    Attributes:
        snapshot_version: `SNAPSHOT_VERSION` of whoever wrote it.
        groupscope_version: Likewise.
        taken_at: Just before the first end offset was asked for.
        finished_at: When all was read.
        cluster_id: Null where the cluster has none.
        controller_id: Node id of a broker that takes admin requests; null where none is known.
        brokers: By node id.
        topics: By name.
        logs: Of internal topics, by topic and partition.
        groups: By coordinator and name.
        unread: What is not in the snapshot although it was asked for.
        checked_at: When all groups had been asked for once logs were read (`cluster_answers`); null
            where the snapshot was not held against its cluster.
        resumed_from: `taken_at` of the earlier snapshot that this one goes on from; else null.
    """

    snapshot_version: int
    groupscope_version: str
    taken_at: str
    finished_at: str
    cluster_id: str | None
    controller_id: int | None
    brokers: list[Broker]
    topics: list[Topic]
    logs: list[Log]
    groups: list[ListedGroup]
    unread: list[Unread]
    checked_at: str | None = None
    resumed_from: str | None = None

    def __post_init__(self) -> None:
        """Refuse a time that is none."""
        for name, text in (("taken_at", self.taken_at), ("finished_at", self.finished_at)):
            if datetime.fromisoformat(text).tzinfo is None:
                message = f"{name} has no time zone"
                raise ValueError(message)


def read_snapshot(content: bytes, where: str) -> Snapshot:
    """Return a document that was read.

    Raises:
        SchemaError: It is none; says where, and what it lacks.
    """
    try:
        snapshot = msgspec.json.decode(content, type=Snapshot)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SchemaError(f"{where}: this is no snapshot.json: {error}") from error
    if snapshot.snapshot_version != SNAPSHOT_VERSION:
        raise SchemaError(
            f"{where}: version {snapshot.snapshot_version} of the document; this release reads "
            f"version {SNAPSHOT_VERSION}"
        )
    return snapshot
