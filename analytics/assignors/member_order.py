"""The order in which range and round robin serve members (`MemberInfo`, broker `RangeAssignor`)."""

from __future__ import annotations

from collections.abc import Iterable

from analytics.assignors.group import Member
from analytics.assignors.java_order import sort_key


def static_first(members: Iterable[Member]) -> list[Member]:
    """Return static members by instance id, then the others by member id.

    So a restarted static member, whose member id is new, gets its old partitions again.
    """
    return sorted(members, key=_place)


def _place(member: Member) -> tuple[bool, bytes, bytes]:
    is_dynamic = member.instance_id is None
    return is_dynamic, sort_key(member.instance_id or ""), sort_key(member.id)
