"""At every cut of the bundled dumps: what a broker answered that had loaded just those records."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analytics.questions.share.backlog import evaluate_share
from tests.support.broker_state import CutBatch, CutSharePartition
from tests.support.cuts import Cut, cuts_of
from tests.support.decoded_frames import tables_of_dump, without_log_start
from tests.support.reference_share_coordinator import (
    ReferenceShareCoordinator,
    ShareKey,
    ShareRecord,
    ShareState,
    Snapshot,
    Update,
)
from tests.unit.questions.share.backlog import question, time_of

DUMPS = Path(__file__).parents[4] / "tests" / "data" / "dumps"
TOPIC = "__share_group_state"
NAMES = (
    *("kafka-4.0.2-share", "kafka-4.1.2-share-streams", "kafka-4.2.1-share"),
    *("kafka-4.3.1-story", "kafka-4.3.1-failover", "kafka-4.4.0-random"),
)
LAG_IS_TOLD = ("kafka-4.2.1-share", "kafka-4.3.1-story")
"""Dumps with the ends of logs, of releases that count what was delivered."""
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4
FINAL = (ACKNOWLEDGED, ARCHIVED)


CUTS = [cut for name in NAMES for cut in cuts_of(DUMPS / name)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@cache
def records_of(dump: str, copy: str, folder: Path) -> tuple[ShareRecord, ...]:
    """All records of share state of a copy, those below the log start too."""
    target = folder / dump / copy
    log_dir = without_log_start(DUMPS / dump / copy, TOPIC, target)
    tables = tables_of_dump(log_dir, TOPIC, ("share_snapshot", "share_update"))
    found = [
        ShareRecord(row["partition"], row["offset"], tuple(row["key"].values()), _value(row, name))
        for name, rows in tables.items()
        for row in rows.select(["partition", "offset", "key", "value"]).to_pylist()
    ]
    return tuple(sorted(found, key=lambda each: (each.partition, each.offset)))


def _value(row: dict[str, Any], name: str) -> Snapshot | Update | None:
    value = row["value"]
    if value is None:
        return None
    batches = tuple(CutBatch(**each) for each in value["state_batches"])
    known = {
        "snapshot_epoch": value["snapshot_epoch"],
        "leader_epoch": value["leader_epoch"],
        "start_offset": value["start_offset"],
        "delivery_complete_count": _or(value["delivery_complete_count"], -1),
        "batches": batches,
    }
    if name == "share_update":
        return Update(**known)
    return Snapshot(
        **known,
        state_epoch=value["state_epoch"],
        create_timestamp=_or(value["create_timestamp"], 0),
        write_timestamp=_or(value["write_timestamp"], 0),
    )


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def ends_of(dump: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Where logs of data topics ended, as the broker that was asked had them: whole."""
    file = DUMPS / dump / "tools" / "end-offsets.csv"
    if dump not in LAG_IS_TOLD:
        return {}
    with file.open(encoding="utf-8") as lines:
        return {
            (row["topic"], int(row["partition"])): (
                int(row["log_start_offset"] or 0),
                int(row["log_end_offset"]),
            )
            for row in csv.DictReader(lines)
        }


def next_offset(told: CutSharePartition) -> int | None:
    """The first offset that is not finally dealt with, offset by offset."""
    state = states(told)
    offset = told.start_offset
    while offset is not None and state.get(offset, (AVAILABLE, 0))[0] in FINAL:
        offset += 1
    return offset


def states(told: CutSharePartition) -> dict[int, tuple[int, int]]:
    return {
        offset: (batch.delivery_state, batch.delivery_count)
        for batch in told.batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }


def told_by_broker(told: CutSharePartition, *, has_lag: bool) -> dict[str, Any]:
    state = states(told)

    def offsets_in(*wanted: int) -> int:
        return sum(each in wanted for each, _ in state.values())

    counts = [count for _, count in state.values()]
    return {
        "start_offset": told.start_offset,
        "lag": told.lag if has_lag else None,
        "next_offset": next_offset(told),
        "last_stored_offset": max(state, default=None),
        "available_count": offsets_in(AVAILABLE),
        "acknowledged_count": offsets_in(ACKNOWLEDGED),
        "archiving_count": offsets_in(ARCHIVING),
        "archived_count": offsets_in(ARCHIVED),
        "max_delivery_count": max(counts, default=None),
    }


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_a_cut_is_described_as_the_broker_describes_it(cut: Cut, folder: Path) -> None:
    said = cut.state.share_partitions
    names = {each.topic_id: each.topic for each in said}
    records = [
        each
        for each in records_of(cut.dump, cut.copy, folder)
        if each.offset < cut.end_offsets.get((TOPIC, each.partition), 0)
    ]
    found = evaluate_share(question(records, ends=ends_of(cut.dump), names=names))
    rows = {
        (row["group_id"], row["topic_id"], row["partition"]): row for row in found.rows.to_dicts()
    }
    has_lag = cut.dump in LAG_IS_TOLD
    compared = {each.key: told_by_broker(each, has_lag=has_lag) for each in said if each.exists}
    ours = {key: {name: rows[key][name] for name in expected} for key, expected in compared.items()}
    assert ours == compared
    # Brokers of all these releases wrote them: nothing contradicts what was before.
    sound = [
        each for each in found.faults.to_dicts() if each["fault"] != "delivery_count_over_limit"
    ]
    assert sound == []


@pytest.mark.parametrize(("dump", "copy"), sorted({(cut.dump, cut.copy) for cut in CUTS}))
def test_start_offsets_stand_since_the_record_that_a_slow_walk_finds(
    dump: str, copy: str, folder: Path
) -> None:
    """The whole log, those below its start too, one record after the other."""
    records = records_of(dump, copy, folder)
    coordinator = ReferenceShareCoordinator()
    moved: dict[tuple[int, ShareKey], tuple[int | None, int]] = {}
    for record in records:
        coordinator.replay(record)
        place = record.partition, record.key
        state = coordinator.states.get(place)
        following = state and _next_of(state)
        before = moved.get(place)
        begins = isinstance(record.value, Snapshot) and state is not None and not state.delivery
        if before is None or following != before[0] or (begins and _is_anew(record, records)):
            moved[place] = following, record.offset
    rows = evaluate_share(question(records)).rows.to_dicts()
    assert rows
    for row in rows:
        place = row["coordinator_partition"], (row["group_id"], row["topic_id"], row["partition"])
        following, offset = moved[place]
        assert row["next_offset"] == following
        if following is not None:
            assert row["start_moved_at"] == time_of(offset), place


def _next_of(state: ShareState) -> int | None:
    offset = state.start_offset
    while offset >= 0 and state.delivery.get(offset, (0, AVAILABLE))[1] in FINAL:
        offset += 1
    return offset if offset >= 0 else None


def _is_anew(record: ShareRecord, records: Sequence[ShareRecord]) -> bool:
    """Whether a snapshot has another state epoch than the one before it."""
    epochs = [
        each.value.state_epoch
        for each in records
        if each.key == record.key
        and each.partition == record.partition
        and each.offset < record.offset
        and isinstance(each.value, Snapshot)
    ]
    assert isinstance(record.value, Snapshot)
    return bool(epochs) and epochs[-1] != record.value.state_epoch
