"""Random histories of groups: what is asked of any epoch equals what the coordinator had then."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from analytics.replay.history.group_history import group_history, group_steps
from analytics.replay.log.losses import WHOLE
from analytics.replay.log.rules import replay_rules
from tests.support.history_log import Written, history_rows, rows_by_group, topic_names
from tests.support.reference_offsets import GroupRecord
from tests.support.scripted_groups import TOPIC, TOPIC_ID, Scripted, classic_group, consumer_group

GROUPS, ACTS = 150, 24
TABLES = ("assignment_history", "group_epochs", "membership_changes")
Found = dict[str, dict[str, list[SimpleNamespace]]]


@pytest.fixture(scope="module")
def scripts() -> list[Scripted]:
    played = [consumer_group(f"consumer-{seed}", seed, ACTS) for seed in range(GROUPS)]
    played += [classic_group(f"classic-{seed}", seed, ACTS // 2) for seed in range(GROUPS)]
    return [script for script in played if script.records]


@pytest.fixture(scope="module")
def found(scripts: list[Scripted]) -> Found:
    rows = history_rows(
        Written(GroupRecord(partition, offset, each.table, each.key, each.value), each.batch)
        for partition, script in enumerate(scripts)
        for offset, each in enumerate(script.records)
    )
    names, rules = topic_names({TOPIC_ID: TOPIC}), replay_rules("4.3")
    made = group_history(group_steps(rows, rules), rows, names, rules, WHOLE)
    return {name: rows_by_group(made[name]) for name in TABLES}


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
