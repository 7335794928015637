"""Snapshots and updates of share partitions add up as the share coordinator adds them up."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from analytics.replay.share_fold import (
    RECORDS,
    SNAPSHOT,
    TOMBSTONE,
    UPDATE,
    Ranges,
    fold,
    merged,
)
from tests.support.broker_state import CutBatch, joined
from tests.support.examples import examples
from tests.support.reference_share_coordinator import ShareRecord, Snapshot, Update
from tests.support.share_histories import expected_states, random_history

CASES = json.loads(
    (Path(__file__).parents[2] / "cases" / "share_batches" / "combiner.json").read_text("utf-8")
)["cases"]
KEY = ("g", "topic", 0)
LAST = (1 << 63) - 1


def table(records: list[ShareRecord]) -> pa.Table:
    """Records as the fold takes them."""
    rows = []
    for record in records:
        group, topic_id, partition = record.key
        value: Any = record.value
        row = {name: getattr(value, name, None) for name in RECORDS.names}
        row |= {
            "coordinator_partition": record.partition,
            "group_id": group,
            "topic_id": topic_id,
            "partition": partition,
            "record_offset": record.offset,
            "kind": _kind(value),
            "is_early_layout": False,
            "state_batches": [vars(each) for each in value.batches] if value else None,
        }
        rows.append(row)
    return pa.Table.from_pylist(rows, RECORDS)


def _kind(value: Snapshot | Update | None) -> int:
    if value is None:
        return TOMBSTONE
    return UPDATE if isinstance(value, Update) else SNAPSHOT


def states(records: list[ShareRecord]) -> dict[Any, dict[str, Any]]:
    """The fold's rows by internal partition and key, times in milliseconds."""
    found = {}
    for row in fold(table(records)).to_pylist():
        place = row["coordinator_partition"], (row["group_id"], row["topic_id"], row["partition"])
        row["batches"] = tuple(CutBatch(**each) for each in row["batches"])
        for name in ("create_timestamp", "write_timestamp"):
            at = row[name]
            row[name] = None if at is None else round(at.timestamp() * 1000)
        found[place] = row
    return found


def compared(row: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def snapshot(*batches: tuple[int, int, int, int], **fields: Any) -> Snapshot:
    given = {
        "snapshot_epoch": 0,
        "state_epoch": 1,
        "leader_epoch": 0,
        "start_offset": 0,
        "delivery_complete_count": 0,
        "create_timestamp": 1_700_000_000_000,
        "write_timestamp": 1_700_000_000_000,
    } | fields
    return Snapshot(**given, batches=tuple(CutBatch(*each) for each in batches))


def update(*batches: tuple[int, int, int, int], **fields: Any) -> Update:
    given = {
        "snapshot_epoch": 0,
        "leader_epoch": -1,
        "start_offset": -1,
        "delivery_complete_count": 0,
    } | fields
    return Update(**given, batches=tuple(CutBatch(*each) for each in batches))


def history(*values: Snapshot | Update | None) -> list[ShareRecord]:
    return [ShareRecord(0, offset, KEY, value) for offset, value in enumerate(values)]


def state(*values: Snapshot | Update | None) -> dict[str, Any]:
    """The one state of a history of one key."""
    return states(history(*values))[0, KEY]


def ranges(*batches: tuple[int, int, int, int]) -> tuple[CutBatch, ...]:
    return tuple(CutBatch(*each) for each in batches)


# --- the combiner --------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_ranges_combine_as_kafkas_own_cases_say(case: dict[str, Any]) -> None:
    current, new = (
        tuple((b["first"], b["last"], b["state"], b["count"]) for b in case[side] or [])
        for side in ("current", "new")
    )
    found = state(
        snapshot(*current, start_offset=-1), update(*new, start_offset=case["startOffset"])
    )
    expected = joined(
        CutBatch(b["first"], b["last"], b["state"], b["count"]) for b in case["expected"]
    )
    assert found["batches"] == expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_it_does_not_matter_which_range_came_first(case: dict[str, Any]) -> None:
    current, new = (
        tuple((b["first"], b["last"], b["state"], b["count"]) for b in case[side] or [])
        for side in ("current", "new")
    )
    start = case["startOffset"]
    assert (
        state(snapshot(start_offset=-1), update(*current), update(*new, start_offset=start))[
            "batches"
        ]
        == state(snapshot(start_offset=-1), update(*new), update(*current, start_offset=start))[
            "batches"
        ]
    )


@examples(
    20,
    100,
    given_ranges=st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(-5, 25),
            st.integers(-2, 12),
            st.integers(-128, 127),
            st.integers(-32768, 32767),
        )
    ),
)
def test_each_offset_takes_the_greatest_count_then_the_greatest_state(
    given_ranges: list[tuple[int, int, int, int, int]],
) -> None:
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for key, first, length, delivery_state, count in given_ranges:
        for offset in range(first, first + length):
            told = count, delivery_state
            expected[key, offset] = max(expected.get((key, offset), told), told)
    columns = np.array(given_ranges, np.int64).reshape(-1, 5).T
    result = merged(
        Ranges(
            columns[0],
            columns[1],
            columns[1] + columns[2] - 1,
            columns[3].astype(np.int8),
            columns[4].astype(np.int16),
        )
    )
    found: dict[tuple[int, int], tuple[int, int]] = {}
    rows = list(
        zip(
            result.key.tolist(),
            result.first.tolist(),
            result.last.tolist(),
            result.state.tolist(),
            result.count.tolist(),
            strict=True,
        )
    )
    for key, first, last, delivery_state, count in rows:
        for offset in range(first, last + 1):
            assert (key, offset) not in found, "ranges of a key do not overlap"
            found[key, offset] = count, delivery_state
    assert found == expected
    assert rows == sorted(rows), "ascending by key and offset"
    for before, after in itertools.pairwise(rows):
        alike = before[0] == after[0] and before[3:] == after[3:]
        assert not (alike and before[2] + 1 == after[1]), "neighbours that are alike are joined"


def test_offsets_up_to_the_last_one_are_covered() -> None:
    found = state(snapshot((0, LAST, 0, 1), (LAST, LAST, 2, 1)))
    assert found["batches"] == ranges((0, LAST - 1, 0, 1), (LAST, LAST, 2, 1))
    assert found["available_count"] == LAST
    assert found["acknowledged_count"] == 1


def test_a_count_that_no_number_holds_is_the_largest() -> None:
    assert state(snapshot((-5, LAST, 4, 1)))["archived_count"] == LAST


# --- records -------------------------------------------------------------------------------------


@examples(60, 300, chance=st.randoms(use_true_random=False), end=st.integers(0, 60))
def test_a_random_history_adds_up_as_in_the_reference(chance: random.Random, end: int) -> None:
    records = random_history(chance, 7)
    expected = expected_states(records, {7: end})
    found = states([each for each in records if each.offset < end])
    assert found.keys() == expected.keys()
    for place, told in expected.items():
        assert compared(found[place], told) == told


@examples(4, 20, seed=st.integers(0, 1 << 32))
def test_many_histories_at_once_in_any_order_add_up_as_in_the_reference(seed: int) -> None:
    chance = random.Random(seed)
    records = [each for number in range(40) for each in random_history(chance, number)]
    expected = expected_states(records, {})
    chance.shuffle(records)
    found = states(records)
    assert found.keys() == expected.keys()
    for place, told in expected.items():
        assert compared(found[place], told) == told


def test_a_snapshot_replaces_everything() -> None:
    found = state(
        snapshot((0, 9, 0, 1)),
        update((0, 9, 2, 3), leader_epoch=4),
        snapshot((5, 6, 4, 1), snapshot_epoch=1, state_epoch=3, start_offset=5),
    )
    assert found["batches"] == ranges((5, 6, 4, 1))
    assert (found["snapshot_epoch"], found["state_epoch"], found["leader_epoch"]) == (1, 3, 0)
    assert (found["updates_since_snapshot"], found["record_offset"]) == (0, 2)


def test_an_update_moves_what_it_names_and_leaves_what_it_does_not() -> None:
    found = state(
        snapshot((0, 9, 0, 1), leader_epoch=2),
        update(start_offset=4, delivery_complete_count=3),
        update(leader_epoch=5),
    )
    assert found["start_offset"] == 4
    assert found["leader_epoch"] == 5
    assert found["batches"] == ranges((4, 9, 0, 1))
    assert found["updates_since_snapshot"] == 2


def test_the_delivery_complete_count_is_that_of_the_last_record_even_where_it_has_none() -> None:
    assert state(snapshot(), update(delivery_complete_count=7))["delivery_complete_count"] == 7
    assert state(snapshot(), update(delivery_complete_count=-1))["delivery_complete_count"] is None


def test_times_and_state_epoch_stay_those_of_the_snapshot() -> None:
    found = state(snapshot(write_timestamp=1_700_000_000_555), update(), update())
    assert found["create_timestamp"] == 1_700_000_000_000
    assert found["write_timestamp"] == 1_700_000_000_555
    assert found["state_epoch"] == 1


def test_a_start_offset_of_minus_one_is_no_position_and_cuts_nothing() -> None:
    found = state(snapshot((0, 3, 0, 1), start_offset=-1), update((2, 5, 0, 2)))
    assert found["start_offset"] is None
    assert found["batches"] == ranges((0, 1, 0, 1), (2, 5, 0, 2))


def test_the_start_offset_in_force_cuts_again_at_an_update_that_does_not_name_it() -> None:
    assert state(snapshot((0, 9, 0, 1), start_offset=6), update())["batches"] == ranges(
        (6, 9, 0, 1)
    )


def test_what_was_cut_away_does_not_come_back_when_the_start_offset_does() -> None:
    found = state(
        snapshot((0, 9, 0, 1)),
        update(start_offset=8),
        update((3, 4, 0, 1), start_offset=2),
    )
    assert found["start_offset"] == 2
    assert found["batches"] == ranges((3, 4, 0, 1), (8, 9, 0, 1))


def test_an_update_of_another_snapshot_is_applied_and_counted() -> None:
    found = state(snapshot(snapshot_epoch=4), update((0, 1, 2, 1), snapshot_epoch=3), update())
    assert found["batches"] == ranges((0, 1, 2, 1))
    assert found["snapshot_epoch"] == 4
    assert found["epoch_mismatches"] == 2


def test_an_update_without_a_snapshot_is_the_state() -> None:
    found = state(update((3, 4, 0, 1), snapshot_epoch=6, start_offset=3), update((4, 5, 2, 1)))
    assert not found["has_snapshot"]
    assert (found["state_epoch"], found["snapshot_epoch"], found["start_offset"]) == (0, 6, 3)
    assert found["create_timestamp"] is None
    assert found["batches"] == ranges((3, 3, 0, 1), (4, 5, 2, 1))
    assert found["updates_since_snapshot"] == 2


def test_a_tombstone_forgets_everything() -> None:
    assert states(history(snapshot((0, 9, 0, 1)), update(), None)) == {}


def test_after_a_tombstone_all_begins_anew() -> None:
    again = state(snapshot((0, 9, 0, 3)), None, snapshot((0, 0, 0, 1), snapshot_epoch=0))
    assert again["batches"] == ranges((0, 0, 0, 1))
    alone = state(snapshot((0, 9, 0, 3)), None, update((1, 1, 0, 1)))
    assert not alone["has_snapshot"]
    assert alone["batches"] == ranges((1, 1, 0, 1))


def test_the_same_key_in_two_internal_partitions_is_two_states() -> None:
    records = [
        ShareRecord(1, 0, KEY, snapshot((0, 1, 0, 1))),
        ShareRecord(2, 5, KEY, update((7, 8, 0, 1))),
    ]
    found = states(records)
    assert found[1, KEY]["batches"] == ranges((0, 1, 0, 1))
    assert found[2, KEY]["batches"] == ranges((7, 8, 0, 1))


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ([snapshot((5, 3, 0, 1))], "inverted_range"),
        ([snapshot((5, 6, 9, 1))], "unknown_delivery_state"),
        ([snapshot((1, 6, 0, 1), start_offset=4)], "range_below_start"),
        ([snapshot((1, 6, 0, 1), start_offset=4), update()], None),
        ([snapshot((1, 6, 2, 1)), update()], None),
    ],
)
def test_what_a_leader_refuses_to_load_is_named(values: list[Any], fault: str | None) -> None:
    assert state(*values)["fault"] == fault


def test_no_records_make_no_states() -> None:
    assert fold(RECORDS.empty_table()).num_rows == 0
