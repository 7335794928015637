"""Random histories: a group's offsets expire by the type that a slow coordinator knew."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from analytics.replay.removals.group_spans import group_spans
from tests.support.expiration_logs import log_of
from tests.support.group_histories import decoded_rows, random_history
from tests.support.reference_group_coordinator import ReferenceGroupCoordinator
from tests.support.reference_groups import ClassicGroup, Group, ModernGroup

if TYPE_CHECKING:
    from tests.support.reference_offsets import GroupRecord

HISTORIES = 400


def family_of(group: Group | None) -> str | None:
    """Of a simple group, and where there is none, nothing."""
    if isinstance(group, ClassicGroup):
        return "classic"
    return group.family if isinstance(group, ModernGroup) else None


def told_one_by_one(
    history: list[GroupRecord], release: str
) -> dict[str, list[tuple[int, str | None]]]:
    """Return the type of each group after every record."""
    coordinator = ReferenceGroupCoordinator(release)
    told: dict[str, list[tuple[int, str | None]]] = defaultdict(list)
    keys = [{"group_id": record.key.get("group"), **record.key} for record in history]
    names = {str(key["group_id"]) for key in keys if key["group_id"]}
    for record in history:
        coordinator.replay(record)
        for name in names:
            told[name].append((record.offset, family_of(coordinator.groups.groups.get(name))))
    return told


@pytest.mark.parametrize("release", ["4.0", "4.3"])
def test_what_its_offsets_expire_by_goes_by_the_same_type(release: str) -> None:
    chance = random.Random(f"types {release}")
    histories = [random_history(chance, number, release) for number in range(HISTORIES)]
    log = log_of(decoded_rows(chain.from_iterable(histories)), release, "current")
    rows: dict[str, list[tuple[int, str | None]]] = defaultdict(list)
    spans = group_spans(log.records.decoded, log.records.commits)
    for each in spans.sort("from_offset").iter_rows(named=True):
        rows[each["group_id"]].append((each["from_offset"], each["family"]))
    taken_over = spans.filter(spans["family"].is_in(["consumer", "streams"])).height
    assert taken_over > HISTORIES / 20
    for history in histories:
        for name, expected in told_one_by_one(history, release).items():
            for offset, family in expected:
                place = bisect_right(rows[name], offset, key=lambda each: each[0])
                assert (rows[name][place - 1][1] if place else None) == family, (name, offset)
