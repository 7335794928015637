"""Random histories of groups: the fold against a coordinator that takes record after record."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from analytics.replay.groups.fold import group_state, without_the_past
from analytics.replay.log.rules import replay_rules
from schemas import table
from tests.support.coordinator_log import log_rows
from tests.support.group_histories import LEAVES, Acts, random_history, random_records
from tests.support.random_group_values import NAMED_TOPICS
from tests.support.reference_group_coordinator import tables_of

if TYPE_CHECKING:
    from tests.support.reference_offsets import GroupRecord

RELEASES = ("3.9", "4.0", "4.1", "4.2", "4.3")
TOLD = {"groups": "a_group", "members": "a_member", "assignments": "an_assignment"}
Rows = dict[tuple[Any, ...], dict[str, Any]]


def folded(log: pa.Table, release: str, at_once: int) -> pa.Table:
    batches = log.to_batches(max_chunksize=max(1, at_once // 2))
    found = list(group_state(batches, replay_rules(release), at_once))
    return pa.Table.from_batches(found).combine_chunks() if found else pa.table({})


def rows_of(state: pa.Table, name: str) -> Rows:
    """Rows of a state table by key, as the reference has them."""
    found: Rows = {}
    for row in state.to_pylist():
        told = row[TOLD[name]]
        if told is None:
            continue
        told |= {each: row[each] for each in ("group_id", "coordinator_partition")}
        if name == "assignments":
            told["topic"] = told["topic"] or NAMED_TOPICS.get(told["topic_id"])
        if name == "groups":
            stored = told.pop("state_ms")
            told["state_timestamp"] = None if stored == -1 else stored
        if name == "members" and told["subscribed_topics"] is not None:
            told["subscribed_topics"].sort()
        key = tuple(told[each] for each in table(name).key)
        assert key not in found, f"one row a key in {name}"
        found[key] = told
    return found


def histories(
    seed: int, release: str, number: int
) -> tuple[list[GroupRecord], dict[int, int], random.Random]:
    chance = random.Random(seed)
    records, ends = [], dict[int, int]()
    for partition in range(number):
        history = random_history(chance, partition, release)
        records.extend(history)
        if chance.randrange(4):
            ends[partition] = chance.randrange((history[-1].offset if history else 0) + 2)
    return records, ends, chance


@pytest.mark.parametrize("release", RELEASES)
@settings(max_examples=4, phases=[Phase.explicit, Phase.reuse, Phase.generate], deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_random_histories_at_random_instants_equal_the_reference(release: str, seed: int) -> None:
    records, ends, chance = histories(seed, release, 40)
    expected = vars(tables_of(records, ends, release, NAMED_TOPICS))
    if release < "4":
        # Before 4.0 brokers read no other groups' records, and histories hold none.
        assert not any(each.table.startswith(("consumer", "share", "streams")) for each in records)
    at_once = chance.choice((2, 10, 50, 1000))
    state = folded(log_rows(records, ends), release, at_once)
    for name in TOLD:
        told = {
            key: row for key, row in expected[name].items() if row.get("group_type") != "simple"
        }
        found = rows_of(state, name)
        assert found.keys() == told.keys(), (release, seed, at_once, name)
        for key, row in told.items():
            here = {field: found[key][field] for field in row if field != "complete"}
            row.pop("complete", None)
            assert here == row, (release, seed, at_once, name)


@settings(max_examples=6, phases=[Phase.explicit, Phase.reuse, Phase.generate], deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_what_is_dropped_on_the_way_changes_nothing(seed: int) -> None:
    """Also in histories that no broker would load: those with lost records, and other types."""
    chance = random.Random(seed)
    records = [
        record for partition in range(15) for record in random_records(chance, partition, "4.3")
    ]
    log = log_rows(records, {})
    by_release = [folded(log, release, len(records)) for release in ("3.9", "4.2")]
    for release, whole in zip(("3.9", "4.2"), by_release, strict=True):
        for at_once in (2, 7, 50):
            piecemeal = folded(log, release, at_once)
            assert sorted(map(str, piecemeal.to_pylist())) == sorted(map(str, whole.to_pylist()))


def test_what_is_held_does_not_grow_with_the_log() -> None:
    """A group whose members come and go, and groups that are deleted and made again."""
    acts = Acts(random.Random(0), 0, ("consumer",))
    sizes = []
    for lap in range(60):
        for member in ("a", "b", "c"):
            name = f"{member}-{lap}"
            acts.record("member_metadata", "lasting", name, lap)
            acts.record("metadata", "lasting", "", lap)
            acts.record("target_assignment_member", "lasting", name, lap)
            acts.record("current_member_assignment", "lasting", name, lap)
            for kind in LEAVES:
                acts.record(kind, "lasting", name, lap, gone=True)
        acts.record("member_metadata", "renewed", "a", lap)
        acts.record("metadata", "renewed", "", lap)
        acts.record("metadata", "renewed", "", lap, gone=True)
        sizes.append(without_the_past(log_rows(acts.records, {})).num_rows)
    assert len(acts.records) > 20 * sizes[-1]
    assert sizes[-1] == sizes[2]


def test_nothing_is_made_of_nothing() -> None:
    assert list(group_state([], replay_rules("4.3"))) == []
