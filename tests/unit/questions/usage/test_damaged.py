"""Bytes come out even whatever happened to the files; what is gone is said."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

from analytics.gaps.gap import gap_documents, gap_of_row, gap_rows
from analytics.questions.usage.accounts import Identity, gaps_in_usage
from analytics.questions.usage.cleaner import LogSettings
from analytics.questions.usage.tables import usage_tables
from schemas.usage_rules import usage_rules
from tests.support.damaged_dump import COPY, damaged_dump
from tests.support.decoded_here import decoded_here

if TYPE_CHECKING:
    from analytics.questions.usage.tables import Usage

DUMPS = Path(__file__).parents[3] / "data" / "dumps"
STORY = DUMPS / "kafka-4.3.1-story"


def usage_of(log_dir: Path, folder: Path) -> Usage:
    space = decoded_here([f"{COPY}={log_dir}"], folder)
    return usage_tables(space, space.manifest(), LogSettings(usage_rules()))


def sizes_of(log_dir: Path) -> int:
    return sum(path.stat().st_size for path in log_dir.glob("__*-*/*.log"))


def test_every_byte_of_a_damaged_dump_is_accounted_for(tmp_path: Path) -> None:
    dump = damaged_dump(STORY, tmp_path / "dump")
    found = usage_of(dump.log_dir, tmp_path / "workspace")

    assert found.even.holds
    # One segment is there twice, under two names: one of them is read.
    unread = dump.log_dir / "__consumer_offsets-12/00000000000000000300.log"
    assert found.even.file_bytes == sizes_of(dump.log_dir) - unread.stat().st_size
    sums = {
        name: pc.sum(found.partitions[name]).as_py()
        for name in ("damaged_bytes", "trailing_bytes", "compressed_bytes", "unexplained_bytes")
    }
    assert sums["damaged_bytes"] > 0
    assert sums["trailing_bytes"] > 0
    assert sums["unexplained_bytes"] == 0
    assert "last_of_key_lost" in {each.code for each in found.gaps}


@pytest.mark.parametrize("zeros", [1, 12, 61, 5000])
def test_preallocated_bytes_are_neither_records_nor_damage(zeros: int, tmp_path: Path) -> None:
    log_dir = tmp_path / COPY
    shutil.copytree(STORY / COPY / "__consumer_offsets-2", log_dir / "__consumer_offsets-2")
    last = max(log_dir.glob("*/*.log"))
    last.write_bytes(last.read_bytes() + bytes(zeros))
    found = usage_of(log_dir, tmp_path / "workspace")

    (row,) = found.partitions.to_pylist()
    assert found.even.holds
    assert row["trailing_bytes"] + row["damaged_bytes"] == zeros
    assert row["file_bytes"] == sizes_of(log_dir)


def test_without_the_checkpoint_nobody_tells_whether_the_cleaner_came(tmp_path: Path) -> None:
    log_dir = tmp_path / COPY
    shutil.copytree(STORY / COPY, log_dir)
    before = usage_of(log_dir, tmp_path / "before").cleaning
    (log_dir / "cleaner-offset-checkpoint").unlink()
    after = usage_of(log_dir, tmp_path / "after").cleaning

    alive = before.filter(pc.equal(before["verdict"], "alive"))
    untold = after.filter(pc.equal(after["verdict"], "cannot_tell"))
    assert alive.num_rows == untold.num_rows > 0
    assert set(untold["partition"].to_pylist()) == set(alive["partition"].to_pylist())
    assert untold["dirty_ratio"].null_count == untold.num_rows


def test_what_a_decode_run_left_out_is_cannot_tell() -> None:
    even = Identity(0, 0, {}, [])
    manifest = {"options": {"groups": ["g"], "topics": []}, "partitions": []}
    manifest |= {"absent_partitions": {}}
    (left_out,) = gaps_in_usage(manifest, even)
    assert left_out.code == "records_left_out"
    assert left_out.words.endswith("left out when this was decoded (--group)")
    assert gaps_in_usage(manifest | {"options": {}}, even) == []


def test_what_a_leader_wrote_whose_log_is_absent_is_cannot_tell_from_then_on() -> None:
    since = datetime(2026, 11, 21, 9, 14, 13, tzinfo=UTC)
    absent = {"since": since.isoformat(), "first_offset": 40, "why": "broker 2 led"}
    row = {"topic": "__consumer_offsets", "partition": 2, "copy": "b", "absent_leaders": [absent]}
    manifest = {"options": {}, "absent_partitions": {}, "partitions": [row]}
    gaps = gaps_in_usage(manifest, Identity(0, 0, {}, []))
    (kept,) = gap_rows({"usage": gaps}).to_pylist()
    assert kept["code"] == "last_of_key_elsewhere"
    assert (kept["partition"], kept["from_offset"], kept["from_timestamp"]) == (2, 40, since)
    assert [gap_of_row(kept)] == gaps
    assert gap_documents(gaps)[0]["from_timestamp"] == "2026-11-21T09:14:13.000Z"
