"""Random histories: what type a group was of, and its epoch, is what a slow coordinator knew."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from analytics.replay.graph import needed_for, resolve
from analytics.replay.history.ownership import group_moments
from analytics.replay.history.tables import HISTORY
from analytics.replay.log.coverage import WHOLE
from analytics.replay.log.rules import replay_rules
from schemas import table
from tests.support.decoded_frames import frames_of
from tests.support.group_histories import TABLES, decoded_rows, random_history
from tests.support.reference_group_coordinator import ReferenceGroupCoordinator
from tests.support.reference_groups import ClassicGroup, Group, ModernGroup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.replay.log.as_of import Decoded
    from tests.support.reference_offsets import GroupRecord

HISTORIES = 400
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


@dataclass
class Played:
    """Histories, and the decoded tables they are in."""

    release: str
    histories: list[list[GroupRecord]]
    cut: Decoded


@pytest.fixture(scope="module", params=["4.0", "4.3"])
def played(spark: SparkSession, request: pytest.FixtureRequest) -> Played:
    release = request.param
    chance = random.Random(f"types {release}")
    histories = [random_history(chance, number, release) for number in range(HISTORIES)]
    rows = decoded_rows(chain.from_iterable(histories))
    return Played(release, histories, frames_of(spark, rows, (*TABLES, "transaction_log")))


def test_what_a_group_was_after_every_record(spark: SparkSession, played: Played) -> None:
    given = {
        "cut": played.cut,
        "topics": spark.createDataFrame([], table("topics").ddl(not_null=False)),
        "rules": replay_rules(played.release),
        "coverage": WHOLE,
    }
    made = resolve(needed_for(HISTORY, ["owned", "group_steps"]), given)
    moments = group_moments(made["group_steps"], made["owned"]).where("group is not null")
    rows: dict[str, list[tuple[int, Known]]] = defaultdict(list)
    for each in moments.orderBy("position").collect():
        rows[each.group_id].append((each.position, (each.group.family, each.group.epoch)))
    taken_over = made["group_steps"].where("takes_over is not null").count()
    assert taken_over > HISTORIES / 20
    first = replay_rules(played.release).initial_epoch
    for history in played.histories:
        for name, expected in told_one_by_one(history, played.release).items():
            found = rows[name]
            for offset, (family, epoch) in expected:
                place = bisect_right(found, offset, key=lambda each: each[0])
                here = found[place - 1][1] if place else (None, None)
                assert here[0] == family, (name, offset)
                assert (first if family and here[1] is None else here[1]) == epoch, (name, offset)
