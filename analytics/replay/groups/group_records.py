"""The columns that the fold of group records reads and makes: as Arrow has them, and as numbers.

Which records tell about groups besides their offsets: of which type of group, and what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]


GROUP_KEY = ("coordinator_partition", "group_id")
CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
FAMILIES = (CLASSIC, CONSUMER, SHARE, STREAMS)
CONSUMER_PROTOCOL = "consumer"
"""`protocol_type` of a classic group whose members are consumers."""

REMOVED_ASSIGNMENT_EPOCH = -1
"""The epoch of an assignment after the tombstone of its record."""

GROUP = "group"
MEMBER = "member"
CURRENT = "current"
TARGET = "target"
ASSIGNMENT_EPOCH = "assignment_epoch"
TOPOLOGY = "topology"
OTHER = "other"


@dataclass(frozen=True)
class Kind:
    """What a table of records says about groups of a type.

    Attributes:
        family: The type of group.
        role: What of the group the record is about.
        creates: A value makes the group where there is none ("get or create").
    """

    family: str
    role: str
    creates: bool = True

    @property
    def group_field(self) -> str:
        """The field of the key that holds the group id."""
        return "group" if self.family == CLASSIC else "group_id"


KINDS = {
    "group_metadata": Kind(CLASSIC, GROUP),
    "consumer_group_metadata": Kind(CONSUMER, GROUP),
    "consumer_group_partition_metadata": Kind(CONSUMER, OTHER),
    "consumer_group_member_metadata": Kind(CONSUMER, MEMBER),
    "consumer_group_target_assignment_metadata": Kind(CONSUMER, ASSIGNMENT_EPOCH),
    "consumer_group_target_assignment_member": Kind(CONSUMER, TARGET),
    "consumer_group_current_member_assignment": Kind(CONSUMER, CURRENT),
    "consumer_group_regular_expression": Kind(CONSUMER, OTHER),
    "share_group_metadata": Kind(SHARE, GROUP),
    "share_group_partition_metadata": Kind(SHARE, OTHER, creates=False),
    "share_group_member_metadata": Kind(SHARE, MEMBER),
    "share_group_target_assignment_metadata": Kind(SHARE, ASSIGNMENT_EPOCH),
    "share_group_target_assignment_member": Kind(SHARE, TARGET),
    "share_group_current_member_assignment": Kind(SHARE, CURRENT),
    "share_group_state_partition_metadata": Kind(SHARE, OTHER),
    "streams_group_metadata": Kind(STREAMS, GROUP),
    "streams_group_member_metadata": Kind(STREAMS, MEMBER),
    "streams_group_target_assignment_metadata": Kind(STREAMS, ASSIGNMENT_EPOCH),
    "streams_group_target_assignment_member": Kind(STREAMS, TARGET),
    "streams_group_current_member_assignment": Kind(STREAMS, CURRENT),
    "streams_group_topology": Kind(STREAMS, TOPOLOGY),
}
"""What each decoded table of `__consumer_offsets` but `offset_commit` says about groups."""

MEMBER_ROLES = (MEMBER, CURRENT, TARGET)


def table_name(family: str, role: str) -> str:
    """Return the decoded table of a type of group and a role."""
    return next(name for name, kind in KINDS.items() if kind.family == family and kind.role == role)


# The columns that the fold of group records reads and makes, as Arrow has them.
#
# What a record says stands in the same columns whatever its type: a classic value holds all
# members of its group (``members``) and what they were given (``items``), other records those of
# one member.

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

CLASSIC_FAMILY, CONSUMER_FAMILY, SHARE_FAMILY, STREAMS_FAMILY = range(len(FAMILIES))

_kinds = list(KINDS.values())
FAMILY_OF = np.array([FAMILIES.index(each.family) for each in _kinds] + [-1])
ROLE_OF = np.array([each.role for each in _kinds] + [""])
CREATES = np.array([each.creates for each in _kinds] + [False])
OF_MEMBERS = np.isin(ROLE_OF, MEMBER_ROLES)
"""Of each kind: its family (-1: a commit), its role, whether a value makes the group, whether it is
about a member."""


# Values as numbers: what is equal has the same number, and numbers are quick to sort and group.

_MOST: Final = 2**62
"""So many combinations one number can tell apart."""


def codes(column: pl.Series) -> Numbers:
    """Number the different values of a column; null is one of them."""
    if column.null_count() == len(column):
        return np.zeros(len(column), np.int64)
    return _encoded(column.to_arrow(compat_level=pl.CompatLevel.oldest()))


def combined(*columns: Numbers) -> Numbers:
    """Return for each combination of numbers, none of them negative, a number of its own."""
    # Numbers of rows are of 32 bits.
    found, count = columns[0].astype(np.int64, copy=False), int(columns[0].max(initial=0)) + 1
    for column in columns[1:]:
        width = int(column.max(initial=0)) + 1
        if count * width > _MOST:
            found, count = _encoded(pa.array(found)), len(found)
        found, count = found * width + column, count * width
    return found


def dense(*columns: Numbers) -> tuple[Numbers, int]:
    """Number combinations of numbers without gaps, in the order of their first row; say how many.

    None of the numbers is negative.
    """
    found = _encoded(pa.array(combined(*columns)))
    return found, int(found.max(initial=-1)) + 1


def grouped(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Return rows by their number, those of the same one in order, and where each one begins."""
    # What comes from records is almost in order, and then this sort is done at once.
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    is_other = np.ones(len(order), bool)
    is_other[1:] = ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(is_other)


def _encoded(values: pa.Array) -> Numbers:
    encoded = values.dictionary_encode(null_encoding="encode")
    found: Numbers = encoded.indices.to_numpy().astype(np.int64)
    return found


# Records of groups as numbers: which group, which key and which kind each row is about.

NONE = -1
"""No row; less than any."""


@dataclass(frozen=True)
class CodedLog:
    """Rows of `RECORDS`, those of a group in the order of their offsets.

    So of two rows of a group the one with the greater number is the later record.

    Attributes:
        rows: The rows.
        group: Of each row, its group; a name in two partitions is two groups.
        key: Of each row, what Kafka's log cleaner goes by: group, kind and member.
        member: Of each row, the member it is about; null is one of them.
        kind: Of each row, its place in `KINDS`, or `COMMIT`.
        is_value: Of each row, whether it is neither a tombstone nor a commit.
        is_tombstone: Of each row.
        groups: How many groups there are.
        keys: How many keys there are.
    """

    rows: pa.Table
    group: Numbers
    key: Numbers
    member: Numbers
    kind: Numbers
    is_value: Flags
    is_tombstone: Flags
    groups: int
    keys: int

    @property
    def family(self) -> Numbers:
        """Of each row, the number of its type of group."""
        found: Numbers = FAMILY_OF[self.kind]
        return found

    def is_of(self, role: str) -> Flags:
        """Of each row, whether it is in a role."""
        found: Flags = np.equal(ROLE_OF, role)[self.kind]
        return found

    @property
    def makes_group(self) -> Flags:
        """Of each row, whether it makes the group where there is none."""
        found: Flags = CREATES[self.kind] & self.is_value
        return found


def coded(rows: pa.Table) -> CodedLog:
    """Number what rows of `RECORDS` are about."""
    rows = rows.combine_chunks()
    kind = numbers(rows.column("kind"))
    group, groups = dense(
        numbers(rows.column("coordinator_partition")), _words(rows.column("group_id"))
    )
    member = _words(rows.column("member_id"))
    key, keys = dense(group, kind, member)
    is_tombstone = flags(rows.column("is_tombstone"))
    is_value = ~is_tombstone & (kind != COMMIT)
    return CodedLog(rows, group, key, member, kind, is_value, is_tombstone, groups, keys)


def numbers(column: pa.ChunkedArray | pa.Array, null: int = NONE) -> Numbers:
    """Return numbers, another one for null."""
    wide = pc.fill_null(column.cast(pa.int64()), null)
    found: Numbers = wide.to_numpy(**_copying(column))
    return found


def flags(column: pa.ChunkedArray | pa.Array) -> Flags:
    """Return truths; null is false."""
    found: Flags = pc.fill_null(column, fill_value=False).to_numpy(**_copying(column))
    return found


def last_row(code: Numbers, where: Flags, size: int) -> Numbers:
    """Return by code its last row among those where something holds, else `NONE`."""
    rows = np.flatnonzero(where)
    found = np.full(size, NONE, np.int64)
    # Of what is written to one place the last stays.
    found[code[rows]] = rows
    return found


def first_row(code: Numbers, where: Flags, size: int) -> Numbers:
    """Return by code its first row among those where something holds, else `NONE`."""
    rows = np.flatnonzero(where)[::-1]
    found = np.full(size, NONE, np.int64)
    found[code[rows]] = rows
    return found


def _words(column: pa.ChunkedArray) -> Numbers:
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return numbers(encoded.indices)


def _copying(column: pa.ChunkedArray | pa.Array) -> dict[str, bool]:
    return {} if isinstance(column, pa.ChunkedArray) else {"zero_copy_only": False}
