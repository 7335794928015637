"""A batch that rotted on one broker's disk comes from another broker's."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.dump.copies.plan import PlanOptions, plan
from tests.support.log_dirs import LogDir, written
from tests.support.planned_records import read_plan

OFFSETS = "__consumer_offsets"
BATCHES = [written(number * 5, 5) for number in range(8)]


def flipped(batch: bytes, place: int) -> bytes:
    rotten = bytearray(batch)
    rotten[-place] ^= 0x10
    return bytes(rotten)


def copies(root: Path, **rotten: set[int]) -> None:
    """Copies by name, each with some of its batches rotten; a goes furthest, so it leads."""
    for name, numbers in rotten.items():
        disk = LogDir.create(root / name, node=ord(name))
        # No two disks rot at the same bit.
        place = ord(name) - ord("a") + 3
        batches = [flipped(b, place) if n in numbers else b for n, b in enumerate(BATCHES)]
        last = [written(40)] if name == "a" else []
        disk.partition(f"{OFFSETS}-0", {0: [*batches[:4]], 20: [*batches[4:], *last]}, [(0, 0)])


@pytest.mark.parametrize("numbers", [{0}, {3}, {4, 5}, {7}, {0, 1, 2, 3, 4, 5, 6, 7}])
def test_what_rotted_in_the_leading_copy_comes_from_another(
    tmp_path: Path, numbers: set[int]
) -> None:
    copies(tmp_path, a=numbers, b=set())
    found = plan([str(tmp_path)])
    records = read_plan(found)
    assert found.divergences == ()
    assert records.offsets() == list(range(41))
    assert records.twice == []
    line = records.lines["", OFFSETS, 0]
    assert {offset // 5 for offset in range(40) if line[offset].copy == "b"} == numbers


def test_each_copy_may_rot_elsewhere(tmp_path: Path) -> None:
    copies(tmp_path, a={1}, b={1, 2}, c={2, 6})
    records = read_plan(plan([str(tmp_path)]))
    assert records.offsets() == list(range(41))
    assert records.lines["", OFFSETS, 0][5].copy == "c"
    assert records.twice == []


def test_what_rotted_everywhere_is_lost(tmp_path: Path) -> None:
    copies(tmp_path, a={1}, b={1})
    records = read_plan(plan([str(tmp_path)]))
    assert records.offsets() == [*range(5), *range(10, 41)]


def test_bytes_are_compared_unless_that_is_not_wanted(tmp_path: Path) -> None:
    copies(tmp_path, a={1}, b=set())
    records = read_plan(plan([str(tmp_path)], PlanOptions(compare_bytes=False)))
    assert records.offsets() == [*range(5), *range(10, 41)]
