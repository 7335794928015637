"""Files of a partition directory told apart by their names, and half-done cleanings finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.dump.files.model import SegmentFile
from analytics.dump.files.segments import (
    Listing,
    dying_state,
    is_segment_name,
    list_segments,
    partition_of,
    settle_swaps,
)
from analytics.dump.files.storage import storage_of

HEX = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("__consumer_offsets-17", ("__consumer_offsets", 17)),
        ("a-b-3", ("a-b", 3)),
        ("x.y_z-0", ("x.y_z", 0)),
        ("broker-1", ("broker", 1)),
        ("nonumber", None),
        ("t-", None),
        ("t-99999999999", None),
        (f"t-0.{HEX}-delete", None),
        ("spaced out-1", None),
    ],
)
def test_the_digits_after_the_last_hyphen_are_the_partition(
    folder: str, expected: tuple[str, int] | None
) -> None:
    assert partition_of(folder) == expected


@pytest.mark.parametrize("state", ["delete", "future", "stray"])
def test_directories_on_their_way_out_are_known(state: str) -> None:
    assert dying_state(f"__consumer_offsets-3.{HEX}-{state}") == state
    assert dying_state(f"__consumer_offsets-3-{state}") is None


def listed(folder: Path, topic: str = "__consumer_offsets") -> Listing:
    return list_segments(str(folder), topic, 0, storage_of(str(folder)).list(str(folder)))


def test_every_file_is_either_read_or_listed_with_the_reason(tmp_path: Path) -> None:
    for name in (
        f"{0:020d}.log",
        f"{50:020d}.log",
        f"{50:020d}.index",
        f"{50:020d}.timeindex",
        f"{50:020d}.snapshot",
        f"{9:020d}.log.deleted",
        f"{0:020d}.log.cleaned",
        f"{7:020d}-0000000001.checkpoint",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "notes.txt",
        "99999999999999999999.log",
    ):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    found = listed(tmp_path)
    assert [segment.base_offset for segment in found.segments] == [0, 50]
    assert {item.name: item.why for item in found.ignored} == {
        f"{9:020d}.log.deleted": "scheduled for removal by the broker",
        f"{0:020d}.log.cleaned": "a cleaner's output that was not complete",
        f"{7:020d}-0000000001.checkpoint": "snapshots belong to the metadata log alone",
        "notes.txt": "not a name Kafka gives",
        "99999999999999999999.log": "not a name Kafka gives",
        "folder": "a directory, where files of records belong",
    }


def test_snapshots_of_the_metadata_log_come_after_its_segments(tmp_path: Path) -> None:
    for name in (
        f"{0:020d}.log",
        f"{500:020d}-0000000003.checkpoint",
        f"{600:020d}-0000000003-7.checkpoint.part",
        f"{400:020d}-0000000003.checkpoint.deleted",
        f"{0:020d}-0000000000.checkpoint",
        "quorum-state",
    ):
        (tmp_path / name).touch()
    found = listed(tmp_path, "__cluster_metadata")
    assert [(s.kind, s.base_offset) for s in found.segments] == [("log", 0), ("checkpoint", 500)]
    assert sorted(item.why for item in found.ignored) == [
        "a snapshot that was not complete",
        "bootstrap records, not a state of the log",
        "scheduled for removal by the broker",
    ]


def test_a_finished_cleaning_replaces_the_originals_it_covers(tmp_path: Path) -> None:
    for name in (f"{0:020d}.log", f"{40:020d}.log", f"{90:020d}.log", f"{0:020d}.log.swap"):
        (tmp_path / name).touch()
    found = settle_swaps(listed(tmp_path), lambda _swap: 90)
    assert [(s.base_offset, s.state) for s in found.segments] == [(0, "swap"), (90, "live")]
    assert [(item.name, item.why) for item in found.ignored] == [
        (f"{0:020d}.log", "replaced by the cleaner's finished output"),
        (f"{40:020d}.log", "replaced by the cleaner's finished output"),
    ]


def test_an_empty_swap_file_still_replaces_the_original_of_its_name(tmp_path: Path) -> None:
    for name in (f"{0:020d}.log", f"{0:020d}.log.swap"):
        (tmp_path / name).touch()
    found = settle_swaps(listed(tmp_path), lambda swap: swap.base_offset)
    assert [s.state for s in found.segments] == ["swap"]


def test_a_swap_file_beside_unfinished_output_is_not_believed(tmp_path: Path) -> None:
    for name in (f"{0:020d}.log", f"{0:020d}.log.swap", f"{0:020d}.log.cleaned"):
        (tmp_path / name).touch()
    found = settle_swaps(listed(tmp_path), lambda _swap: 90)
    assert [(s.base_offset, s.state) for s in found.segments] == [(0, "live")]


def test_without_swap_files_no_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}.log").touch()

    def never(segment: SegmentFile) -> int:
        raise AssertionError(segment)

    assert settle_swaps(listed(tmp_path), never) == listed(tmp_path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{0:020d}.log", True),
        (f"{7:020d}-0000000001.checkpoint", True),
        (f"{0:020d}.log.deleted", False),
        ("bootstrap.checkpoint", False),
        ("0.log", False),
    ],
)
def test_names_of_segments(name: str, expected: bool) -> None:
    assert is_segment_name(name) is expected
