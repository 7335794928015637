"""What type each group of a random history was of after every record, and its epoch."""

from __future__ import annotations

from collections import defaultdict

from tests.support.reference_group_coordinator import ReferenceGroupCoordinator
from tests.support.reference_groups import ClassicGroup, Group, ModernGroup
from tests.support.reference_offsets import GroupRecord

Known = tuple[str | None, int | None]
"""Type and epoch; of a simple group, and where there is none, neither."""


def known(group: Group | None) -> Known:
    if isinstance(group, ClassicGroup):
        return "classic", group.value["generation"]
    return (group.family, group.epoch) if isinstance(group, ModernGroup) else (None, None)


def told_one_by_one(history: list[GroupRecord], release: str) -> dict[str, list[tuple[int, Known]]]:
    """Return what each group was after every record."""
    coordinator = ReferenceGroupCoordinator(release)
    told: dict[str, list[tuple[int, Known]]] = defaultdict(list)
    keys = [{"group_id": record.key.get("group"), **record.key} for record in history]
    names = {str(key["group_id"]) for key in keys if key["group_id"]}
    for record in history:
        coordinator.replay(record)
        for name in names:
            told[name].append((record.offset, known(coordinator.groups.groups.get(name))))
    return told
