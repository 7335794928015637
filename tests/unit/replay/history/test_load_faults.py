"""What a coordinator refuses to load, found in columns and by a coordinator that loads slowly."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from analytics.replay.history.groups.group_history import faults_of, group_steps
from analytics.replay.log.rules import replay_rules
from schemas.load_faults import load_faults as known_faults
from tests.support.decoded_frames import frame_of
from tests.support.group_histories import random_history, random_records
from tests.support.history_log import history_rows
from tests.support.reference_loading import Fault
from tests.support.reference_loading import faults_of as faults_when_loading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.reference_offsets import GroupRecord

STOPPING = known_faults().stopping


def found_faults(
    records: Iterable[GroupRecord], release: str, undecoded: Iterable[dict[str, Any]] = ()
) -> list[SimpleNamespace]:
    damaged = {"undecoded": frame_of("undecoded", undecoded)}
    rows, rules = history_rows(records), replay_rules(release)
    faults = faults_of(group_steps(rows, rules), rows, damaged, rules)
    return [SimpleNamespace(**each) for each in faults.iter_rows(named=True)]


def check_random_logs(release: str, seed: str, number: int) -> Counter[str]:
    """Hold found faults against those of loading; returns how many there were of each."""
    chance = random.Random(seed)
    # In the second half no group meets one of another type, which ends what can be compared.
    kinds = [random_records] * number + [random_history] * number
    logs = [kind(chance, each, release) for each, kind in enumerate(kinds)]
    expected = {fault for log in logs for fault in faults_when_loading(log, release)}
    rows = found_faults([record for log in logs for record in log], release)
    found = {Fault(row.coordinator_partition, row.record_offset, row.fault) for row in rows}
    ends = {each.partition: each.offset for each in expected if each.fault == "other_type"}
    sure = {each for each in found if each.offset <= ends.get(each.partition, each.offset)}
    assert sure == expected, (release, seed)
    assert all(row.stops_loading == (row.fault in STOPPING) for row in rows)
    return Counter(each.fault for each in expected)


@pytest.mark.parametrize("release", ["4.0", "4.3"])
def test_faults_of_random_logs_are_those_that_loading_them_finds(
    release: str,
) -> None:
    told = check_random_logs(release, seed=release, number=150)
    of_4_0 = {"no_group", "no_member"}
    every = STOPPING | known_faults().tolerated
    assert told.keys() == (every if release == "4.0" else every - of_4_0)


@pytest.mark.long
@pytest.mark.parametrize("release", ["4.0", "4.1", "4.2", "4.3"])
@pytest.mark.parametrize("seed", ["one", "two"])
def test_faults_of_thousands_of_random_logs_are_those_that_loading_them_finds(
    release: str, seed: str
) -> None:
    assert check_random_logs(release, seed, number=500)


def test_a_record_that_brokers_cannot_read_is_a_fault_and_one_they_may_know_is_none() -> None:
    reasons = ["truncated", "unknown_record_type", "null_key", "invalid_utf8"]
    rows = [
        {
            "topic": topic,
            "partition": 3,
            "offset": offset,
            "reason": reason,
            "detail": "why",
        }
        for topic in ("__consumer_offsets", "__share_group_state", "__cluster_metadata")
        for offset, reason in enumerate(reasons)
    ]
    damaged = {"topic": "__consumer_offsets", "partition": 3, "reason": "bad_crc"}
    found = found_faults([], "2.8", [*rows, damaged])
    assert sorted(
        (row.topic, row.record_offset, row.fault, row.stops_loading) for row in found
    ) == [
        (topic, offset, reason, True)
        for topic in ("__consumer_offsets", "__share_group_state")
        for offset, reason in ((0, "truncated"), (2, "null_key"))
    ]


def test_the_classic_coordinator_passes_over_what_it_does_not_know() -> None:
    chance = random.Random(1)
    logs = [random_records(chance, each, "4.1") for each in range(20)]
    assert any(fault for log in logs for fault in faults_when_loading(log, "4.1"))
    assert found_faults([record for log in logs for record in log], "3.9") == []
