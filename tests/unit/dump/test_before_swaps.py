"""When the segments beside a cleaner's swap file show what was before it, and when they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.files.model import Plan
from tests.support.log_dirs import LogDir, written
from tests.support.planned_records import read_plan

OFFSETS = "__consumer_offsets"
SWAP = written(0, 10, kept=[4]) + written(10, 10, kept=[12])
"""What a cleaner left of three segments: nothing of the third."""


def partition(disk: Path) -> Path:
    return disk / f"{OFFSETS}-0"


def log(number: int) -> str:
    return f"{number:020d}.log"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Three segments that were cleaned into a swap file, and the one that is written."""
    disk = LogDir.create(tmp_path / "broker")
    segments = {at: [written(at, 10)] for at in (0, 10, 20, 30)}
    folder = disk.partition(f"{OFFSETS}-0", segments)
    (folder / f"{log(0)}.swap").write_bytes(SWAP)
    (disk.path / "cleaner-offset-checkpoint").write_text(f"0\n1\n{OFFSETS} 0 0\n")
    return disk.path


def why_not(found: Plan) -> str:
    assert found.before_swaps is None
    (note,) = found.notes
    assert note.where == f"broker: {OFFSETS}-0"
    return note.what.partition("beside a swap file: ")[2]


def test_the_swap_file_is_read_and_beside_it_all_that_was_before(disk: Path) -> None:
    found = plan([str(disk)])
    # A broker leaves a segment alone that begins behind what is left in the swap file.
    assert read_plan(found).offsets() == [4, 12, *range(20, 40)]
    assert found.before_swaps is not None
    assert read_plan(found.before_swaps).offsets() == list(range(40))
    assert found.notes == ()


def test_only_partitions_with_swap_files_are_read_twice(disk: Path) -> None:
    LogDir(disk).partition(f"{OFFSETS}-1", {0: [written(0, 5)]})
    found = plan([str(disk)])
    assert found.before_swaps is not None
    assert {each.partition for each in found.before_swaps.slices} == {0}
    assert plan([str(disk)], PlanOptions(partitions=frozenset({1}))).before_swaps is None


@pytest.mark.parametrize("end", [10, 20])
def test_all_of_the_segments_was_cleaned_whatever_is_left_of_them(disk: Path, end: int) -> None:
    (partition(disk) / f"{log(0)}.swap").write_bytes(SWAP if end == 20 else written(0, 3, kept=[1]))
    (copy,) = plan([str(disk)]).copies
    assert copy.partitions[0].first_dirty_offset == end


def test_a_segment_that_is_gone_cannot_be_told_from_a_hole(disk: Path) -> None:
    (partition(disk) / log(10)).unlink()
    assert why_not(plan([str(disk)])) == (
        f"{log(0)} ends at offset 10 and the next segment begins at 20: whether another one is "
        f"missing cannot be told"
    )


def test_nor_can_one_that_ends_early(disk: Path) -> None:
    (partition(disk) / log(10)).write_bytes(written(10, 8))
    assert "ends at offset 18 and the next segment begins at 20" in why_not(plan([str(disk)]))


def test_without_the_first_segment_nothing_is_shown(disk: Path) -> None:
    (partition(disk) / log(0)).unlink()
    assert "no segment that begins where" in why_not(plan([str(disk)]))


def test_a_swap_file_whose_segments_the_broker_deleted_is_all_there_is(disk: Path) -> None:
    for number in (0, 10):
        (partition(disk) / log(number)).rename(partition(disk) / f"{log(number)}.deleted")
    assert "no segment that begins where" in why_not(plan([str(disk)]))


def test_a_damaged_segment_shows_less_than_the_swap_file(disk: Path) -> None:
    bytes_of = bytearray((partition(disk) / log(10)).read_bytes())
    bytes_of[-1] ^= 1
    (partition(disk) / log(10)).write_bytes(bytes_of)
    assert why_not(plan([str(disk)])) == f"{log(10)} cannot be read whole"


def test_what_a_swap_file_has_and_no_segment_is_of_another_log(disk: Path) -> None:
    (partition(disk) / log(0)).write_bytes(written(0, 3) + written(6, 4))
    assert why_not(plan([str(disk)])) == (
        f"{log(0)}.swap has a batch of offsets 0 to 10 that no segment beside it has"
    )


def test_one_of_two_swap_files_that_shows_nothing_leaves_the_partition_as_it_is(
    disk: Path,
) -> None:
    (partition(disk) / f"{log(20)}.swap").write_bytes(written(20, 10, kept=[21, 29]))
    assert plan([str(disk)]).before_swaps is not None
    (partition(disk) / log(0)).unlink()
    assert "no segment" in why_not(plan([str(disk)]))


def test_a_cleaning_that_was_not_complete_is_not_read_at_all(disk: Path) -> None:
    (partition(disk) / f"{log(0)}.cleaned").write_bytes(b"")
    found = plan([str(disk)])
    assert read_plan(found).offsets() == list(range(40))
    assert found.before_swaps is None
    assert found.notes == ()
