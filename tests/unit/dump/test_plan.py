"""What is read: slices that cover every file once, and the rules that leave records out."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from analytics.dump.copies.plan import MOST_ABSENT, PlanOptions, absent_partitions, plan
from analytics.dump.copies.slices import Edges, Range, paint
from analytics.dump.files.inputs import recognize
from analytics.dump.files.model import MAX_OFFSET, Plan
from tests.support.batches import Header, batch, record
from tests.support.log_dirs import LogDir, written
from tests.support.planned_records import read_plan

OFFSETS = "__consumer_offsets"
SHARE = "__share_group_state"


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return LogDir.create(tmp_path / "b")


def test_slices_cover_every_byte_of_every_file_once(repository: Path) -> None:
    for dump in sorted((repository / "tests" / "data" / "dumps").glob("kafka-*")):
        found = plan([str(dump)], PlanOptions(split_bytes=20_000))
        covered = defaultdict(list)
        for each in found.slices:
            covered[each.copy, each.segment].append((each.from_position, each.to_position))
        files = {(c.name, s) for c in found.copies for p in c.partitions for s in p.segments}
        assert set(covered) == files
        for (_, segment), parts in covered.items():
            edges = sorted(parts)
            assert edges[0][0] == 0
            assert edges[-1][1] == segment.size
            assert all(a[1] == b[0] for a, b in pairwise(edges))


def test_a_single_copy_is_planned_without_reading_its_segments(
    disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.partition(f"{OFFSETS}-0", {0: [written(0, 5)], 5: [written(5, 5)]})
    inputs = recognize([str(disk.path)])

    def never(*_: object, **__: object) -> None:
        pytest.fail("a segment was walked")

    monkeypatch.setattr("analytics.dump.copies.plan.walk_segment", never)
    monkeypatch.setattr("analytics.dump.copies.plan.walk_copy", never)
    monkeypatch.setattr("analytics.dump.copies.slices.walk_segment", never)
    assert [each.to_position for each in plan(inputs).slices] == [
        len(written(0, 5)),
        len(written(5, 5)),
    ]


def test_a_large_segment_is_cut_between_batches(disk: LogDir) -> None:
    batches = [written(number, 1) for number in range(100)]
    disk.partition(f"{OFFSETS}-0", {0: batches})
    found = plan([str(disk.path)], PlanOptions(split_bytes=1000))
    assert len(found.slices) > 5
    starts = {sum(map(len, batches[:number])) for number in range(100)}
    assert {each.from_position for each in found.slices} <= starts
    assert read_plan(found).offsets() == list(range(100))


def test_a_batch_larger_than_a_split_is_not_cut(disk: LogDir) -> None:
    big = batch(Header(1, 0, 1), record(0, b"k", bytes(5000)))
    disk.partition(f"{OFFSETS}-0", {0: [written(0), big, written(2)]})
    found = plan([str(disk.path)], PlanOptions(split_bytes=1000))
    assert read_plan(found).offsets() == [0, 1, 2]


def test_records_below_the_log_start_are_left_out(disk: LogDir) -> None:
    disk.partition(f"{SHARE}-0", {0: [written(0, 5)], 5: [written(5, 5)]})
    disk.checkpoint("log-start-offset-checkpoint", {f"{SHARE}-0": 3})
    found = plan([str(disk.path)])
    assert [each.rules for each in found.slices] == [((0, 3, "below_log_start"),), ()]
    records = read_plan(found)
    assert records.offsets("", SHARE) == list(range(3, 10))
    assert records.left_out == {"below_log_start": 3}


def test_a_file_wholly_below_the_log_start_says_so(disk: LogDir) -> None:
    disk.partition(f"{SHARE}-0", {0: [written(0, 5)], 5: [written(5, 5)]})
    disk.checkpoint("log-start-offset-checkpoint", {f"{SHARE}-0": 7})
    records = read_plan(plan([str(disk.path)]))
    assert records.offsets("", SHARE) == [7, 8, 9]
    assert records.left_out == {"below_log_start": 7}


def test_records_above_the_high_watermark_are_used_unless_it_is_strict(disk: LogDir) -> None:
    disk.partition(f"{OFFSETS}-0", {0: [written(0, 5), written(5, 5)]})
    disk.checkpoint("replication-offset-checkpoint", {f"{OFFSETS}-0": 6})
    assert read_plan(plan([str(disk.path)])).offsets() == list(range(10))
    strict = read_plan(plan([str(disk.path)], PlanOptions(edges=Edges(strict_high_watermark=True))))
    assert strict.offsets() == list(range(6))
    assert strict.left_out == {"above_high_watermark": 4}


def test_topics_and_partitions_are_chosen_before_anything_is_read(disk: LogDir) -> None:
    for folder in (f"{OFFSETS}-0", f"{OFFSETS}-1", f"{SHARE}-1", "orders-1"):
        disk.partition(folder, {0: [written(0)]})

    def planned(**options: frozenset[str] | frozenset[int]) -> list[tuple[str, int]]:
        found: Plan = plan([str(disk.path)], PlanOptions(**options))  # type: ignore[arg-type]
        return [(each.topic, each.partition) for each in found.slices]

    assert planned() == [(OFFSETS, 0), (OFFSETS, 1), (SHARE, 1)]
    assert planned(topics=frozenset({SHARE})) == [(SHARE, 1)]
    assert planned(partitions=frozenset({1})) == [(OFFSETS, 1), (SHARE, 1)]


def test_partitions_below_the_highest_that_no_copy_holds_are_absent(disk: LogDir) -> None:
    for number in (1, 4):
        disk.partition(f"{OFFSETS}-{number}", {0: [written(0)]})
    assert absent_partitions(plan([str(disk.path)]).copies) == {OFFSETS: (0, 2, 3)}


def test_the_metadata_log_tells_of_absent_partitions_above_the_highest(disk: LogDir) -> None:
    for number in (1, 4):
        disk.partition(f"{OFFSETS}-{number}", {0: [written(0)]})
    copies = plan([str(disk.path)]).copies
    registered = {OFFSETS: 7, SHARE: 2}
    assert absent_partitions(copies, registered) == {OFFSETS: (0, 2, 3, 5, 6)}
    assert absent_partitions(copies, {OFFSETS: 3}) == {OFFSETS: (0, 2, 3)}
    assert len(absent_partitions(copies, {OFFSETS: 2**31})[OFFSETS]) == MOST_ABSENT


def test_a_directory_with_an_absurd_number_costs_nothing(disk: LogDir) -> None:
    disk.partition(f"{OFFSETS}-2147483647", {0: [written(0)]})
    absent = absent_partitions(plan([str(disk.path)]).copies)[OFFSETS]
    assert absent == tuple(range(10_000))


def test_an_empty_segment_is_read_too_so_that_it_is_accounted_for(disk: LogDir) -> None:
    disk.partition(f"{OFFSETS}-0", {0: []})
    (each,) = plan([str(disk.path)]).slices
    assert (each.from_position, each.to_position) == (0, 0)


# --- snapshots of the metadata log ---------------------------------------------------------------


def control(kind: int, base: int) -> bytes:
    key = (0).to_bytes(2) + kind.to_bytes(2)
    return batch(Header(base, 0, 1, codec=0x20), record(0, key, b"\0\0\0"))


def snapshot(*, footer: bool = True) -> bytes:
    content = control(3, 0) + batch(Header(1, 0, 1), record(0, None, b"\x01\x02\x00"))
    return content + control(4, 2) if footer else content


def test_equal_snapshots_of_several_nodes_are_read_once(tmp_path: Path) -> None:
    for node, name in enumerate("ab"):
        disk = LogDir.create(tmp_path / name, node=node)
        folder = disk.partition("__cluster_metadata-0", {0: [written(0, 9)]}, [(1, 0)])
        (folder / f"{5:020d}-0000000001.checkpoint").write_bytes(snapshot())
    found = plan([str(tmp_path)])
    read = [each for each in found.slices if each.segment.kind == "checkpoint"]
    assert [each.rules for each in read] == [(), ((0, MAX_OFFSET, "duplicate_copy"),)]


def test_a_snapshot_without_its_footer_is_not_read_and_said(disk: LogDir) -> None:
    folder = disk.partition("__cluster_metadata-0", {0: [written(0, 9)]}, [(1, 0)])
    (folder / f"{5:020d}-0000000001.checkpoint").write_bytes(snapshot(footer=False))
    found = plan([str(disk.path)])
    assert [each.segment.kind for each in found.slices] == ["log"]
    assert "without header or footer" in found.notes[0].what


# --- rules that overlap --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([], ()),
        ([Range(0, 5, "a"), Range(3, 9, "b")], ((0, 5, "a"), (5, 9, "b"))),
        ([Range(3, 5, "a"), Range(0, 9, "b")], ((0, 3, "b"), (3, 5, "a"), (5, 9, "b"))),
        ([Range(0, 9, "a"), Range(3, 5, "b")], ((0, 9, "a"),)),
        ([Range(5, 9, "a"), Range(0, 5, "b")], ((0, 5, "b"), (5, 9, "a"))),
    ],
)
def test_where_rules_overlap_the_first_counts(
    ranges: list[Range], expected: tuple[tuple[int, int, str], ...]
) -> None:
    assert paint(ranges) == expected
