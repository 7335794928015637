"""One of each kind of damage, through the installed command.

All of it lies in one dump, each kind in a partition of its own, so that one run shows that none
stops the others: every undamaged record is there, everything else is accounted for by name.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Groupscope
from tests.support.damaged_dump import COPY, DamagedDump, Injury, damaged_dump
from tests.support.decoded_rows import DecodedRow, read_manifest, read_rows
from tests.support.dump_log_check import check

DAMAGES = {
    # kind of damage: the reasons that the manifest and the table `undecoded` give
    "bit_flip": {"bad_crc"},
    "broken_length": {"bad_length"},
    "two_gibibytes": {"bad_length"},
    "implausible_offset": {"implausible_offset"},
    "garbage_between_batches": {"garbage_between_batches"},
    "gzip_bomb": {"decompressed_too_large"},
    "lz4_bomb": {"decompressed_too_large"},
    "zstd_bomb": {"decompressed_too_large"},
    "snappy_claims_much": {"bad_compression", "decompressed_too_large"},
    "negative_count": {"bad_record_count"},
    "count_beyond_the_batch": {"bad_record_count"},
    "count_of_two_billion": {"bad_record_count"},
    "negative_record_length": {"bad_record"},
    "record_length_beyond_the_batch": {"bad_record"},
    "endless_varint": {"bad_record"},
    "empty_records": {"bad_record_count"},
    "nested_wrappers": {"bad_record"},
}
WITHOUT_DAMAGED_BYTES = {"truncated", "duplicated_segment", "missing_segment", "hostile_values"}


class Decoded:
    """What one run of the command made of the damaged dump."""

    def __init__(self, dump: DamagedDump, groupscope: Groupscope, out: Path) -> None:
        self.dump = dump
        self.ran = groupscope("decode", f"{COPY}={dump.log_dir}", "--out", out)
        self.manifest: dict[str, Any] = read_manifest(out)
        self.rows = read_rows(out)

    def partition(self, injury: Injury) -> dict[str, Any]:
        """The manifest's entry of the injured partition."""
        return self._entry("partitions", injury)

    def account(self, injury: Injury) -> dict[str, Any]:
        """The account of the injured partition's records and bytes."""
        return self._entry("reconciliation", injury)

    def _entry(self, section: str, injury: Injury) -> dict[str, Any]:
        topic, number = injury.partition.rsplit("-", 1)
        (found,) = (
            each
            for each in self.manifest[section]
            if (each["topic"], each["partition"]) == (topic, int(number))
        )
        entry: dict[str, Any] = found
        return entry

    def rows_of(self, injury: Injury, table: str | None = None) -> list[DecodedRow]:
        """The decoded rows of the injured partition, or the rows of one table of it."""
        topic, number = injury.partition.rsplit("-", 1)
        return [
            row
            for row in self.rows
            if (row.values["topic"], row.values["partition"]) == (topic, int(number))
            and (row.table == table if table else row.table != "undecoded")
        ]


@pytest.fixture(scope="module")
def decoded(
    groupscope: Groupscope, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Decoded:
    folder = tmp_path_factory.mktemp("damage")
    source = repository / "tests" / "data" / "dumps" / "kafka-4.3.1-story"
    return Decoded(damaged_dump(source, folder / "dump"), groupscope, folder / "out")


def test_damage_is_no_failure(decoded: Decoded) -> None:
    assert decoded.ran.returncode == 0, decoded.ran.stderr
    assert decoded.manifest["unreadable"] == []
    assert "Traceback" not in decoded.ran.stderr


def test_every_kind_is_there(decoded: Decoded) -> None:
    assert set(decoded.dump.injuries) == set(DAMAGES) | WITHOUT_DAMAGED_BYTES


def test_all_undamaged_records_are_there_as_the_tool_printed_them(decoded: Decoded) -> None:
    by_hand = {
        (injury.partition, offset)
        for injury in decoded.dump.injuries.values()
        for offset in injury.sound
    }
    real = [
        row
        for row in decoded.rows
        if row.table != "undecoded"
        and (f"{row.values['topic']}-{row.values['partition']}", row.values["offset"])
        not in by_hand
    ]
    found = check(decoded.dump.folder, [COPY], real, decoded.dump.lost())
    assert found.differences == []
    assert found.compared == len(real)
    lost = Counter(segment for segment, _ in decoded.dump.lost())
    assert found.left_out["lost"] >= len(lost)


def test_what_is_made_by_hand_and_sound_is_found_behind_the_damage(decoded: Decoded) -> None:
    for injury in decoded.dump.injuries.values():
        offsets = Counter(row.values["offset"] for row in decoded.rows_of(injury))
        assert all(offsets[offset] == 1 for offset in injury.sound), injury.name


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_batch_is_one_row_with_its_bytes_and_its_reason(
    name: str, decoded: Decoded
) -> None:
    injury = decoded.dump.injuries[name]
    (row,) = decoded.rows_of(injury, "undecoded")
    assert row.values["offset"] is None
    assert row.values["reason"] in DAMAGES[name]
    path = decoded.dump.log_dir / injury.partition / injury.segment
    start, size = row.values["batch_position"], row.values["batch_bytes"]
    assert row.values["value"] == path.read_bytes()[start : start + min(size, 1 << 20)]
    if injury.lost:
        assert {start} == injury.lost


@pytest.mark.parametrize("name", DAMAGES)
def test_the_manifest_says_what_is_damaged_and_where(name: str, decoded: Decoded) -> None:
    injury = decoded.dump.injuries[name]
    partition = decoded.partition(injury)
    (damage,) = partition["damages"]
    assert damage["reason"] in DAMAGES[name]
    assert damage["file"] == f"{injury.partition}/{injury.segment}"
    assert partition["bytes_damaged"] == damage["size"]
    assert partition["crc_failures"] == (name == "bit_flip")


def test_everything_adds_up(decoded: Decoded) -> None:
    assert all(account["reconciles"] for account in decoded.manifest["reconciliation"])
    for injury in decoded.dump.injuries.values():
        account = decoded.account(injury)
        files = decoded.partition(injury)["files"]
        assert account["bytes_read"] == sum(each["size"] for each in files), injury.name
        damaged = sum(
            row.values["batch_bytes"]
            for row in decoded.rows_of(injury, "undecoded")
            if row.values["offset"] is None
        )
        assert account["bytes_damaged"] == damaged, injury.name
        assert account["decoded"] == len(decoded.rows_of(injury)), injury.name


def test_a_cut_off_batch_is_a_tail_not_a_damage(decoded: Decoded) -> None:
    injury = decoded.dump.injuries["truncated"]
    (position,) = injury.lost
    size = (decoded.dump.log_dir / injury.partition / injury.segment).stat().st_size
    partition = decoded.partition(injury)
    assert partition["truncated_tail"] == size - position
    assert partition["bytes_damaged"] == 0
    assert decoded.rows_of(injury, "undecoded") == []
    # The high watermark had already passed what is cut off.
    assert [gap["kind"] for gap in partition["gaps"]] == ["missing_segment"]


def test_a_segment_under_two_names_is_read_once(decoded: Decoded) -> None:
    injury = decoded.dump.injuries["duplicated_segment"]
    offsets = Counter(row.values["offset"] for row in decoded.rows_of(injury))
    assert set(offsets.values()) == {1}
    assert decoded.rows_of(injury, "undecoded") == []
    (ignored,) = decoded.partition(injury)["ignored"]
    assert ignored["name"] == "00000000000000000300.log"
    assert "same bytes" in ignored["why"]


def test_a_missing_segment_is_a_gap(decoded: Decoded) -> None:
    partition = decoded.partition(decoded.dump.injuries["missing_segment"])
    assert partition["gaps"] == [{"first_offset": 0, "end_offset": 24, "kind": "missing_segment"}]
    assert partition["complete_from"] == 24


def test_hostile_keys_and_values_are_undecoded_records(decoded: Decoded) -> None:
    injury = decoded.dump.injuries["hostile_values"]
    rows = decoded.rows_of(injury, "undecoded")
    assert {row.values["offset"] for row in rows} == injury.undecoded
    reasons = Counter(row.values["reason"] for row in rows)
    assert decoded.account(injury)["undecoded"] == reasons
    assert reasons.keys() >= {
        "null_key",
        "truncated",
        "unknown_record_type",
        "unsupported_version",
        "unexpected_null",
        "negative_length",
        "length_beyond_end",
        "varint_too_long",
        "invalid_utf8",
        "trailing_bytes",
    }
