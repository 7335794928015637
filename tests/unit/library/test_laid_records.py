"""Every record is laid into one bucket, and groups are whole in theirs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from analytics.engine import replay_tasks
from analytics.engine.cut_tables import Cut, buckets_of
from analytics.engine.replay_tasks import lay_out, record_layout, run_task, widths
from analytics.replay.log.log_times import END
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
            for rows in rows_of_bucket(str(tmp_path), number, name)
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
                    for rows in rows_of_bucket(str(tmp_path), number, name)
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
            for rows in rows_of_bucket(str(tmp_path), number, name)
            for place in rows.select("partition", rows["key"].struct[key]).iter_rows()
        }
        seen.update(names)
    assert set(seen.values()) == {1}


def test_what_a_task_laid_out_that_was_tried_again_counts_once(
    reader: RecordReader, tmp_path: Path
) -> None:
    into = buckets_of(reader, 100)
    work = record_layout(Cut(reader, END), into, str(tmp_path))
    for number in range(len(work.tasks)):
        work.run(number)
    attempts = [work.run(number) for number in range(len(work.tasks))]
    found = Counter(
        place
        for number in range(len(into))
        for rows in rows_of_bucket(str(tmp_path), number, "offset_commit", attempts)
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


@pytest.mark.parametrize("most_parts", [2, 3, 5])
@pytest.mark.parametrize("lot_bytes", [1_000, 1 << 20])
def test_lots_are_laid_out_as_buckets_are_at_once(
    reader: RecordReader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most_parts: int,
    lot_bytes: int,
) -> None:
    monkeypatch.setattr(replay_tasks, "MOST_PARTS", most_parts)
    monkeypatch.setattr(replay_tasks, "_LOT_BYTES", lot_bytes)
    at_once, in_lots = tmp_path / "at-once", tmp_path / "in-lots"
    counted = _laid_out(reader, at_once, 20)
    widest: list[int] = []

    def run(place: str, count: int) -> list[str]:
        widest.append(count)
        return [[str(run_task(place, each)) for _ in range(2)][each % 2] for each in range(count)]

    place, attempts = lay_out(run, Cut(reader, END), buckets_of(reader, 20), str(in_lots))
    assert len(widest) == len(widths(counted, most_parts)) > 1
    assert [each.name for each in in_lots.glob("records*")] == [Path(place).name]
    for name in ("offset_commit", "share_update", "group_metadata"):
        for number in range(counted):
            expected = _places(str(at_once), number, name, None)
            assert _places(place, number, name, attempts) == expected


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
    work = record_layout(Cut(reader, END), into, str(folder))
    for number in range(len(work.tasks)):
        work.run(number)
    return len(into)


def test_records_that_hold_much_count_for_several(reader: RecordReader) -> None:
    of_commits = buckets_of(reader, 10_000)
    partition = next(iter(reader.counts(["offset_commit"])))
    large = {(CONSUMER_OFFSETS, partition): 400 * 25_000}
    of_large = buckets_of(reader, 10_000, large)
    assert {each.parts for each in of_commits} == {1}
    its = [each for each in of_large if each.topic == CONSUMER_OFFSETS]
    assert [(each.part, each.parts) for each in its] == [(0, 3), (1, 3), (2, 3)]
