"""Client assignors `sticky` and `cooperative-sticky`: even sizes, as few moves as possible."""

from __future__ import annotations

from collections.abc import Mapping

from analytics.assignors.client.racks import Racks
from analytics.assignors.client.sticky_claims import settle_claims
from analytics.assignors.client.sticky_equal import share_equally
from analytics.assignors.client.sticky_general import balance_generally
from analytics.assignors.group import Assignment, Group, TopicPartition, by_topic
from analytics.assignors.java_order import members_in_order

_Target = dict[str, list[TopicPartition]]


def assign_sticky(group: Group) -> Assignment:
    """Keep what members own as far as sizes stay even, and deal the rest (`StickyAssignor`).

    With equal subscriptions sizes differ by at most one. With different ones no single partition
    could go to a member that has two less.
    """
    target, _ = _target(group)
    return _finished(group, target)


def assign_cooperative_sticky(group: Group) -> Assignment:
    """Aim at what `sticky` gives, but leave out what its owner must first let go (KIP-429).

    Such a partition is nobody's until the rebalance that follows (`CooperativeStickyAssignor`).
    """
    target, changing = _target(group)
    if changing is None:
        changing = _changing_owner(group, target)
    for partition, member in changing.items():
        target[member].remove(partition)
    return _finished(group, target)


def _target(group: Group) -> tuple[_Target, dict[TopicPartition, str] | None]:
    """Return who shall own what, and what changes hands where the algorithm tells that itself."""
    if not group.members:
        return {}, {}
    claims = settle_claims(group, members_in_order(group))
    racks = Racks(group)
    if group.subscriptions_are_equal:
        shares = share_equally(group, claims, racks)
        return shares.assigned, shares.changing
    return balance_generally(group, claims, racks), None


def _changing_owner(
    group: Group, target: Mapping[str, list[TopicPartition]]
) -> dict[TopicPartition, str]:
    owned = {
        member.id: {(topic, p) for topic, ps in group.owned(member).items() for p in ps}
        for member in group.members
    }
    lost = {
        partition
        for member, partitions in owned.items()
        for partition in partitions.difference(target[member])
    }
    return {
        partition: member
        for member, partitions in target.items()
        for partition in partitions
        if partition in lost and partition not in owned[member]
    }


def _finished(group: Group, target: Mapping[str, list[TopicPartition]]) -> Assignment:
    return {member.id: by_topic(target[member.id]) for member in group.members}
