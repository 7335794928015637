"""The benchmarks' generator writes what brokers write, and the same for the same arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.generate import CODECS, Options, write_segment
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
