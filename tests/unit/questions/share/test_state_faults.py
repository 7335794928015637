"""Records that no share coordinator writes after those before them are found, and no others."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

from analytics.questions.share.backlog import evaluate_share
from analytics.questions.share.settings import DELIVERY_LIMIT, Setting, ShareSettings
from schemas.share_rules import share_rules
from tests.support.broker_state import CutBatch
from tests.support.examples import examples
from tests.support.reference_share_coordinator import ShareRecord, Snapshot, Update
from tests.support.share_leader import random_leader
from tests.unit.questions.share.backlog import BEGIN, SETTINGS, question, time_of

KEY = ("g", "topic", 0)
FIRST = Snapshot(4, 2, 3, 10, 0, 1, 1, ())
SECOND = replace(FIRST, snapshot_epoch=5)
UPDATE = Update(4, 3, 10, 0, ())


def stored(first: int, last: int, state: int, count: int) -> Update:
    return replace(UPDATE, batches=(CutBatch(first, last, state, count),))


def faults(*values: Snapshot | Update | None, **more: Any) -> list[tuple[Any, ...]]:
    records = [ShareRecord(0, place, KEY, value) for place, value in enumerate(values)]
    found = evaluate_share(question(records, **more)).faults
    names = ("fault", "before", "found", "record_offset")
    return [tuple(each[name] for name in names) for each in found.to_dicts()]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ((FIRST, replace(SECOND, state_epoch=1)), ("state_epoch_back", 2, 1, 1)),
        ((FIRST, FIRST), ("snapshot_epoch_back", 4, 4, 1)),
        ((FIRST, replace(FIRST, snapshot_epoch=3)), ("snapshot_epoch_back", 4, 3, 1)),
        ((FIRST, replace(FIRST, snapshot_epoch=6)), ("snapshot_skipped", 4, 6, 1)),
        ((FIRST, replace(UPDATE, snapshot_epoch=5)), ("other_snapshot", 4, 5, 1)),
        ((FIRST, replace(UPDATE, leader_epoch=2)), ("leader_epoch_back", 3, 2, 1)),
        ((FIRST, replace(SECOND, leader_epoch=2)), ("leader_epoch_back", 3, 2, 1)),
        ((FIRST, replace(UPDATE, start_offset=9)), ("start_offset_back", 10, 9, 1)),
        ((FIRST, replace(SECOND, start_offset=9)), ("start_offset_back", 10, 9, 1)),
        (
            (FIRST, replace(UPDATE, batches=(CutBatch(10, 11, 0, 6),))),
            ("delivery_count_over_limit", 5, 6, 1),
        ),
        (
            (FIRST, replace(UPDATE, batches=(CutBatch(12, 11, 0, 1),))),
            ("inverted_range", 12, 11, 1),
        ),
        (
            (FIRST, replace(UPDATE, batches=(CutBatch(10, 11, 7, 1),))),
            ("unknown_delivery_state", None, 7, 1),
        ),
        (
            (FIRST, replace(UPDATE, batches=(CutBatch(10, 11, 1, 1),))),
            ("acquired_stored", None, 1, 1),
        ),
        ((replace(FIRST, batches=(CutBatch(9, 11, 0, 1),)),), ("range_below_start", 10, 9, 0)),
        # ACKNOWLEDGED (2) and ARCHIVED (4) are final, ARCHIVING (3) leads to ARCHIVED alone.
        (
            (replace(FIRST, batches=(CutBatch(10, 19, 2, 1),)), stored(15, 25, 0, 2)),
            ("forbidden_transition", 2, 0, 1),
        ),
        ((FIRST, stored(10, 12, 4, 1), stored(12, 12, 2, 2)), ("forbidden_transition", 4, 2, 2)),
        ((FIRST, stored(10, 12, 3, 1), stored(9, 12, 0, 1)), ("forbidden_transition", 3, 0, 2)),
    ],
)
def test_each_is_found_with_its_record(
    values: tuple[Snapshot | Update | None, ...], found: tuple[Any, ...]
) -> None:
    assert faults(*values) == [found]
    assert found[0] in share_rules().faults


@pytest.mark.parametrize(
    "values",
    [
        # What follows a deletion is held against nothing before it.
        (FIRST, None, replace(FIRST, snapshot_epoch=0, state_epoch=0, start_offset=0)),
        # An operator sets the start offset: another state epoch, and no leader yet.
        (FIRST, UPDATE, Snapshot(5, 3, 0, 2, 0, 1, 1, ()), Update(5, 0, 2, 0, ())),
        # A snapshot of an idle partition, and one written in place of an update.
        (FIRST, SECOND, replace(UPDATE, snapshot_epoch=5), replace(SECOND, snapshot_epoch=6)),
        # What an update leaves unchanged is no number to compare.
        (FIRST, Update(4, -1, -1, 0, ()), replace(UPDATE, leader_epoch=4, start_offset=12)),
        # A range below the start offset of an update is cut away, whatever wrote it.
        (FIRST, replace(UPDATE, batches=(CutBatch(2, 11, 0, 1),))),
        (FIRST, stored(10, 12, 2, 1), replace(stored(10, 14, 0, 1), start_offset=13)),
        # Each step of the table: released and delivered again, dealt with, stored once more.
        (FIRST, stored(10, 19, 0, 1), stored(10, 14, 2, 2), stored(15, 19, 4, 2)),
        (FIRST, stored(10, 19, 0, 1), stored(10, 19, 3, 2), stored(10, 19, 4, 2)),
        (FIRST, stored(10, 11, 2, 1), replace(SECOND, batches=(CutBatch(10, 11, 2, 1),))),
        # Who sets the start offset back has records delivered again.
        (
            FIRST,
            stored(10, 11, 2, 1),
            Snapshot(5, 3, 0, 2, 0, 1, 1, ()),
            Update(5, 0, 2, 0, (CutBatch(10, 11, 0, 1),)),
        ),
    ],
)
def test_what_coordinators_do_is_none(values: tuple[Snapshot | Update | None, ...]) -> None:
    assert faults(*values) == []


def test_a_limit_that_is_only_assumed_makes_a_fault_that_is() -> None:
    over = replace(UPDATE, batches=(CutBatch(10, 11, 0, 6),))
    for source, is_assumed in (("default_assumed", True), ("dynamic", False)):
        limit = ShareSettings({**SETTINGS.otherwise, DELIVERY_LIMIT: Setting(5, source)})
        records = [ShareRecord(0, 0, KEY, FIRST), ShareRecord(0, 1, KEY, over)]
        (found,) = evaluate_share(question(records, settings=limit)).faults.to_dicts()
        assert found["is_assumed"] is is_assumed
        assert (found["record_topic"], found["at"]) == ("__share_group_state", time_of(1))


def test_a_limit_is_not_held_against_what_was_delivered_before_it_was_set() -> None:
    over = replace(UPDATE, batches=(CutBatch(10, 11, 0, 6),))
    records = [ShareRecord(0, 0, KEY, FIRST), ShareRecord(0, 1, KEY, over)]
    for minute, count in ((1, 1), (2, 0)):
        since = Setting(5, "dynamic", round(time_of(minute).timestamp() * 1000))
        limit = ShareSettings({**SETTINGS.otherwise, DELIVERY_LIMIT: since})
        assert evaluate_share(question(records, settings=limit)).faults.height == count


@examples(
    12,
    60,
    seed=st.integers(0, 2**32),
    what=st.sampled_from(["state", "snapshot", "leader", "start", "count"]),
)
def test_one_number_set_back_in_a_sound_history_is_found(seed: int, what: str) -> None:
    random = Random(seed)
    records = list(random_leader(random, 150).records)
    places = [
        place for place, each in enumerate(records) if place and _can_spoil(records, place, what)
    ]
    # Of what was deleted since nothing is asked.
    if not places or records[-1].value is None:
        return
    place = random.choice(places)
    records[place] = replace(records[place], value=_spoilt(records[place].value, what))
    found = evaluate_share(question(records)).faults.to_dicts()
    assert any(each["record_offset"] in (place, place + 1) for each in found)


def _can_spoil(records: list[ShareRecord], place: int, what: str) -> bool:
    before, value = records[place - 1].value, records[place].value
    match what:
        case "state":
            return isinstance(value, Snapshot) and before is not None and value.state_epoch > 0
        case "snapshot":
            return value is not None and before is not None and value.snapshot_epoch > 0
        case "leader":
            same = before is not None and isinstance(value, Update)
            return bool(same and before and before.leader_epoch >= value.leader_epoch > 0)
        case "start":
            same = before is not None and isinstance(value, Update)
            return bool(same and before and before.start_offset > 0)
    return isinstance(value, Update) and bool(value.batches)


def _spoilt(value: Snapshot | Update | None, what: str) -> Snapshot | Update:
    assert value is not None
    match what:
        case "state":
            assert isinstance(value, Snapshot)
            return replace(value, state_epoch=-1)
        case "snapshot":
            return replace(value, snapshot_epoch=value.snapshot_epoch - 1)
        case "leader":
            return replace(value, leader_epoch=value.leader_epoch - 1)
        case "start":
            return replace(value, start_offset=0)
    batch = replace(value.batches[0], delivery_count=9)
    return replace(value, batches=(batch, *value.batches[1:]))


def test_a_topic_that_is_being_deleted_for_long_is_told_without_a_partition() -> None:
    told = {
        "group_id": "g", "topic_id": "gone", "topic": "old-orders", "phase": "deleting",
        "phase_since": BEGIN, "coordinator_partition": 7, "record_offset": 30,
    }  # fmt: skip
    records = [ShareRecord(0, 0, KEY, FIRST)]
    late = BEGIN + timedelta(minutes=5)
    (found,) = evaluate_share(question(records, phases=[told], as_of=late)).faults.to_dicts()
    assert (found["fault"], found["topic"], found["partition"]) == (
        "stuck_deleting",
        "old-orders",
        None,
    )
    assert (found["record_topic"], found["record_offset"]) == ("__consumer_offsets", 30)
    early = late - timedelta(milliseconds=1)
    assert evaluate_share(question(records, phases=[told], as_of=early)).faults.height == 0


def test_a_phase_whose_record_has_no_time_lasts_since_nobody_knows_when() -> None:
    told = {
        "group_id": "g", "topic_id": KEY[1], "topic": "orders", "partition": KEY[2],
        "phase": "initializing", "phase_since": None, "coordinator_partition": 7,
        "record_offset": 30,
    }  # fmt: skip
    records = [ShareRecord(0, 0, KEY, FIRST)]
    changed = {"phase": "initializing"}

    (row,) = evaluate_share(question(records, phases=[told], changed=changed)).rows.to_dicts()
    dated = question(records, phases=[told | {"phase_since": BEGIN}], changed=changed)

    assert row["phase_since"] is None
    assert evaluate_share(dated).rows["phase_since"].to_list() == [BEGIN]
