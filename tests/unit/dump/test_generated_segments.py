"""The benchmarks' generator writes what brokers write, and the same for the same arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.replay.log.topic_homes import home_of
from benchmarks.generate import CODECS, Options, write_dump, write_segment
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
