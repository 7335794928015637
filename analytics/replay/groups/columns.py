"""The columns that the fold of group records reads and makes, as Arrow has them.

What a record says stands in the same columns whatever its type: a classic value holds all members
of its group (``members``) and what they were given (``items``), other records those of one member.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from analytics.replay.groups.group_records import FAMILIES, KINDS, MEMBER_ROLES

# Kinds of items that a record about a group holds, besides the roles `current` and `target`.

PRESENCE, SUBSCRIPTION, ASSIGNOR = "presence", "subscription", "assignor"


COMMIT = len(KINDS)
"""The kind of the one row of a group that tells of commits: the first since it was last removed."""

TEXT, NUMBER = pa.string(), pa.int32()

MEMBER_DETAILS = pa.struct(
    {
        "member_id": TEXT,
        "group_instance_id": TEXT,
        "client_id": TEXT,
        "client_host": TEXT,
        "rack_id": TEXT,
        "subscribed_topics": pa.list_(TEXT),
        "subscribed_regex": TEXT,
        "server_assignor": TEXT,
        "rebalance_timeout_ms": NUMBER,
        "session_timeout_ms": NUMBER,
        "is_classic": pa.bool_(),
        "process_id": TEXT,
        "topology_epoch": NUMBER,
        "subscription_fields_written": NUMBER,
        "assignment_fields_written": NUMBER,
        "missing": TEXT,
    }
)
"""What a record says of a member; only a classic value names it here."""

ITEMS = pa.struct(
    {
        "member_id": TEXT,
        "kind": TEXT,
        "role": TEXT,
        "subtopology_id": TEXT,
        "topic": TEXT,
        "topic_id": TEXT,
        "partitions": pa.list_(NUMBER),
    }
)
"""What a record gives a member; `analytics.replay.groups.coordinator_log` has further kinds."""

RECORDS = pa.schema(
    {
        "coordinator_partition": NUMBER,
        "group_id": TEXT,
        "kind": NUMBER,
        "member_id": TEXT,
        "offset": pa.int64(),
        "is_tombstone": pa.bool_(),
        "leader_epoch": NUMBER,
        "epoch": NUMBER,
        "previous_epoch": NUMBER,
        "member_state": NUMBER,
        "validated_epoch": NUMBER,
        "protocol": TEXT,
        "leader": TEXT,
        "protocol_type": TEXT,
        "state_ms": pa.int64(),
        "members": pa.list_(MEMBER_DETAILS),
        "items": pa.list_(ITEMS),
    }
)
"""A row per record about a group; ``kind`` is its place in `KINDS`, or `COMMIT`."""

GROUPS = pa.struct(
    {
        "group_type": TEXT,
        "protocol_type": TEXT,
        "state": TEXT,
        "epoch": NUMBER,
        "assignment_epoch": NUMBER,
        "protocol": TEXT,
        "leader": TEXT,
        "state_ms": pa.int64(),
        "member_count": NUMBER,
        "record_offset": pa.int64(),
        "leader_epoch": NUMBER,
        "known_from": pa.int64(),
    }
)
"""`groups` but completeness; ``known_from``: records of the present life have greater offsets."""

MEMBERS = pa.struct(
    [
        pa.field("group_type", TEXT),
        *MEMBER_DETAILS,
        pa.field("member_epoch", NUMBER),
        pa.field("previous_member_epoch", NUMBER),
        pa.field("state", TEXT),
    ]
)
"""`members` but completeness."""

ASSIGNMENTS = pa.struct(
    {
        "group_type": TEXT,
        "epoch": NUMBER,
        "member_id": TEXT,
        "kind": TEXT,
        "role": TEXT,
        "subtopology_id": TEXT,
        "topic": TEXT,
        "topic_id": TEXT,
        "partition": NUMBER,
    }
)
"""`assignments`; ``topic`` is null where records name topics by id."""

STATE = pa.schema(
    {
        "coordinator_partition": NUMBER,
        "group_id": TEXT,
        "a_group": GROUPS,
        "a_member": MEMBERS,
        "an_assignment": ASSIGNMENTS,
    }
)
"""What the fold makes: in each row one of the last three, or none of a group that is gone."""

PENDING = "pending_revocation"
"""A kind of items besides those that are named as roles are: what a member gives back."""

CLASSIC, CONSUMER, SHARE, STREAMS = range(len(FAMILIES))

_kinds = list(KINDS.values())
FAMILY_OF = np.array([FAMILIES.index(each.family) for each in _kinds] + [-1])
ROLE_OF = np.array([each.role for each in _kinds] + [""])
CREATES = np.array([each.creates for each in _kinds] + [False])
OF_MEMBERS = np.isin(ROLE_OF, MEMBER_ROLES)
"""Of each kind: its family (-1: a commit), its role, whether a value makes the group, whether it is
about a member."""
