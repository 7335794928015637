"""The benchmarks still run and still compare equal results; how fast is no test's business."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import wire
from benchmarks.contestants import ours, plain_loop
from benchmarks.data import Data, segments_in
from benchmarks.equality import assert_equal_columns, assert_equal_sums


@pytest.fixture
def data(tmp_path: Path) -> Data:
    return Data(tmp_path, segment_bytes=50_000, whole_bytes=50_000, large_bytes=400_000, rounds=1)


def test_the_decoder_and_the_plain_loop_make_the_same_columns(data: Data) -> None:
    for segment in (data.offsets, data.share):
        rows = assert_equal_columns(segment, ours, plain_loop)
        assert rows == assert_equal_sums(segment, ours, plain_loop)
        assert rows > 100


def test_all_contestants_run(data: Data) -> None:
    pytest.importorskip("kafka", reason="kafka-python is installed by `make bench` only")
    reports = wire.run(data)
    assert [len(report.figures) for report in reports] == [3, 1]
    assert all(figure.what in report.show() for report in reports for figure in report.figures)


def test_a_multiplied_dump_is_one_log_of_many_segments(data: Data) -> None:
    with data.multiplied(3) as dump:
        segments = segments_in(dump)
        assert len(segments) == 3 * len(segments_in(data.dump))
        for segment in segments:
            assert segment.read_bytes()[:8] == int(segment.stem).to_bytes(8)
    assert not dump.exists()
