"""The manifest answers how far a dump can be trusted, and says in words what it cannot tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from analytics.dump.batches.headers import Headers
from analytics.dump.batches.segment_stats import SegmentStats
from analytics.dump.copies.plan import PlanOptions, absent_partitions, next_offset, plan
from analytics.dump.files.inputs import recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.dump.inspection.limitations import ranges
from analytics.dump.inspection.manifest import Findings, build_manifest, surveys_of_slices
from analytics.dump.inspection.study import study
from analytics.dump.records.segment_reader import SegmentReader
from tests.support.log_dirs import LogDir, written

OFFSETS = "__consumer_offsets"


def manifest_of(*inputs: Path, crc: bool = True) -> dict[str, Any]:
    copies = read_copies(recognize([str(each) for each in inputs]).disks, next_offset, [])
    looked = study(copies, PlanOptions(), check_crc=crc)
    findings = Findings(
        copies=copies,
        surveys=looked.surveys,
        absent_partitions=absent_partitions(copies),
        divergences=looked.findings.divergences,
        leading=looked.findings.leading,
        is_crc_checked=crc,
    )
    return build_manifest("1.2.3", [str(each) for each in inputs], {}, findings)


def row_of(manifest: Mapping[str, Any], topic: str, partition: int, copy: str) -> dict[str, Any]:
    (row,) = (
        each
        for each in manifest["partitions"]
        if (each["topic"], each["partition"], each["copy"]) == (topic, partition, copy)
    )
    found: dict[str, Any] = row
    return found


@pytest.fixture(scope="module")
def failover(failover_dump: Path) -> dict[str, Any]:
    return manifest_of(failover_dump)


def test_it_holds_what_the_contract_names(failover: dict[str, Any]) -> None:
    assert failover.keys() >= {
        *("schema_version", "groupscope_version", "created_from", "options", "copies"),
        *("partitions", "absent_partitions", "record_types", "divergences", "kafka_version"),
        "unanswerable",
    }
    assert failover["partitions"][0].keys() >= {
        *("topic", "partition", "copy", "files", "first_offset", "end_offset"),
        *("first_timestamp", "last_timestamp", "log_start_offset", "high_watermark"),
        *("records_above_high_watermark", "complete_from", "leader_epochs", "gaps"),
        *("crc_failures", "bytes_damaged", "truncated_tail", "preallocated_tail"),
        "changed_while_read",
    }
    json.dumps(failover, allow_nan=False)


def test_a_real_partition_in_it(failover: dict[str, Any]) -> None:
    row = row_of(failover, OFFSETS, 9, "broker-2")
    assert row["is_leading"]
    assert (row["first_offset"], row["end_offset"], row["records"]) == (0, 453, 453)
    assert row["first_timestamp"] == "2026-11-21T09:16:03.927Z"
    assert row["leader_epochs"] == [
        {"epoch": 0, "first_offset": 0},
        {"epoch": 2, "first_offset": 245},
    ]
    assert row["files"][0]["size"] == 51221
    assert (
        row_of(failover, "__transaction_state", 3, "broker-3")["records_above_high_watermark"] == 1
    )


def test_copies_in_it(failover: dict[str, Any]) -> None:
    assert [(c["name"], c["node_id"], c["clean_shutdown"]) for c in failover["copies"]] == [
        ("broker-1", 1, False),
        ("broker-2", 2, False),
        ("broker-3", 3, False),
        ("controller-100", 100, False),
    ]


def test_what_is_read_gives_the_manifest_that_headers_give(failover_dump: Path) -> None:
    found = plan([str(failover_dump)])
    read = []
    for each in found.slices:
        reader = SegmentReader(each)
        stats = SegmentStats(each.segment)
        damages = []
        for chunk in reader.chunks():
            stats.add(Headers.of_batches(chunk.records.batches))
            damages += chunk.damages
        read.append((each, stats.survey(damages, reader.summary.tail)))
    surveys = surveys_of_slices(found, read)
    by_headers = {
        (row["topic"], row["partition"], row["copy"]): row
        for row in manifest_of(failover_dump)["partitions"]
    }
    findings = Findings(
        found.copies, surveys, absent_partitions(found.copies), leading=found.leading
    )
    by_reading = build_manifest("1.2.3", [], {}, findings)["partitions"]
    assert len(by_reading) == len(by_headers)
    for row in by_reading:
        expected = by_headers[row["topic"], row["partition"], row["copy"]]
        # A batch as it is read knows its latest time only.
        row["first_timestamp"] = expected["first_timestamp"]
        for file, by_header in zip(row["files"], expected["files"], strict=True):
            file["first_timestamp"] = by_header["first_timestamp"]
        assert row == expected


# --- what a dump cannot tell ---------------------------------------------------------------------


def cannot_tell(path: Path) -> str:
    return "\n".join(manifest_of(path)["unanswerable"])


def test_topics_and_partitions_that_are_not_there(tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b")
    disk.partition(f"{OFFSETS}-2", {0: [written(0)]})
    text = cannot_tell(disk.path)
    assert "groups of __consumer_offsets 0-1: no copy holds them" in text
    assert "no copy holds a partition of __transaction_state" in text
    assert "no copy holds the metadata log" in text
    assert "lag: no copy holds a data topic" in text
    assert "only one copy is given" in text


def test_what_was_cleaned_and_what_is_missing(tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b")
    disk.partition(f"{OFFSETS}-0", {0: [written(0), written(5)], 6: [written(6)]})
    disk.partition(f"{OFFSETS}-1", {0: [written(0)], 6: [written(6)]})
    disk.checkpoint("cleaner-offset-checkpoint", {f"{OFFSETS}-0": 6})
    text = cannot_tell(disk.path)
    assert "history before offset 6 of __consumer_offsets-0 was compacted" in text
    assert "what happened in __consumer_offsets 1 at offsets that no file has" in text


def test_a_metadata_log_without_its_beginning(tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b")
    disk.partition("__cluster_metadata-0", {500: [written(500)]})
    assert "older than offset 500 of the metadata log" in cannot_tell(disk.path)


def test_checksums_not_looked_at(failover_dump: Path) -> None:
    assert not any("damage inside" in each for each in manifest_of(failover_dump)["unanswerable"])
    assert any("--check-crc" in e for e in manifest_of(failover_dump, crc=False)["unanswerable"])


def test_numbers_as_ranges() -> None:
    assert ranges([9, 0, 3, 4, 5]) == "0, 3-5, 9"
