"""The benchmarks' generator writes what brokers write, and the same for the same arguments."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from analytics.replay.log.topic_homes import home_of
from analytics.tables.record_reader import RecordReader
from benchmarks.generate import CODECS, Options, write_dump, write_segment, write_skewed_dump
from tests.support.decoded_here import decoded_here
from tests.support.segments import read_back


@pytest.mark.parametrize("kind", ["offsets", "share"])
@pytest.mark.parametrize("codecs", [("none",), CODECS])
@pytest.mark.parametrize("records_per_batch", [1, 30])
def test_a_generated_segment_is_read_without_damage(
    tmp_path: Path, kind: str, codecs: tuple[str, ...], records_per_batch: int
) -> None:
    options = Options(kind, 300_000, 50, records_per_batch, codecs)

    written = write_segment(tmp_path / "a.log", options)
    read = read_back(written.path)

    assert not read.damages
    assert read.summary
    assert read.summary.tail is None
    assert (read.summary.records, read.summary.batches) == (written.records, written.batches)
    assert [each.offset for each in read.records] == list(range(written.records))


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    options = Options(size=200_000)

    first, again = (write_segment(tmp_path / name, options) for name in ("a.log", "b.log"))
    other = write_segment(tmp_path / "c.log", options, number=1)

    assert first.path.read_bytes() == again.path.read_bytes() != other.path.read_bytes()


@pytest.mark.parametrize("codecs", [("none",), CODECS])
def test_a_transaction_is_ended_by_its_marker(tmp_path: Path, codecs: tuple[str, ...]) -> None:
    options = Options(size=300_000, groups=50, codecs=codecs, transaction_share=0.5)

    (written,) = write_dump(tmp_path / "dump", options, 1)
    reader = RecordReader(decoded_here([str(tmp_path / "dump")], tmp_path / "decoded"))
    commits, markers = (reader.table(name) for name in ("offset_commit", "control_markers"))
    waiting = commits.filter("is_transactional")
    ended = waiting.join(markers, on=["partition", "producer_id"], suffix="_of_end").filter(
        pl.col("offset_of_end") > pl.col("offset")
    )

    assert not read_back(written.path).damages
    assert 0.2 < 2 * markers.height / written.batches < 0.8
    assert waiting.height > markers.height
    assert set(waiting["offset"]) == set(ended["offset"])
    assert set(markers["offset"]) == set(ended["offset_of_end"])


def test_one_partition_has_its_share_of_a_skewed_dump(tmp_path: Path) -> None:
    options = Options(size=2_000_000, groups=500)

    written = list(write_skewed_dump(tmp_path, options, 5, 0.4, segment_bytes=100_000))

    logs = list(tmp_path.iterdir())
    sizes = {log.name: sum(each.stat().st_size for each in log.iterdir()) for log in logs}
    assert len(sizes) == 5
    whole = sum(sizes.values())
    assert sizes["__consumer_offsets-0"] / whole == pytest.approx(0.4, abs=0.1)
    for log in logs:
        ends = 0
        for path in sorted(log.iterdir()):
            found = read_back(path)
            assert not found.damages
            assert int(path.stem) == ends == found.records[0].offset
            ends += len(found.records)
    assert sum(each.size for each in written) == whole


def test_groups_lie_in_the_partitions_that_their_names_say(tmp_path: Path) -> None:
    written = write_dump(tmp_path, Options(size=50_000, groups=500, group_share=0.5), 7)

    names = [
        {_group_of(each.key) for each in read_back(segment.path).records if each.key}
        for segment in written
    ]

    assert all(len(found) > 10 for found in names)
    assert [{home_of(name, 7) for name in found} for found in names] == [{n} for n in range(7)]


def _group_of(key: bytes) -> str:
    """Return the group of a key of an offset or of a group: both have its name first."""
    size = int.from_bytes(key[2:4])
    return key[4 : 4 + size].decode()
