"""The late text of KIP-932, section by section: its records, its replay, and what releases read."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.seeds.kip_932_text import read_state, state_plan, state_slices, text_tables
from tests.support.broker_state import CutBatch
from tests.support.reference_share_coordinator import ShareRecord, Snapshot, Update
from tests.support.segments import Record
from tests.support.share_histories import random_history
from tests.support.text_share_state import TOPIC_IDS, replayed_by_text, text_record, write_log

KEY = ("G1", "topic-0", 0)
NAMES = {id_: name for name, id_ in TOPIC_IDS.items()}


def tables_of(folder: Path) -> dict[str, pa.Table]:
    planned, _ = state_plan([str(folder)], None)
    logs = [read_state(planned, *each) for each in state_slices(planned).items()]
    return text_tables(logs, NAMES)


def replayed(tmp_path: Path, *records: Record) -> dict[str, pa.Table]:
    return tables_of(write_log(tmp_path / "__share_group_state-0", records))


def snapshot(offset: int, epoch: int, start: int, *batches: CutBatch) -> ShareRecord:
    return ShareRecord(0, offset, KEY, Snapshot(epoch, 1, -1, start, -1, 0, 0, batches))


def update(offset: int, epoch: int, start: int, *batches: CutBatch) -> ShareRecord:
    return ShareRecord(0, offset, KEY, Update(epoch, -1, start, -1, batches))


def gone(offset: int) -> ShareRecord:
    return ShareRecord(0, offset, KEY, None)


def encoded(*records: ShareRecord) -> list[Record]:
    return [text_record(each, state_epoch=1) for each in records]


def readings(tables: dict[str, pa.Table]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tables["share_readings"].to_pylist()
    return rows


def ranges(rows: Sequence[dict[str, Any]]) -> list[CutBatch]:
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    return [CutBatch(*(row[name] for name in names)) for row in rows]


class TestRecordContent:
    """The records have the following content (ShareSnapshot, ShareUpdate)."""

    def test_a_snapshot_has_state_epoch_snapshot_epoch_start_offset_and_states(
        self, tmp_path: Path
    ) -> None:
        batches = (CutBatch(5, 9, 0, 1), CutBatch(10, 10, 2, 1))
        tables = replayed(tmp_path, *encoded(snapshot(0, 7, 5, *batches)))
        (row,) = tables["share_partitions"].to_pylist()
        names = ("state_epoch", "snapshot_epoch", "start_offset", "topic", "complete")
        assert [row[name] for name in names] == [1, 7, 5, "topic-0", True]
        assert ranges(tables["share_batches"].to_pylist()) == list(batches)

    def test_the_start_offset_of_an_update_can_be_minus_one(self, tmp_path: Path) -> None:
        tables = replayed(tmp_path, *encoded(snapshot(0, 7, 5), update(1, 7, -1)))
        assert tables["share_partitions"]["start_offset"].to_pylist() == [5]
        assert readings(tables)[1]["start_offset"] is None

    @pytest.mark.parametrize("epoch", [2**16, 2**31 - 1])
    def test_epochs_have_32_bits(self, tmp_path: Path, epoch: int) -> None:
        tables = replayed(tmp_path, *encoded(snapshot(0, epoch, 5)))
        assert tables["share_partitions"]["snapshot_epoch"].to_pylist() == [epoch]

    @pytest.mark.parametrize("epoch", [2**31, 2**32 - 1])
    def test_without_a_sign_but_half_of_them_no_cluster_reaches(
        self, tmp_path: Path, epoch: int
    ) -> None:
        tables = replayed(tmp_path, *encoded(snapshot(0, epoch, 5)))
        (row,) = readings(tables)
        assert (row["snapshot_epoch"], row["reason"]) == (epoch, "epoch_beyond_31_bits")
        assert tables["share_partitions"]["complete"].to_pylist() == [False]


class TestBothReadings:
    """Bytes alone do not tell an update of the text from one of a release."""

    def test_an_update_fits_both_and_means_something_else_in_each(self, tmp_path: Path) -> None:
        records = encoded(snapshot(0, 7, 5), update(1, 7, 6, CutBatch(6, 6, 0, 1)))
        first, second = readings(replayed(tmp_path, *records))
        assert (first["fits"], second["fits"]) == ("text", "both")
        assert (second["state_epoch"], second["snapshot_epoch"]) == (1, 7)
        assert (second["released_snapshot_epoch"], second["released_leader_epoch"]) == (1, 7)
        assert second["start_offset"] == second["released_start_offset"] == 6

    def test_snapshots_of_a_real_release_do_not_fit_the_text(self, repository: Path) -> None:
        dump = repository / "examples" / "kafka-4.3.1-failover" / "broker-2"
        planned, topics = state_plan([str(dump)], None)
        logs = [read_state(planned, *each) for each in state_slices(planned).items()]
        tables = text_tables(logs, topics)
        found = {(row["kind"], row["fits"]) for row in readings(tables)}
        assert ("snapshot", "release") in found
        assert ("update", "both") in found
        assert not {("snapshot", "text"), ("snapshot", "both")} & found
        assert not any(tables["share_partitions"]["complete"].to_pylist())


class TestReplay:
    """It needs to replay the latest ShareSnapshot and updates whose snapshot epoch matches."""

    def test_updates_that_name_another_snapshot_are_left_out(self, tmp_path: Path) -> None:
        records = encoded(snapshot(0, 7, 5), update(1, 6, 9), update(2, 8, 9), update(3, 7, 6))
        tables = replayed(tmp_path, *records)
        assert [row["reason"] for row in readings(tables)] == [
            *(None, "other_snapshot", "other_snapshot", None)
        ]
        (row,) = tables["share_partitions"].to_pylist()
        assert (row["start_offset"], row["epoch_mismatches"]) == (6, 2)
        assert row["updates_since_snapshot"] == 1

    def test_without_a_snapshot_there_is_no_state(self, tmp_path: Path) -> None:
        tables = replayed(tmp_path, *encoded(update(0, 7, 5)))
        assert readings(tables)[0]["reason"] == "no_snapshot"
        (row,) = tables["share_partitions"].to_pylist()
        assert (row["start_offset"], row["complete"]) == (None, False)

    def test_tombstones_delete_the_state(self, tmp_path: Path) -> None:
        """Delete share group: "tombstones to logically delete the state"."""
        tables = replayed(tmp_path, *encoded(snapshot(0, 7, 5), gone(1)))
        assert tables["share_partitions"].num_rows == 0
        assert [row["kind"] for row in readings(tables)] == ["snapshot", "tombstone"]
        tables = replayed(tmp_path, *encoded(snapshot(0, 7, 5), gone(1), update(2, 7, 6)))
        assert readings(tables)[2]["reason"] == "no_snapshot"

    @given(seed=st.integers(0, 2**32 - 1))
    @settings(max_examples=40)
    def test_random_histories_against_a_plain_coordinator(
        self, seed: int, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        records = random_history(random.Random(seed), 0)
        if not records:
            return
        folder = tmp_path_factory.mktemp("state")
        tables = replayed(folder, *(text_record(each) for each in records))
        expected = {
            (group, TOPIC_IDS[topic], partition): state
            for (group, topic, partition), state in replayed_by_text(records).items()
        }
        rows = {
            (row["group_id"], row["topic_id"], row["partition"]): row
            for row in tables["share_partitions"].to_pylist()
        }
        assert {key for key, row in rows.items() if row["snapshot_epoch"] is not None} == {
            *expected
        }
        for key, state in expected.items():
            start = None if state.start_offset == -1 else state.start_offset
            told = [rows[key][name] for name in ("start_offset", "snapshot_epoch", "record_offset")]
            assert told == [start, state.snapshot_epoch, state.record_offset]
            mine = [
                row
                for row in tables["share_batches"].to_pylist()
                if (row["group_id"], row["topic_id"], row["partition"]) == key
            ]
            assert ranges(mine) == list(state.batches)


def test_of_an_empty_log_there_is_nothing(tmp_path: Path) -> None:
    tables = replayed(tmp_path)
    assert {name: rows.num_rows for name, rows in tables.items()} == dict.fromkeys(
        ("share_readings", "share_partitions", "share_batches"), 0
    )


@given(values=st.lists(st.binary(max_size=60), min_size=1, max_size=8))
@settings(max_examples=60)
def test_whatever_the_bytes_every_record_is_accounted_for(
    values: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    keys = [encoded(snapshot(0, 0, 0))[0].key, encoded(update(0, 0, 0))[0].key]
    records = [Record(at, 0, keys[at % 2], value) for at, value in enumerate(values)]
    tables = replayed(tmp_path_factory.mktemp("any"), *records)
    readable = [each for each in values if len(each) >= 2]  # a version
    assert tables["share_readings"].num_rows == len(readable)
    if len(readable) < len(values):
        assert not any(tables["share_partitions"]["complete"].to_pylist())


class TestWhatCannotBeTold:
    """A state is complete where nothing behind its snapshot can be missing."""

    def test_a_hole_behind_the_snapshot(self, tmp_path: Path) -> None:
        for hole, complete in ((0, True), (1, False)):
            records = [snapshot(0, 6, 5), snapshot(1, 7, 5), update(2 + hole, 7, 6)]
            tables = replayed(tmp_path / str(hole), *encoded(*records))
            assert tables["share_partitions"]["complete"].to_pylist() == [complete]

    def test_a_record_that_cannot_be_read(self, tmp_path: Path) -> None:
        sound = encoded(snapshot(0, 7, 5))
        broken = Record(1, 0, struct.pack(">h", 1) + b"\0", b"")
        tables = replayed(tmp_path, *sound, broken)
        (row,) = tables["share_partitions"].to_pylist()
        assert (row["complete"], "that cannot be read: 1" in row["missing"]) == (False, True)

    def test_an_update_that_does_not_fit(self, tmp_path: Path) -> None:
        first, second = encoded(snapshot(0, 7, 5), update(1, 7, 6))
        assert second.value is not None
        tables = replayed(tmp_path, first, second._replace(value=second.value[:-3]))
        assert readings(tables)[1]["reason"] == "no_text"
        assert tables["share_partitions"]["complete"].to_pylist() == [False]
