"""A group coordinator that loads partitions of ``__consumer_offsets`` slowly and plainly.

One record after the other, one dictionary a thing: `tests.support.reference_offsets` and
`tests.support.reference_groups` say what each record does; here is which of it each release reads,
and what the coordinator would answer, in the words of the state tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.reference_groups import (
    ClassicGroup,
    Group,
    Member,
    ModernGroup,
    ReferenceGroups,
    SimpleGroup,
    Value,
    state_of,
)
from tests.support.reference_offsets import Commit, GroupRecord, ReferenceOffsets

ZERO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
FAMILIES = ("consumer", "share", "streams")
READ = {
    "metadata",
    "member_metadata",
    "target_assignment_metadata",
    "target_assignment_member",
    "current_member_assignment",
}
READ_BY_FAMILY = {
    "consumer": READ | {"partition_metadata", "regular_expression"},
    "share": READ | {"state_partition_metadata"},
    "streams": READ | {"topology"},
}
ROLES = ("active", "standby", "warmup")
Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass
class Tables:
    """Rows of the state tables by their keys; times are epoch milliseconds."""

    committed_offsets: dict[Key, Row] = field(default_factory=dict)
    pending_offsets: dict[Key, Row] = field(default_factory=dict)
    groups: dict[Key, Row] = field(default_factory=dict)
    members: dict[Key, Row] = field(default_factory=dict)
    assignments: dict[Key, Row] = field(default_factory=dict)


class ReferenceGroupCoordinator:
    """What one release makes of one partition."""

    def __init__(self, release: str) -> None:
        """Begin with nothing; the release is such as ``4.3``."""
        version = tuple(int(part) for part in release.split("."))
        self.scala = version < (4, 0)
        self.streams_validate = version >= (4, 2)
        self.offsets = ReferenceOffsets(scala=self.scala)
        self.groups = ReferenceGroups(initial_epoch=1 if version >= (4, 3) else 0)

    def replay(self, record: GroupRecord) -> None:
        """Apply the next record.

        Raises:
            RefusedByBrokerError: The broker would not load the partition.
        """
        if record.control_type is not None:
            self.offsets.end_transaction(record)
        elif record.table == "offset_commit":
            if record.value is not None and not self.scala:
                self.groups.committed(record.key["group"])
            self.offsets.replay(record)
        elif record.table == "group_metadata":
            self.groups.replay_classic(record)
        elif not self.scala:
            family, _, kind = record.table.partition("_group_")
            if kind in READ_BY_FAMILY[family]:
                self.groups.replay(family, kind, record)

    def listed(self) -> dict[str, Group]:
        """The groups that have a row: those there are, and before 4.0 those that have offsets."""
        simple: dict[str, Group] = {}
        if self.scala:
            simple = {name: SimpleGroup() for name in self.offsets.groups()}
        return simple | self.groups.groups


def tables_of(
    records: Iterable[GroupRecord],
    ends: Mapping[int, int],
    release: str,
    topics: Mapping[str, str],
) -> Tables:
    """Load the partitions one after the other.

    Args:
        records: Of any number of partitions, each in the order of its log.
        ends: Where to stop, by partition; to the end where there is none.
        release: Such as ``4.3``.
        topics: Names by id.
    """
    loaded: dict[int, ReferenceGroupCoordinator] = defaultdict(
        lambda: ReferenceGroupCoordinator(release)
    )
    for record in records:
        if record.offset < ends.get(record.partition, record.offset + 1):
            loaded[record.partition].replay(record)
    tables = Tables()
    for partition, coordinator in loaded.items():
        listed = coordinator.listed()
        _add_offsets(tables, coordinator.offsets, listed)
        for name, group in listed.items():
            _add_group(tables, partition, name, group, coordinator.streams_validate)
            _add_members(tables, name, group)
            for row in _assignments(group, topics):
                told = {"group_id": name, "group_type": _type_of(group), **row}
                places = ("member_id", "kind", "role", "subtopology_id", "topic_id", "topic")
                key = (name, *(row[place] for place in places), row["partition"])
                tables.assignments[key] = told
    return tables


def _absent(number: int | None, nothing: int = -1) -> int | None:
    return None if number == nothing else number


# --- offsets -------------------------------------------------------------------------------------


def _add_offsets(tables: Tables, offsets: ReferenceOffsets, listed: Container[str]) -> None:
    """Add what is answered of offsets.

    What is committed counts for nothing while its group is not there. What is pending does: a fetch
    that asks for stable offsets is refused before the group is looked for (KAFKA-19163).
    """
    for key, commit in offsets.committed.items():
        if key[0] in listed:
            tables.committed_offsets[key] = _offset(key, commit)
    for producer, pending in offsets.pending.items():
        for key, commit in pending.items():
            tables.pending_offsets[*key, producer] = _offset(key, commit) | {
                "producer_id": producer,
                "producer_epoch": commit.record.producer_epoch,
                "transactional_id": None,
                "transaction_state": None,
                "decided": None,
            }


def _offset(key: tuple[str, str, int], commit: Commit) -> Row:
    record, value = commit.record, commit.record.value
    assert value is not None
    return {
        "group_id": key[0],
        "topic": key[1],
        "topic_id": None if value["topic_id"] == ZERO_ID else value["topic_id"],
        "partition": key[2],
        "committed_offset": value["offset"],
        "committed_leader_epoch": _absent(value["leader_epoch"]),
        "metadata": value["metadata"],
        "commit_timestamp": value["commit_timestamp"],
        "expire_timestamp": _absent(value["expire_timestamp"]),
        "via": "transaction" if commit.by_marker else "plain",
        "coordinator_partition": record.partition,
        "record_offset": record.offset,
        "leader_epoch": record.leader_epoch,
    }


# --- groups --------------------------------------------------------------------------------------


def _type_of(group: Group) -> str:
    if isinstance(group, ModernGroup):
        return group.family
    return "classic" if isinstance(group, ClassicGroup) else "simple"


def _add_group(
    tables: Tables, partition: int, name: str, group: Group, streams_validate: bool
) -> None:
    record = None if isinstance(group, SimpleGroup) else group.record
    row: Row = {
        "group_id": name,
        "group_type": _type_of(group),
        "protocol_type": None,
        "state": state_of(group, streams_validate=streams_validate),
        "epoch": None,
        "assignment_epoch": None,
        "protocol": None,
        "leader": None,
        "state_timestamp": None,
        "member_count": 0,
        "coordinator_partition": partition,
        "record_offset": record and record.offset,
        "leader_epoch": record and record.leader_epoch,
        "complete": isinstance(group, SimpleGroup) or record is not None,
    }
    if isinstance(group, ClassicGroup):
        row |= {
            "protocol_type": group.value["protocol_type"] or None,
            "epoch": group.value["generation"],
            "protocol": group.value["protocol"],
            "leader": group.value["leader"],
            "state_timestamp": _absent(group.value["current_state_timestamp"]),
            "member_count": len(group.value["members"]),
        }
    elif isinstance(group, ModernGroup):
        row |= {
            "protocol_type": group.family,
            "epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "protocol": _assignor(group),
            "member_count": len(group.members),
        }
    tables.groups[(name,)] = row


def _assignor(group: ModernGroup) -> str | None:
    """The assignor that most members of a consumer group ask for; histories avoid a tie."""
    if group.family != "consumer":
        return "simple" if group.family == "share" else None
    asked = [each.metadata["server_assignor"] for each in group.members.values() if each.metadata]
    named = [assignor for assignor in asked if assignor is not None]
    return max(named, key=lambda assignor: (named.count(assignor), assignor), default="uniform")


# --- members -------------------------------------------------------------------------------------

NOTHING_TOLD: Row = {
    "group_instance_id": None,
    "client_id": None,
    "client_host": None,
    "rack_id": None,
    "subscribed_topics": None,
    "subscribed_regex": None,
    "server_assignor": None,
    "rebalance_timeout_ms": None,
    "session_timeout_ms": None,
    "is_classic": False,
    "process_id": None,
    "topology_epoch": None,
}


def _add_members(tables: Tables, name: str, group: Group) -> None:
    if isinstance(group, ClassicGroup):
        told = {each["member_id"]: _classic_member(group, each) for each in group.value["members"]}
    elif isinstance(group, ModernGroup):
        told = {member: _modern_member(each) for member, each in group.members.items()}
    else:
        return
    for member, row in told.items():
        here = {"group_id": name, "group_type": _type_of(group), "member_id": member}
        tables.members[name, member] = here | row


def _classic_member(group: ClassicGroup, member: Value) -> Row:
    subscription = member["subscription_decoded"]
    topics = None if subscription is None else sorted(set(subscription["topics"]))
    return NOTHING_TOLD | {
        "group_instance_id": member["group_instance_id"],
        "client_id": member["client_id"],
        "client_host": member["client_host"],
        "rack_id": None if subscription is None else subscription["rack_id"],
        "member_epoch": group.value["generation"],
        "previous_member_epoch": None,
        "state": None,
        "subscribed_topics": topics,
        "rebalance_timeout_ms": (
            member["session_timeout"]
            if member["rebalance_timeout"] in {-1, None}
            else member["rebalance_timeout"]
        ),
        "session_timeout_ms": member["session_timeout"],
        "is_classic": True,
    }


def _modern_member(member: Member) -> Row:
    row = NOTHING_TOLD | {
        "member_epoch": member.epoch,
        "previous_member_epoch": member.previous_epoch,
        "state": member.state,
    }
    if member.metadata is None:
        return row
    told = member.metadata
    classic = told.get("classic_member_metadata")
    topics = told.get("subscribed_topic_names")
    return row | {
        "group_instance_id": told.get("instance_id"),
        "client_id": told["client_id"],
        "client_host": told["client_host"],
        "rack_id": told["rack_id"],
        "subscribed_topics": None if topics is None else sorted(topics),
        "subscribed_regex": told.get("subscribed_topic_regex") or None,
        "server_assignor": told.get("server_assignor"),
        "rebalance_timeout_ms": _absent(told.get("rebalance_timeout_ms")),
        "session_timeout_ms": classic and classic["session_timeout_ms"],
        "is_classic": classic is not None,
        "process_id": told.get("process_id"),
        "topology_epoch": told.get("topology_epoch"),
    }


# --- assignments ---------------------------------------------------------------------------------


def _assignments(group: Group, topics: Mapping[str, str]) -> Iterator[Row]:
    if isinstance(group, ClassicGroup):
        for member in group.value["members"]:
            for given in (member["assignment_decoded"] or {}).get("assigned_partitions", ()):
                told = {"topic": given["topic"], "topic_id": None}
                for partition in given["partitions"]:
                    yield _assignment(
                        group.value["generation"],
                        member["member_id"],
                        "current",
                        partition,
                        **told,
                    )
    elif isinstance(group, ModernGroup):
        for name, target in group.targets.items():
            yield from _given(group, group.assignment_epoch, name, "target", target, topics)
        for name, each in group.members.items():
            if each.current is not None:
                yield from _given(group, each.epoch, name, "current", each.current, topics)
                yield from _given(
                    group, each.epoch, name, "pending_revocation", each.current, topics
                )


FIELDS = {
    "target": "topic_partitions",
    "current": "assigned_partitions",
    "pending_revocation": "partitions_pending_revocation",
}


def _given(
    group: ModernGroup, epoch: int, member: str, kind: str, value: Value, topics: Mapping[str, str]
) -> Iterator[Row]:
    """What a value gives a member: partitions by topic id, or tasks by role and subtopology."""
    if group.family != "streams":
        for given in value.get(FIELDS[kind]) or ():
            told = {"topic_id": given["topic_id"], "topic": topics.get(given["topic_id"])}
            for partition in given["partitions"]:
                yield _assignment(epoch, member, kind, partition, **told)
        return
    for role in ROLES:
        suffix = "_pending_revocation" if kind == "pending_revocation" else ""
        for given in value.get(f"{role}_tasks{suffix}") or ():
            for partition in given["partitions"]:
                task = {"role": role, "subtopology_id": given["subtopology_id"]}
                yield _assignment(epoch, member, kind, partition, **task)


def _assignment(epoch: int, member: str, kind: str, partition: int, **told: Any) -> Row:
    nothing = {"role": None, "subtopology_id": None, "topic": None, "topic_id": None}
    where = {"epoch": epoch, "member_id": member, "kind": kind, "partition": partition}
    return nothing | where | told
