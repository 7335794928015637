"""What `assignment_balance` must say of a printed log at its end: group by group, slow, and plain.

Written from docs/balance.md.
"""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.support.plain_balance import fewest_moves
from tests.support.plain_coordinator import Item, PlainCoordinator
from tests.support.reference_groups import ClassicGroup, Group, ModernGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.plain_log import PlainTopic

Row = dict[str, Any]


def plain_balances(
    coordinator: PlainCoordinator, topics: Mapping[str, PlainTopic]
) -> dict[str, Row]:
    """Return the columns of `assignment_balance` that are held against this, by group.

    Args:
        coordinator: With all records applied.
        topics: Those that are there, by name; empty where no metadata log tells.
    """
    return {
        name: _row(coordinator, name, group, topics)
        for name, group in coordinator.groups.items()
        if coordinator.held(name)
    }


def _row(
    coordinator: PlainCoordinator, name: str, group: Group, topics: Mapping[str, PlainTopic]
) -> Row:
    held = coordinator.held(name)
    family, epoch = _kind(group)
    row: Row = {"group_type": family, "epoch": epoch, "member_count": len(held)}
    assigned = {member: items for member, items in held.items() if items is not None}
    if len(assigned) < len(held):
        unread = ("topic_count", "min_partitions", "max_partitions", "mean_partitions", "score")
        return {**row, **dict.fromkeys(unread)}
    row |= _sizes(assigned)
    wanted = _wanted(coordinator, name, family, topics) if topics else None
    if wanted is not None:
        owned = {item for items in assigned.values() for item in items}
        row["partition_count"] = len(wanted)
        row["unassigned_partitions"] = len(wanted - owned)
        row["score"] = _score([*map(len, assigned.values())], len(owned & wanted), len(wanted))
    return row


def _kind(group: Group) -> tuple[str, int]:
    if isinstance(group, ModernGroup):
        return group.family, group.epoch
    assert isinstance(group, ClassicGroup)
    return "classic", group.value["generation"]


def _sizes(assigned: Mapping[str, set[Item]]) -> Row:
    sizes = {member: len(items) for member, items in assigned.items()}
    owners = Counter(item for items in assigned.values() for item in items)
    most, fewest = max(sizes.values()), min(sizes.values())
    of_size = {size: min(m for m, each in sizes.items() if each == size) for size in (most, fewest)}
    return {
        "topic_count": len({topic for topic, _ in owners}),
        "min_partitions": fewest,
        "max_partitions": most,
        "mean_partitions": statistics.fmean(sizes.values()),
        "stddev_partitions": statistics.pstdev(sizes.values()),
        "idle_members": sum(size == 0 for size in sizes.values()),
        "shared_partitions": sum(count > 1 for count in owners.values()),
        "member_with_most": of_size[most] if most > fewest else None,
        "member_with_fewest": of_size[fewest] if most > fewest else None,
    }


def _wanted(
    coordinator: PlainCoordinator, name: str, family: str, topics: Mapping[str, PlainTopic]
) -> set[Item] | None:
    """Return what there is to assign; None where something of it is not known."""
    if family == "streams":
        return _tasks(coordinator, name, topics)
    found = set()
    for subscribed in coordinator.wanted(name).values():
        if subscribed is None:
            return None
        for topic in subscribed:
            if topic not in topics:
                return None
            label = topic if family == "classic" else topics[topic].topic_id
            found |= {(label, number) for number in range(topics[topic].partitions)}
    if family == "share":
        return found & coordinator.initialized[name] if name in coordinator.initialized else None
    return found


def _tasks(
    coordinator: PlainCoordinator, name: str, topics: Mapping[str, PlainTopic]
) -> set[Item] | None:
    found = set()
    for subtopology, sources in coordinator.sources(name).items():
        if not sources or any(topic not in topics for topic in sources):
            return None
        widest = max(topics[topic].partitions for topic in sources)
        found |= {(subtopology, number) for number in range(widest)}
    return found


def _score(sizes: list[int], owned: int, wanted: int) -> float:
    """100 where nothing has to move and all have an owner; 0 where one has all, or nobody any."""
    if not wanted:
        return 100.0
    alone = fewest_moves([sum(sizes), *[0] * (len(sizes) - 1)])
    evenness = 1 - fewest_moves(sizes) / alone if alone else 1.0
    return 100 * evenness * owned / wanted
