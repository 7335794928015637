"""Random values of the records about groups, in the fields of the decoded tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.reference_group_coordinator import ROLES, ZERO_ID

if TYPE_CHECKING:
    from random import Random

AT = 1_700_000_000_000
NAMED_TOPICS = {"gtb2stGYRk-vWZ2zAozmoA": "t", "EYAGe3ybSjSvj5d44sPkEw": "u"}
TOPIC_IDS = (*NAMED_TOPICS, "AbCdEfGhIjKlMnOpQrStUg")
MEMBERS = ("m0", "m1", "m2")
EPOCHS = 4
Value = dict[str, Any]


def random_value(random: Random, table: str, epoch: int) -> Value:
    """A value of any record but commits and classic groups.

    Args:
        random: The chance.
        table: As the decoded table is named.
        epoch: That of the group, its assignment, its member or its topology.
    """
    family, _, kind = table.partition("_group_")
    if kind == "metadata":
        return {"epoch": epoch, "metadata_hash": 5} | _validated(random, family)
    if kind == "member_metadata":
        return _member(random, family)
    if kind == "target_assignment_metadata":
        return {"assignment_epoch": epoch, "assignment_timestamp": 0}
    if kind == "target_assignment_member":
        return _tasks(random) if family == "streams" else {"topic_partitions": _given(random)}
    if kind == "current_member_assignment":
        return _current(random, family, epoch)
    return OTHERS[table] | ({"epoch": random.choice((0, 0, 0, 1))} if kind == "topology" else {})


OTHERS: dict[str, Value] = {
    "consumer_group_partition_metadata": {"topics": []},
    "consumer_group_regular_expression": {"topics": ["t"], "version": 1, "timestamp": AT},
    "share_group_partition_metadata": {"topics": []},
    "share_group_state_partition_metadata": {
        "initializing_topics": [],
        "initialized_topics": [],
        "deleting_topics": [],
    },
    "streams_group_topology": {"subtopologies": []},
    "streams_group_target_assignment_resolved_topic_ids": {
        "assignment_epoch": 1,
        "resolved_topic_ids_by_subtopology": [],
    },
}


def _validated(random: Random, family: str) -> Value:
    if family != "streams":
        return {}
    validated = random.choice((-1, 0, 0, 0, 0, 1))
    return {"validated_topology_epoch": validated, "last_assignment_configs": []}


def _member(random: Random, family: str) -> Value:
    value: Value = {
        "rack_id": random.choice((None, "rack-1")),
        "client_id": random.choice(("", "app", "app-2")),
        "client_host": "/10.0.0.1",
    }
    if family != "share":
        value |= {
            "instance_id": random.choice((None, None, "static-1")),
            "rebalance_timeout_ms": random.choice((-1, 45_000)),
        }
    if family != "streams":
        value["subscribed_topic_names"] = random.choice(([], ["t"], ["u", "t"]))
    if family == "consumer":
        value |= {
            "subscribed_topic_regex": random.choice((None, "", "t.*")),
            "server_assignor": random.choice((None, None, "range")),
            "classic_member_metadata": random.choice((None, None, CLASSIC_MEMBER)),
        }
    if family == "streams":
        value |= {
            "topology_epoch": random.randrange(2),
            "process_id": random.choice(("process-1", "process-2")),
            "client_tags": [],
        }
    return value


CLASSIC_MEMBER: Value = {
    "session_timeout_ms": 30_000,
    "supported_protocols": [{"name": "range", "metadata": b"\0\0"}],
}


def _current(random: Random, family: str, epoch: int) -> Value:
    lowest = 1 if family == "streams" else 0
    value: Value = {
        "member_epoch": epoch if random.randrange(12) else -2,
        "previous_member_epoch": max(0, epoch - 1),
        "state": lowest + random.choice((0, 0, 0, 0, 0, 0, 1, 2, 9)),
    }
    if family == "streams":
        return value | _tasks(random) | _tasks(random, "_pending_revocation")
    value["assigned_partitions"] = _given(random)
    if family == "consumer":
        value["partitions_pending_revocation"] = _given(random)
    return value


def _given(random: Random) -> list[Value]:
    chosen = [each for each in TOPIC_IDS if random.randrange(3) == 0]
    return [{"topic_id": each, "partitions": _partitions(random)} for each in chosen]


def _tasks(random: Random, suffix: str = "") -> Value:
    return {
        f"{role}_tasks{suffix}": [
            {"subtopology_id": each, "partitions": _partitions(random)}
            for each in ("0", "1")
            if random.randrange(4) == 0
        ]
        for role in ROLES
    }


def _partitions(random: Random) -> list[int]:
    return [each for each in range(4) if random.randrange(2)]


# --- commits and classic groups ------------------------------------------------------------------


def random_commit(random: Random) -> Value:
    """A committed offset, with or without what newer brokers add."""
    return {
        "offset": random.randrange(1000),
        "leader_epoch": random.randrange(-1, 2),
        "metadata": random.choice(("", "note")),
        "commit_timestamp": AT + random.randrange(1000),
        "expire_timestamp": random.choice((-1, -1, AT + 5000)),
        "topic_id": random.choice((ZERO_ID, TOPIC_IDS[0])),
    }


def random_classic(random: Random) -> Value:
    """A classic group at one generation: consumers, another protocol, or nobody."""
    protocol_type = random.choice(("consumer", "consumer", "connect"))
    members = [
        _classic_member(random, each, protocol_type) for each in MEMBERS if random.randrange(3)
    ]
    leaders = [*(each["member_id"] for each in members), None]
    return {
        "protocol_type": protocol_type if members else random.choice(("", protocol_type)),
        "generation": random.randrange(EPOCHS),
        "protocol": random.choice(("range", "roundrobin")) if members else None,
        "leader": random.choice(leaders),
        "current_state_timestamp": random.choice((-1, AT)),
        "members": members,
    }


def _classic_member(random: Random, name: str, protocol_type: str) -> Value:
    """A member whose subscription may not parse, and which may have been given nothing yet."""
    subscription = {
        "topics": random.choice(([], ["t"], ["t", "u"])),
        "rack_id": random.choice((None, "rack-1")),
    }
    given = [{"topic": each, "partitions": _partitions(random)} for each in ("t", "u")]
    parses = protocol_type == "consumer" and random.randrange(8)
    return {
        "member_id": name,
        "group_instance_id": random.choice((None, "static-1")),
        "client_id": random.choice(("", "app")),
        "client_host": "/10.0.0.1",
        "rebalance_timeout": random.choice((-1, 60_000)),
        "session_timeout": 45_000,
        "subscription": b"\0\0",
        "assignment": b"",
        "subscription_decoded": subscription if parses else None,
        "assignment_decoded": (
            {"assigned_partitions": given[: random.randrange(3)]}
            if parses and random.randrange(4)
            else None
        ),
    }
