"""What a coordinator refuses to load, found in columns and by a coordinator that loads slowly."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from analytics.dump.inspection.found_losses import Loss
from analytics.replay.history.group_history import faults_of, group_steps
from analytics.replay.log.losses import WHOLE, Coverage
from analytics.replay.log.rules import replay_rules
from schemas.releases import load_faults as known_faults
from tests.support.decoded_frames import frame_of
from tests.support.group_histories import random_history, random_records
from tests.support.history_log import history_rows
from tests.support.reference_loading import Fault, loading_of
from tests.support.reference_offsets import GroupRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

STOPPING = known_faults().stopping
UNREAD = {"newer_record_type", "newer_value_version"}


def found_faults(
    records: Iterable[GroupRecord],
    release: str,
    undecoded: Iterable[dict[str, Any]] = (),
    coverage: Coverage = WHOLE,
    **decoded: pl.DataFrame,
) -> list[SimpleNamespace]:
    tables = {"undecoded": frame_of("undecoded", undecoded), **decoded}
    rows, rules = history_rows(records), replay_rules(release)
    faults = faults_of(group_steps(rows, rules), rows, tables, rules, coverage)
    return [SimpleNamespace(**each) for each in faults.iter_rows(named=True)]


def check_random_logs(release: str, seed: str, number: int) -> Counter[str]:
    """Hold found faults against those of loading; returns how many there were of each."""
    chance = random.Random(seed)
    # In the second half no group meets one of another type, which ends what can be compared.
    kinds = [random_records] * number + [random_history] * number
    line = ".".join(release.split(".")[:2])
    logs = [kind(chance, each, line) for each, kind in enumerate(kinds)]
    loaded = {partition: loading_of(log, release) for partition, log in enumerate(logs)}
    expected = {fault for each in loaded.values() for fault in each.faults}
    rows = found_faults([record for log in logs for record in log], release)
    found = {Fault(row.coordinator_partition, row.record_offset, row.fault) for row in rows}
    ends = {partition: each.ended_at for partition, each in loaded.items()}
    sure = {each for each in found if each.offset <= (ends[each.partition] or each.offset)}
    assert sure == expected, (release, seed)
    assert all(row.stops_loading == (row.fault in STOPPING) for row in rows)
    return Counter(each.fault for each in expected)


@pytest.mark.parametrize("release", ["4.0.1", "4.1.1", "4.1.2", "4.3.1"])
def test_faults_of_random_logs_are_those_that_loading_them_finds(
    release: str,
) -> None:
    found = check_random_logs(release, seed=release, number=150)
    every = (STOPPING | known_faults().tolerated) - UNREAD
    if not release.startswith("4.0"):
        every -= {"no_group", "no_member"}
    if release != "4.1.1":
        every -= {"task_not_owned"}
    assert found.keys() == every


@pytest.mark.long
@pytest.mark.parametrize("release", ["4.0.0", "4.0.2", "4.1.0", "4.1.2", "4.2.0", "4.2.1", "4.3.0"])
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
    found = found_faults([], "3.9.1", [*rows, damaged])
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
    assert any(loading_of(log, "4.1.1").faults for log in logs)
    assert found_faults([record for log in logs for record in log], "3.9") == []


def handover(*records: tuple[str, str, dict[str, Any] | None]) -> list[GroupRecord]:
    """Records of members of a consumer group, from offset 0: kind, member and value."""
    return [
        GroupRecord(22, offset, f"consumer_group_{kind}", key, value)
        for offset, (kind, member, value) in enumerate(records)
        for key in ({"group_id": "g", "member_id": member},)
    ]


def holds(epoch: int, *partitions: int) -> dict[str, Any]:
    given = [{"topic_id": "gtb2stGYRk-vWZ2zAozmoA", "partitions": list(partitions)}]
    return {
        "member_epoch": epoch,
        "previous_member_epoch": epoch - 1,
        "state": 0,
        "assigned_partitions": given,
        "partitions_pending_revocation": [],
    }


CURRENT = "current_member_assignment"


def owner_faults(log: list[GroupRecord], release: str) -> list[tuple[int, bool | None, str | None]]:
    return [
        (each.record_offset, each.stops_loading, each.patch_releases)
        for each in found_faults(log, release)
        if each.fault == "partition_still_owned"
    ]


@pytest.mark.parametrize(
    ("release", "stops", "patches"),
    [
        ("4.0.1", True, None),
        ("4.0", None, "4.0.0 to 4.0.1"),
        ("4.1", None, "4.1.0 to 4.1.1"),
        ("4.1.1", True, None),
    ],
)
def test_a_partition_handed_over_without_the_record_that_gave_it_back_stops_older_patches(
    release: str, stops: bool | None, patches: str | None
) -> None:
    log = handover((CURRENT, "ada", holds(11, 0, 1)), (CURRENT, "bob", holds(12, 0)))
    assert owner_faults(log, release) == [(1, stops, patches)]


@pytest.mark.parametrize("release", ["4.0.2", "4.1.2", "4.2.0", "4.2", "4.4"])
def test_a_later_owner_at_a_higher_epoch_is_loaded_since(release: str) -> None:
    log = handover((CURRENT, "ada", holds(11, 0, 1)), (CURRENT, "bob", holds(12, 0)))
    assert owner_faults(log, release) == []


@pytest.mark.parametrize("release", ["4.0.0", "4.1.2", "4.2", "4.3.1", "4.4"])
def test_a_later_owner_at_the_same_or_a_lower_epoch_stops_every_release(release: str) -> None:
    for epoch in (11, 10):
        log = handover((CURRENT, "ada", holds(11, 0)), (CURRENT, "bob", holds(epoch, 0)))
        assert owner_faults(log, release) == [(1, True, None)]


def test_a_record_of_the_old_owner_puts_its_epoch_again_and_stops_newer_releases() -> None:
    metadata = {"client_id": "ada", "client_host": "/10.0.0.1"}
    log = handover(
        (CURRENT, "ada", holds(11, 0)),
        (CURRENT, "bob", holds(12, 0)),
        ("member_metadata", "ada", metadata),
    )
    assert owner_faults(log, "4.2.0") == [(2, True, None)]


def test_a_partition_that_was_given_back_has_no_owner() -> None:
    for gives_back in (holds(12, 1), None):
        log = handover(
            (CURRENT, "ada", holds(11, 0, 1)),
            (CURRENT, "ada", gives_back),
            (CURRENT, "bob", holds(12, 0)),
        )
        assert owner_faults(log, "4.1.1") == []


TOMBSTONES = [
    GroupRecord(22, offset, f"share_group_{kind}", {"group_id": "gone", **member}, None)
    for offset, kind, member in (
        (30, "member_metadata", {"member_id": "ada"}),
        (31, "target_assignment_metadata", {}),
        (32, "metadata", {}),
    )
]
"""What compaction leaves of a share group that was deleted, until it takes tombstones, too."""


@pytest.mark.parametrize(
    ("release", "offsets"), [("4.0.0", [30, 31, 32]), ("4.0.2", [30, 31, 32]), ("4.1.0", [])]
)
def test_tombstones_that_compaction_leaves_of_a_share_group_stop_4_0(
    release: str, offsets: list[int]
) -> None:
    """Of ``GroupMetadataManager.replay`` only that of 4.1 passes over the tombstone of no group."""
    cleaned = {("__consumer_offsets", 22): 30}
    coverage = replace(WHOLE, uncompacted_from=cleaned, cleaned_until=cleaned)
    found = found_faults(TOMBSTONES, release, coverage=coverage)
    assert [each.record_offset for each in found] == offsets
    assert all(each.complete and each.stops_loading for each in found)


def lacking(first: int, end: int) -> Coverage:
    key = ("__consumer_offsets", 22)
    return replace(WHOLE, complete_from={key: end}, losses={key: [Loss(first, end, "lost")]})


@pytest.mark.parametrize("patch", ["4.0.1", "4.0"])
def test_what_the_dump_lacks_a_broker_may_have_and_load_then(patch: str) -> None:
    found = found_faults(TOMBSTONES, patch, coverage=lacking(3, 31))
    assert [each.record_offset for each in found] == [30, 31, 32]
    for each in found:
        assert (each.complete, each.stops_loading, each.patch_releases) == (False, None, None)
        assert each.missing == "__consumer_offsets-22 lacks offsets 3 to 30 (lost)"
    # A loss behind a record changes nothing of what it met.
    later = found_faults(TOMBSTONES, "4.0.1", coverage=lacking(40, 50))
    assert all(each.complete and each.stops_loading for each in later)


def test_a_record_that_cannot_be_read_stops_loading_whatever_was_lost_before_it() -> None:
    row = {"topic": "__consumer_offsets", "partition": 22, "offset": 60, "reason": "truncated"}
    (found,) = found_faults([], "4.1.1", [{**row, "detail": "why"}], lacking(3, 31))
    assert (found.complete, found.missing, found.stops_loading) == (True, None, True)


def committed(version: int) -> dict[str, pl.DataFrame]:
    row = {
        "topic": "__consumer_offsets",
        "partition": 3,
        "offset": 7,
        "record_type": 1,
        "value_version": version,
        "key": {"group": "g", "topic": "t", "partition": 0},
    }
    return {"offset_commit": frame_of("offset_commit", [row])}


@pytest.mark.parametrize(
    ("release", "version", "stops"),
    [
        ("2.0.1", 3, [True]),
        ("3.2.3", 3, []),
        ("3.2.3", 4, [True]),
        ("3.4", 4, [None]),
        ("3.4.1", 4, []),
        ("4.4", 4, []),
    ],
)
def test_a_value_in_a_version_that_the_release_does_not_know_stops_it(
    release: str, version: int, stops: list[bool | None]
) -> None:
    found = found_faults([], release, **committed(version))
    assert [(each.fault, each.stops_loading) for each in found] == [
        ("newer_value_version", each) for each in stops
    ]


@pytest.mark.parametrize(
    ("release", "stops"), [("3.2.3", [True]), ("3.4", [None]), ("3.5", []), ("4.1.1", [])]
)
def test_a_key_of_a_type_that_the_release_does_not_know_stops_only_the_oldest(
    release: str, stops: list[bool | None]
) -> None:
    row = {
        "topic": "__consumer_offsets",
        "partition": 3,
        "offset": 7,
        "record_type": 3,
        "value_version": 0,
        "key": {"group_id": "g"},
    }
    decoded = {"consumer_group_metadata": frame_of("consumer_group_metadata", [row])}
    unknown = {
        "topic": "__consumer_offsets",
        "partition": 3,
        "offset": 8,
        "reason": "unknown_record_type",
        "key": b"\x00\x63",
    }
    found = found_faults([], release, [unknown], **decoded)
    assert [(each.record_offset, each.stops_loading) for each in found] == [
        (offset, each) for each in stops for offset in (8, 7)
    ]


@pytest.mark.parametrize(
    ("release", "stops"), [("3.9.1", [True]), ("4.3", [True]), ("4.4", [None])]
)
def test_a_value_newer_than_all_that_is_known_stops_every_release_but_perhaps_a_newer_one(
    release: str, stops: list[bool | None]
) -> None:
    unknown = {
        "topic": "__consumer_offsets",
        "partition": 3,
        "offset": 8,
        "reason": "unsupported_version",
        "key": b"\x00\x01",
    }
    assert [each.stops_loading for each in found_faults([], release, [unknown])] == stops


@pytest.mark.parametrize(
    ("reason", "release", "stops"),
    [
        ("redpanda_members", "3.2.3", [True]),
        ("redpanda_members", "4.1.1", [True]),
        ("redpanda_key", "3.2.3", [True]),
        ("redpanda_key", "4.1.1", []),
    ],
)
def test_a_row_of_redpandas_stops_as_the_bytes_do_that_it_is(
    reason: str, release: str, stops: list[bool]
) -> None:
    row = {"topic": "__consumer_offsets", "partition": 3, "offset": 8, "reason": reason}
    found = found_faults([], release, [{**row, "key": bytes([0x1E, 0, 0, 0])}])
    assert [each.stops_loading for each in found] == stops
