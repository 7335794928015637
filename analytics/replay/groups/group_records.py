"""Which records tell about groups besides their offsets: of which type of group, and what."""

from __future__ import annotations

from dataclasses import dataclass

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
