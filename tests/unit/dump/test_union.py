"""Copies made to differ by cleaning, damage, lost files: every record once, none revived."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from analytics.dump.copies.plan import plan
from analytics.dump.files.model import Filled
from tests.support.log_dirs import LogDir, written
from tests.support.planned_records import Planned, read_plan

FOLDER = "__consumer_offsets-0"


class Copies:
    def __init__(self, root: Path) -> None:
        self.root = root

    def add(self, name: str, segments: dict[int, list[bytes]], dirty: int | None = None) -> None:
        disk = LogDir.create(self.root / name, node=ord(name[0]))
        disk.partition(FOLDER, segments, [(0, 0)])
        if dirty is not None:
            disk.checkpoint("cleaner-offset-checkpoint", {FOLDER: dirty} if dirty else {})

    def read(self) -> tuple[Planned, tuple[Filled, ...]]:
        found = plan([str(self.root)])
        assert found.divergences == ()
        records = read_plan(found)
        assert records.twice == []
        assert sum(map(len, records.lines.values())) + records.left_out.total() == (
            records.read.total()
        )
        return records, found.filled


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    return Copies(tmp_path)


def test_equal_copies_are_read_once(copies: Copies) -> None:
    for name in "abc":
        copies.add(name, {0: [written(0, 5), written(5, 5)]}, dirty=0)
    records, filled = copies.read()
    assert records.offsets() == list(range(10))
    assert records.left_out == {"duplicate_copy": 20}
    assert filled == ()


def test_a_segment_that_the_leading_copy_lost_comes_from_another(copies: Copies) -> None:
    copies.add("a", {0: [written(0, 5)], 10: [written(10, 5)]}, dirty=0)
    copies.add("b", {0: [written(0, 5)], 5: [written(5, 5)]}, dirty=0)
    records, (filled,) = copies.read()
    assert records.offsets() == list(range(15))
    assert (filled.copy, filled.first_offset, filled.end_offset) == ("b", 5, 10)
    assert filled.why == "missing_there"


def test_older_segments_come_from_the_copy_that_has_them(copies: Copies) -> None:
    copies.add("a", {10: [written(10, 5)]}, dirty=0)
    copies.add("b", {0: [written(0, 10)]}, dirty=0)
    records, (filled,) = copies.read()
    assert records.offsets() == list(range(15))
    assert filled.why == "older_segments"


def test_records_cleaned_away_come_from_a_copy_that_still_has_them(copies: Copies) -> None:
    copies.add(
        "a", {0: [written(0, 5, kept=[2]), written(5, 5, kept=[9])], 10: [written(10, 5)]}, dirty=10
    )
    copies.add("b", {0: [written(0, 5, kept=[2, 3]), written(5, 5)], 10: [written(10, 2)]}, dirty=5)
    records, filled = copies.read()
    assert records.offsets() == [2, 3, *range(5, 15)]
    assert {each.why for each in filled} == {"cleaned_there"}
    assert records.lines["", "__consumer_offsets", 0][2].copy == "a"
    assert records.lines["", "__consumer_offsets", 0][3].copy == "b"


def test_a_copy_that_ended_before_the_cleaning_revives_nothing(copies: Copies) -> None:
    # The key of offset 3 may have been deleted at an offset that only the leading copy saw.
    copies.add("a", {0: [written(0, 5, kept=[2])], 10: [written(10, 5)]}, dirty=10)
    copies.add("b", {0: [written(0, 5)]}, dirty=0)
    records, filled = copies.read()
    assert records.offsets() == [2, *range(10, 15)]
    assert records.left_out == {"duplicate_copy": 1, "superseded_in_leading_copy": 4}
    assert filled == ()


def test_a_copy_with_a_hole_of_its_own_revives_nothing(copies: Copies) -> None:
    copies.add(
        "a", {0: [written(0, 5, kept=[2]), written(5, 5, kept=[9])], 10: [written(10, 5)]}, dirty=10
    )
    copies.add("b", {0: [written(0, 5)], 10: [written(10, 5)]}, dirty=0)
    records, _ = copies.read()
    assert records.offsets() == [2, 9, *range(10, 15)]
    assert records.left_out["superseded_in_leading_copy"] == 4


def test_a_whole_batch_that_is_gone_there_is_kept(copies: Copies) -> None:
    copies.add("a", {0: [written(5, 5, kept=[9])], 10: [written(10, 5)]}, dirty=10)
    copies.add("b", {0: [written(0, 5), written(5, 5)], 10: [written(10, 5)]}, dirty=0)
    records, _ = copies.read()
    assert records.offsets() == list(range(15))


def test_an_emptied_batch_holds_nothing_and_hides_nothing(copies: Copies) -> None:
    copies.add("a", {0: [written(0, 5, kept=[])], 5: [written(5, 5)]}, dirty=5)
    copies.add("b", {0: [written(0, 5)], 5: [written(5, 5)]}, dirty=0)
    records, _ = copies.read()
    assert records.offsets() == list(range(10))


def test_below_the_leading_copys_log_start_nothing_is_filled(tmp_path: Path) -> None:
    for name in "ab":
        disk = LogDir.create(tmp_path / name, node=ord(name))
        start = 7 if name == "a" else 0
        disk.partition(FOLDER, {0: [written(0, 5), written(5, 5)]}, [(0, 0)])
        disk.partition(
            "__share_group_state-0", {5 if start else 0: [written(5, 5), written(10, 5)]}
        )
        if start:
            disk.checkpoint("log-start-offset-checkpoint", {FOLDER: start})
    found = plan([str(tmp_path)])
    records = read_plan(found)
    assert records.offsets() == [7, 8, 9]
    # Not compacted: the log begins with the first file of the leading copy.
    assert records.offsets("", "__share_group_state", 0) == list(range(5, 15))
    assert records.left_out["below_log_start"] == 7 + 7
    assert records.twice == []


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_cleaned_cut_or_lost_records_are_kept_once(tmp_path: Path, seed: int) -> None:
    """Against the plain rule: the leading copy's records, and what may be added of the others."""
    draw = random.Random(seed)
    sizes = [draw.randint(1, 4) for _ in range(draw.randint(4, 14))]
    bases = [sum(sizes[:number]) for number in range(len(sizes))]
    end = sum(sizes)
    held: dict[str, set[int]] = {}
    ends = dict.fromkeys("abc", 0)
    dirty: dict[str, int] = {}
    for node, name in enumerate("abc"):
        last = len(sizes) if name == "a" else draw.randint(1, len(sizes))
        cleaned = draw.randint(0, last)
        batches: dict[int, list[bytes]] = {0: []}
        held[name] = set()
        for number, (base, size) in enumerate(zip(bases[:last], sizes[:last], strict=True)):
            offsets = set(range(base, base + size))
            if number < cleaned:
                offsets = {offset for offset in offsets if draw.random() < 0.5}
                if not offsets and draw.random() < 0.7:
                    continue
            held[name] |= offsets
            ends[name] = base + size
            if number == cleaned and number:
                batches[base] = []
            batches[max(batches)].append(written(base, size, kept=offsets))
        dirty[name] = bases[cleaned] if cleaned < len(bases) else end
        disk = LogDir.create(tmp_path / name, node=node)
        disk.partition(FOLDER, batches, [(0, 0)])
        disk.checkpoint("cleaner-offset-checkpoint", {FOLDER: dirty[name]})
    found = plan([str(tmp_path)])
    records = read_plan(found)
    assert found.divergences == ()
    assert records.twice == []
    assert set(records.offsets()) <= set().union(*held.values())
    leading = found.leading["__consumer_offsets", 0]
    expected = set(held[leading])
    for name, offsets in held.items():
        reaches = ends[name] >= dirty[leading]
        expected |= {offset for offset in offsets if offset >= dirty[leading] or reaches}
    assert set(records.offsets()) == expected
    assert sum(map(len, records.lines.values())) + records.left_out.total() == records.read.total()
