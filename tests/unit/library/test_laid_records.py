"""Every record is laid into one bucket, and groups are whole in theirs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from analytics.engine import record_layout
from analytics.engine.cut_tables import IN_BUCKETS, Cut, buckets_of
from analytics.engine.record_layout import lay_out, run_task, widths
from analytics.replay.history.partition_history import epochs_seen
from analytics.replay.log.log_times import END, AsOf
from analytics.tables.buckets import rows_of_bucket
from analytics.tables.record_reader import RecordReader
from schemas import CONSUMER_OFFSETS
from tests.support.decoded_here import decoded_here


@pytest.fixture(scope="module")
def reader(failover_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> RecordReader:
    folder = tmp_path_factory.mktemp("decoded")
    return RecordReader(decoded_here([str(failover_dump)], folder))


@pytest.mark.parametrize("most", [7, 100, 100_000])
def test_the_parts_of_a_dump_are_all_of_it(reader: RecordReader, tmp_path: Path, most: int) -> None:
    counted = _laid_out(reader, tmp_path, most)
    for name in ("offset_commit", "share_update", "group_metadata"):
        found = Counter(
            place
            for number in range(counted)
            for rows in rows_of_bucket(f"{tmp_path}/records", number, name)
            for place in rows.select("partition", "offset").iter_rows()
        )
        assert set(found.values()) == {1}
        every = reader.table(name).select("partition", "offset").iter_rows()
        assert set(found) == set(every)


def test_what_is_read_of_a_bucket_is_what_is_laid_out_for_it(
    reader: RecordReader, tmp_path: Path
) -> None:
    into = buckets_of(reader, 20)
    assert any(bucket.parts > 1 for bucket in into)
    _laid_out(reader, tmp_path, 20)
    for name in ("offset_commit", "share_update", "group_metadata"):
        topic = "__share_group_state" if name == "share_update" else "__consumer_offsets"
        for number, bucket in enumerate(into):
            if bucket.topic == topic:
                there = [
                    place
                    for rows in rows_of_bucket(f"{tmp_path}/records", number, name)
                    for place in rows.select("partition", "offset").iter_rows()
                ]
                read = reader.table(name, bucket).select("partition", "offset").iter_rows()
                assert sorted(read) == sorted(there)


def test_a_group_is_whole_in_its_bucket(reader: RecordReader, tmp_path: Path) -> None:
    counted = _laid_out(reader, tmp_path, 20)
    seen = Counter[tuple[int, str]]()
    for number in range(counted):
        names = {
            place
            for name, key in (("offset_commit", "group"), ("consumer_group_metadata", "group_id"))
            for rows in rows_of_bucket(f"{tmp_path}/records", number, name)
            for place in rows.select("partition", rows["key"].struct[key]).iter_rows()
        }
        seen.update(names)
    assert set(seen.values()) == {1}


def test_what_a_task_laid_out_that_was_tried_again_counts_once(
    reader: RecordReader, tmp_path: Path
) -> None:
    into = buckets_of(reader, 100)

    def run(place: str, count: int) -> list[Any]:
        return [[run_task(place, each) for _ in range(2)][1] for each in range(count)]

    laid = lay_out(run, Cut(reader, END), into, str(tmp_path))
    found = Counter(
        place
        for number in range(len(into))
        for rows in rows_of_bucket(laid.place, number, "offset_commit", laid.attempts)
        for place in rows.select("partition", "offset").iter_rows()
    )
    assert set(found.values()) == {1}
    assert found.total() == reader.table("offset_commit").height


@pytest.mark.parametrize(
    ("buckets", "expected"),
    [
        (1, [1]),
        (256, [1]),
        (257, [17, 1]),
        (400, [20, 1]),
        (256**2, [256, 1]),
        (256**2 + 1, [41**2, 41, 1]),
    ],
)
def test_buckets_are_laid_out_in_as_many_passes_as_keep_files_few(
    buckets: int, expected: list[int]
) -> None:
    assert widths(buckets, 256) == expected


@pytest.mark.parametrize(
    ("most_parts", "lot_bytes"),
    [
        (3, 1 << 20),
        (5, 1_000),
        # Each of the two is in a row above, and two parts are as three.
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((2, 1_000), (3, 1_000))),
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((2, 1 << 20), (5, 1 << 20))),
    ],
)
def test_lots_are_laid_out_as_buckets_are_at_once(
    reader: RecordReader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most_parts: int,
    lot_bytes: int,
) -> None:
    at_once, in_lots = tmp_path / "at-once", tmp_path / "in-lots"
    counted = _laid_out(reader, at_once, 20)
    monkeypatch.setattr(record_layout, "MOST_PARTS", most_parts)
    monkeypatch.setattr(record_layout, "_LOT_BYTES", lot_bytes)
    passes: list[int] = []

    def run(place: str, count: int) -> list[Any]:
        passes.append(count)
        return [[run_task(place, each) for _ in range(2)][each % 2] for each in range(count)]

    laid = lay_out(run, Cut(reader, END), buckets_of(reader, 20), str(in_lots))
    of_markers = 1
    assert len(passes) - of_markers == len(widths(counted, most_parts)) > 1
    assert [each.name for each in in_lots.glob("records*")] == [Path(laid.place).name]
    for name in ("offset_commit", "share_update", "group_metadata", "control_markers"):
        for number in range(counted):
            expected = _places(f"{at_once}/records", number, name, None)
            assert _places(laid.place, number, name, laid.attempts) == expected


def test_where_no_record_counts_at_an_instant_all_buckets_are_empty(
    reader: RecordReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_layout, "MOST_PARTS", 2)
    into = buckets_of(reader, 20)

    def run(place: str, count: int) -> list[Any]:
        return [run_task(place, each) for each in range(count)]

    laid = lay_out(run, Cut(reader, AsOf({}, 0)), into, str(tmp_path))
    assert laid.marker_epochs.is_empty()
    for name in ("offset_commit", "share_update", "control_markers"):
        for number in range(len(into)):
            assert not _places(laid.place, number, name, laid.attempts)


def test_a_marker_is_where_its_producer_committed_something(
    reader: RecordReader, tmp_path: Path
) -> None:
    counted = _laid_out(reader, tmp_path, 20)
    every = reader.table("control_markers").filter(pl.col("topic") == CONSUMER_OFFSETS)
    seen = set[tuple[int, int]]()
    for number in range(counted):
        commits, markers = (
            pl.concat([reader.empty(name), *rows_of_bucket(f"{tmp_path}/records", number, name)])
            for name in ("offset_commit", "control_markers")
        )
        expected = every.join(commits, on=["partition", "producer_id"], how="semi")
        assert sorted(markers.select("partition", "offset").iter_rows()) == sorted(
            expected.select("partition", "offset").iter_rows()
        )
        seen.update(markers.select("partition", "offset").iter_rows())
    assert 1 < len(seen) <= every.height


@pytest.mark.parametrize("buckets", [1, 20])
def test_all_markers_tell_of_leader_epochs(
    reader: RecordReader, tmp_path: Path, buckets: int
) -> None:
    laid = lay_out(_one_by_one, Cut(reader, END), buckets_of(reader, buckets), str(tmp_path))
    every = reader.table("control_markers").filter(pl.col("topic").is_in(IN_BUCKETS))
    assert laid.marker_epochs.height
    assert_frame_equal(
        laid.marker_epochs, epochs_seen({"control_markers": every}), check_row_order=False
    )


def _one_by_one(place: str, count: int) -> list[Any]:
    return [run_task(place, number) for number in range(count)]


def _places(
    place: str, number: int, name: str, attempts: frozenset[str] | None
) -> list[tuple[int, int]]:
    return sorted(
        each
        for rows in rows_of_bucket(place, number, name, attempts)
        for each in rows.select("partition", "offset").iter_rows()
    )


def _laid_out(reader: RecordReader, folder: Path, most: int) -> int:
    """Lay all records out; return into how many buckets."""
    into = buckets_of(reader, most)
    laid = lay_out(_one_by_one, Cut(reader, END), into, str(folder))
    assert laid.place == f"{folder}/records"
    return len(into)


def test_records_that_hold_much_count_for_several(reader: RecordReader) -> None:
    of_commits = buckets_of(reader, 10_000)
    partition = next(iter(reader.counts(["offset_commit"])))
    large = {(CONSUMER_OFFSETS, partition): 400 * 25_000}
    of_large = buckets_of(reader, 10_000, large)
    assert {each.parts for each in of_commits} == {1}
    its = [each for each in of_large if each.topic == CONSUMER_OFFSETS]
    assert [(each.part, each.parts) for each in its] == [(0, 3), (1, 3), (2, 3)]
