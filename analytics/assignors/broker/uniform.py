"""Broker assignor `server-uniform` (`UniformAssignor`, the default of KIP-848)."""

from __future__ import annotations

from collections.abc import Sequence

from analytics.assignors.broker.uniform_general import balance_topics
from analytics.assignors.group import (
    Assignment,
    Group,
    Member,
    TopicPartition,
    by_topic,
    refuse_unknown_topics,
)
from analytics.assignors.java_order import (
    copied_topics_in_order,
    members_in_order,
    partitions_in_order,
    subscription_in_order,
    topics_in_order,
)

Owned = dict[str, dict[str, list[int]]]
"""Member id to topic to partitions, topics and partitions in the order Kafka walks them."""


def assign_uniform(group: Group) -> Assignment:
    """Keep current partitions as far as sizes stay even, and fill up the rest.

    With equal subscriptions sizes differ by at most one, and no more partitions move than that
    takes. With different ones it is the sizes within each topic's subscribers that are evened
    out, in at most 16 passes. Racks play no part (4.0 and later).

    Raises:
        AssignmentRefusedError: A member wants a topic the brokers do not know.
    """
    refuse_unknown_topics(group)
    members = members_in_order(group)
    if not any(member.subscription for member in members):
        return {}
    owned = _owned_once(group, members)
    if not group.subscriptions_are_equal:
        return balance_topics(group, members, owned)
    target = _fill_up(group, members, owned)
    return {member.id: by_topic(target[member.id]) for member in group.members}


def _owned_once(group: Group, members: Sequence[Member]) -> Owned:
    """Return what each member owns of what it wants; of two owners the first one counts.

    Kafka gives up on a partition with two owners, which its own records never hold.
    """
    ids = group.ids_of_topics()
    taken: set[TopicPartition] = set()
    owned: Owned = {}
    for member in members:
        current = group.owned(member)
        owned[member.id] = {}
        for topic in topics_in_order(ids, current):
            if topic in member.subscription:
                kept = [p for p in partitions_in_order(current[topic]) if (topic, p) not in taken]
                taken.update((topic, partition) for partition in kept)
                owned[member.id][topic] = kept
    return owned


def _fill_up(
    group: Group, members: Sequence[Member], owned: Owned
) -> dict[str, list[TopicPartition]]:
    """Cut members down to their quota in turn, then fill those below it in turn."""
    free = _free(group, owned)
    total = sum(group.topics[topic] for topic in members[0].subscription)
    small, extras = divmod(total, len(members))
    target: dict[str, list[TopicPartition]] = {}
    quotas: list[int] = []
    for place, member in enumerate(members):
        quota = small + (extras > 0)
        kept, revoked = _cut(owned[member.id], quota)
        free += revoked
        # An extra is passed on by who cannot use it at once, unless as many are left as members.
        if extras > 0 and len(kept) < quota and len(members) - place > extras:
            quota -= 1
        elif extras > 0:
            extras -= 1
        target[member.id] = kept
        quotas.append(quota)
    start = 0
    for member, quota in zip(members, quotas, strict=True):
        end = start + quota - len(target[member.id])
        target[member.id] += free[start:end]
        start = end
    return target


def _free(group: Group, owned: Owned) -> list[TopicPartition]:
    taken = {
        (topic, partition)
        for topics in owned.values()
        for topic, partitions in topics.items()
        for partition in partitions
    }
    wanted = copied_topics_in_order(
        group.ids_of_topics(), subscription_in_order(group.members[0].subscription)
    )
    return [
        (topic, partition)
        for topic in wanted
        for partition in range(group.topics[topic])
        if (topic, partition) not in taken
    ]


def _cut(
    owned: dict[str, list[int]], quota: int
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """Return what a member keeps and what it gives up."""
    held = [(topic, partition) for topic, partitions in owned.items() for partition in partitions]
    return held[:quota], held[quota:]
