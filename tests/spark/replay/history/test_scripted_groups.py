"""Random histories of groups: what is asked of any epoch equals what the coordinator had then."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from analytics.replay.graph import needed_for, resolve
from analytics.replay.groups.group_records import KINDS
from analytics.replay.history.tables import HISTORY
from analytics.replay.log.coverage import WHOLE
from analytics.replay.log.rules import replay_rules
from tests.support.decoded_frames import frames_of
from tests.support.scripted_groups import TOPIC, TOPIC_ID, Scripted, classic_group, consumer_group

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

OFFSETS = "__consumer_offsets"
GROUPS, ACTS = 150, 24
TABLES = ("assignment_history", "group_epochs", "membership_changes")
Found = dict[str, dict[str, list["Row"]]]


def rows_of(scripts: list[Scripted]) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for partition, script in enumerate(scripts):
        for offset, record in enumerate(script.records):
            rows[record.table].append(
                {
                    "topic": OFFSETS,
                    "partition": partition,
                    "offset": offset,
                    "leader_epoch": 1,
                    "batch_offset": record.batch,
                    "is_tombstone": record.value is None,
                    "key": record.key,
                    "value": record.value,
                }
            )
    return rows


@pytest.fixture(scope="module")
def scripts() -> list[Scripted]:
    played = [consumer_group(f"consumer-{seed}", seed, ACTS) for seed in range(GROUPS)]
    played += [classic_group(f"classic-{seed}", seed, ACTS // 2) for seed in range(GROUPS)]
    return [script for script in played if script.records]


@pytest.fixture(scope="module")
def found(spark: SparkSession, scripts: list[Scripted]) -> Found:
    decoded = frames_of(spark, rows_of(scripts), (*KINDS, "offset_commit"))
    topics = spark.createDataFrame([(TOPIC, TOPIC_ID)], "topic string, topic_id string")
    given = {
        "cut": decoded,
        "topics": topics,
        "rules": replay_rules("4.3"),
        "coverage": WHOLE,
    }
    made = resolve(needed_for(HISTORY, TABLES), given)
    by_table: Found = {}
    for name in TABLES:
        by_group = by_table.setdefault(name, defaultdict(list))
        for row in made[name].collect():
            by_group[row.group_id].append(row)
    return by_table


def test_every_epoch_is_there_with_its_members(found: Found, scripts: list[Scripted]) -> None:
    for script in scripts:
        rows = sorted(found["group_epochs"][script.group], key=lambda row: row.from_offset)
        told = [
            (row.group_type, row.life, row.epoch, row.from_offset, row.member_count) for row in rows
        ]
        assert told == [
            (each.family, each.life, each.epoch, each.from_offset, len(each.members))
            for each in script.epochs
        ], script.group


def test_epochs_say_who_came_and_went_and_what_left_no_record(
    found: Found, scripts: list[Scripted]
) -> None:
    for script in scripts:
        rows = sorted(found["group_epochs"][script.group], key=lambda row: row.from_offset)
        told = [(row.members_joined, row.members_left, row.missing_before) for row in rows]
        assert told == [(each.joined, each.left, each.missing_before) for each in script.epochs], (
            script.group
        )


def test_the_assignor_is_the_one_that_most_members_name(
    found: Found, scripts: list[Scripted]
) -> None:
    for script in scripts:
        rows = sorted(found["group_epochs"][script.group], key=lambda row: row.from_offset)
        for row, each in zip(rows, script.epochs, strict=True):
            if each.family == "consumer":
                assert row.protocol in each.protocols, (script.group, each.epoch)


def test_what_members_had_at_any_epoch(found: Found, scripts: list[Scripted]) -> None:
    for script in scripts:
        rows = found["assignment_history"][script.group]
        for each in script.epochs:
            had = {
                (row.kind, row.member_id, row.partition)
                for row in rows
                if row.life == each.life
                and row.from_epoch <= each.epoch
                and (row.to_epoch is None or row.to_epoch > each.epoch)
            }
            assert had == each.had, (script.group, each.life, each.epoch)
        assert {row.topic for row in rows} <= {TOPIC}


def test_changes_of_members_add_up_to_the_members(found: Found, scripts: list[Scripted]) -> None:
    for script in scripts:
        there: dict[str, set[str]] = {}
        changes = found["membership_changes"][script.group]
        for row in sorted(changes, key=lambda row: (row.record_offset, row.change != "left")):
            if row.change == "left":
                assert set(row.lost) == there.pop(row.member_id), script.group
            else:
                assert (row.member_id not in there) == (row.change == "joined")
                held = there.setdefault(row.member_id, set())
                assert held.isdisjoint(row.gained)
                assert held >= set(row.lost)
                held |= set(row.gained)
                held -= set(row.lost)
        last = {who: {f"{TOPIC}-{each}" for each in given} for who, given in script.has.items()}
        assert there == last, script.group
