"""The columns of Kafka's own tools, by tool, view and release.

Rows hold more than any one release prints; these are what is shown of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from schemas.releases import release_key

CONSUMER, SHARE, STREAMS = "consumer", "share", "streams"

FAMILIES = (CONSUMER, SHARE, STREAMS)
"""One for each of the tools kafka-consumer-groups, kafka-share-groups, kafka-streams-groups."""

FAMILY_OF = {
    "classic": CONSUMER,
    "simple": CONSUMER,
    "consumer": CONSUMER,
    "share": SHARE,
    "streams": STREAMS,
}
"""The tool that describes a type of group."""

OFFSETS, MEMBERS, STATE = "offsets", "members", "state"

HEADS = {
    "group": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "leader_epoch": "LEADER-EPOCH",
    "current_offset": "CURRENT-OFFSET",
    "start_offset": "START-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
    "lag": "LAG",
    "offset_lag": "OFFSET-LAG",
    "consumer_id": "CONSUMER-ID",
    "group_instance_id": "GROUP-INSTANCE-ID",
    "member": "MEMBER",
    "host": "HOST",
    "process": "PROCESS",
    "client_id": "CLIENT-ID",
    "partitions": "#PARTITIONS",
    "assignment": "ASSIGNMENT",
    "assignments": "ASSIGNMENTS",
    "current_epoch": "CURRENT-EPOCH",
    "current_assignment": "CURRENT-ASSIGNMENT",
    "target_epoch": "TARGET-EPOCH",
    "target_assignment": "TARGET-ASSIGNMENT",
    "upgraded": "UPGRADED",
    "member_epoch": "MEMBER-EPOCH",
    "member_protocol": "MEMBER-PROTOCOL",
    "topology_epoch": "TOPOLOGY-EPOCH",
    "coordinator": "COORDINATOR (ID)",
    "assignment_strategy": "ASSIGNMENT-STRATEGY",
    "state": "STATE",
    "group_epoch": "GROUP-EPOCH",
    "target_assignment_epoch": "TARGET-ASSIGNMENT-EPOCH",
    "assignment_epoch": "ASSIGNMENT-EPOCH",
    "members": "#MEMBERS",
    "type": "TYPE",
    "protocol": "PROTOCOL",
}
"""Kafka's head of each column of ours."""

REMARK = {"remark": "REMARK"}
"""A column of ours alone, where a row cannot be told: why not."""


_CONTRACT = {
    "group": "group_id",
    "current_offset": "committed_offset",
    "offset_lag": "lag",
    "consumer_id": "member_id",
    "member": "member_id",
    "host": "client_host",
    "process": "process_id",
    "partitions": "partition_count",
    "current_epoch": "member_epoch",
    "target_epoch": "assignment_epoch",
    "target_assignment_epoch": "assignment_epoch",
    "group_epoch": "epoch",
    "assignment_strategy": "protocol",
    "members": "member_count",
}


class View(NamedTuple):
    """What is shown of which groups."""

    family: str
    what: str


KEYS: Mapping[View, tuple[str, ...]] = {
    View(CONSUMER, OFFSETS): ("group", "topic", "partition", "consumer_id"),
    View(CONSUMER, MEMBERS): ("group", "consumer_id"),
    View(SHARE, OFFSETS): ("group", "topic", "partition"),
    View(SHARE, MEMBERS): ("group", "consumer_id"),
    View(STREAMS, OFFSETS): ("group", "topic", "partition"),
    View(STREAMS, MEMBERS): ("group", "member"),
    **{View(family, STATE): ("group",) for family in FAMILIES},
}
"""What tells the rows of a view apart."""

ALWAYS, VERBOSE = 0, 1
SINCE_4_0, SINCE_4_1, BEFORE_4_0 = "4.0", "4.1", "-4.0"

_COLUMNS: Mapping[View, tuple[tuple[str, int, str | None], ...]] = {
    View(CONSUMER, OFFSETS): (
        ("group", ALWAYS, None),
        ("topic", ALWAYS, None),
        ("partition", ALWAYS, None),
        ("leader_epoch", VERBOSE, SINCE_4_0),
        ("current_offset", ALWAYS, None),
        ("log_end_offset", ALWAYS, None),
        ("lag", ALWAYS, None),
        ("consumer_id", ALWAYS, None),
        ("host", ALWAYS, None),
        ("client_id", ALWAYS, None),
    ),
    View(CONSUMER, MEMBERS): (
        ("group", ALWAYS, None),
        ("consumer_id", ALWAYS, None),
        ("group_instance_id", ALWAYS, None),
        ("host", ALWAYS, None),
        ("client_id", ALWAYS, None),
        ("partitions", ALWAYS, None),
        ("assignment", VERBOSE, BEFORE_4_0),
        ("current_epoch", VERBOSE, SINCE_4_0),
        ("current_assignment", VERBOSE, SINCE_4_0),
        ("target_epoch", VERBOSE, SINCE_4_0),
        ("target_assignment", VERBOSE, SINCE_4_0),
        ("upgraded", VERBOSE, SINCE_4_0),
    ),
    View(CONSUMER, STATE): (
        ("group", ALWAYS, None),
        ("coordinator", ALWAYS, None),
        ("assignment_strategy", ALWAYS, None),
        ("state", ALWAYS, None),
        ("group_epoch", VERBOSE, SINCE_4_0),
        ("target_assignment_epoch", VERBOSE, SINCE_4_0),
        ("members", ALWAYS, None),
    ),
    View(SHARE, OFFSETS): (
        ("group", ALWAYS, None),
        ("topic", ALWAYS, None),
        ("partition", ALWAYS, None),
        ("leader_epoch", VERBOSE, None),
        ("start_offset", ALWAYS, None),
        ("lag", ALWAYS, None),
    ),
    View(SHARE, MEMBERS): (
        ("group", ALWAYS, None),
        ("consumer_id", ALWAYS, None),
        ("host", ALWAYS, None),
        ("client_id", ALWAYS, None),
        ("partitions", ALWAYS, SINCE_4_1),
        ("member_epoch", VERBOSE, None),
        ("assignment", ALWAYS, None),
    ),
    View(SHARE, STATE): (
        ("group", ALWAYS, None),
        ("coordinator", ALWAYS, None),
        ("state", ALWAYS, None),
        ("group_epoch", VERBOSE, None),
        ("assignment_epoch", VERBOSE, None),
        ("members", ALWAYS, None),
    ),
    View(STREAMS, OFFSETS): (
        ("group", ALWAYS, None),
        ("topic", ALWAYS, None),
        ("partition", ALWAYS, None),
        ("current_offset", VERBOSE, None),
        ("leader_epoch", VERBOSE, None),
        ("log_end_offset", VERBOSE, None),
        ("offset_lag", ALWAYS, None),
    ),
    View(STREAMS, MEMBERS): (
        ("group", ALWAYS, None),
        ("target_assignment_epoch", VERBOSE, None),
        ("topology_epoch", VERBOSE, None),
        ("member", ALWAYS, None),
        ("member_protocol", VERBOSE, None),
        ("member_epoch", VERBOSE, None),
        ("process", ALWAYS, None),
        ("client_id", ALWAYS, None),
        ("assignments", ALWAYS, None),
    ),
    View(STREAMS, STATE): (
        ("group", ALWAYS, None),
        ("coordinator", ALWAYS, None),
        ("state", ALWAYS, None),
        ("group_epoch", VERBOSE, None),
        ("target_assignment_epoch", VERBOSE, None),
        ("members", ALWAYS, None),
    ),
}


def columns_of(view: View, release: str, *, verbose: bool) -> list[str]:
    """Return the columns that the tool of a release prints.

    Args:
        view: Of which groups, and what of them.
        release: As in 3.9 or 4.3.1.
        verbose: With what `--verbose` adds.
    """
    return [
        name
        for name, only, since in _COLUMNS[view]
        if (verbose or only == ALWAYS) and _is_of(release, since)
    ]


def contract_name(name: str, family: str) -> str:
    """Return what our tables call a column of Kafka's tools.

    JSON and CSV say the same word for the same thing in every command: that of the tables.
    """
    if name == "leader_epoch" and family != SHARE:
        return "committed_leader_epoch"
    return _CONTRACT.get(name, name)


def every_column(view: View) -> list[str]:
    """Return the columns that the tool of some release prints."""
    return [name for name, _, _ in _COLUMNS[view]]


def _is_of(release: str, since: str | None) -> bool:
    if since is None:
        return True
    number = release_key(release)
    if since.startswith("-"):
        return number < release_key(since[1:])
    return number >= release_key(since)
