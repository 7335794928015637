"""The wire decoder against a plain `struct` loop and against kafka-python, on one core.

Compared is the way from a segment file to decoded Arrow columns: all columns of all tables, for all
records. The decoder runs without checksums, as the others do; what they add is measured apart.

To compare two branches: `python -m benchmarks wire` on each, one after the other, twice; compare
the ratios, which hardly depend on the machine.
"""

from __future__ import annotations

from functools import partial

from benchmarks.contestants import Segment, discard, kafka_python, ours, plain_loop
from benchmarks.data import Data
from benchmarks.equality import assert_equal_columns, assert_equal_sums
from benchmarks.measure import Contestant, interleaved, ratio
from benchmarks.report import Figure, Report

_OURS, _CHECKED = "decoder", "decoder, checksums verified"
_LOOP, _PEER = "plain struct loop", "kafka-python, then struct"


def run(data: Data) -> list[Report]:
    """Measure."""
    return [_offsets(data), _share(data)]


def _offsets(data: Data) -> Report:
    for other in (plain_loop, kafka_python):
        assert_equal_columns(data.offsets_whole, ours, other)
    segment = data.offsets
    records = assert_equal_sums(segment, ours, plain_loop)
    assert_equal_sums(segment, ours, kafka_python)
    times = interleaved(
        [
            Contestant(_OURS, partial(ours, segment, discard)),
            Contestant(_CHECKED, partial(ours, segment, discard, check_crc=True)),
            Contestant(_LOOP, partial(plain_loop, segment, discard)),
            Contestant(_PEER, partial(kafka_python, segment, discard)),
        ],
        data.rounds,
    )
    mine = times[_OURS].cpu
    added = (ratio(times[_CHECKED].cpu, mine) - 1) * 100
    report = Report(_title(segment))
    report.figures = [
        Figure(
            "faster than a plain struct loop", ratio(times[_LOOP].cpu, mine), at_least=12, aim=15
        ),
        Figure("faster than kafka-python with struct", ratio(times[_PEER].cpu, mine), at_least=10),
        Figure("checksums add", added, "%", at_most=20),
    ]
    report.add_times(times, records, segment.size)
    return report


def _share(data: Data) -> Report:
    assert_equal_columns(data.share_whole, ours, plain_loop)
    segment = data.share
    records = assert_equal_sums(segment, ours, plain_loop)
    times = interleaved(
        [
            Contestant(_OURS, partial(ours, segment, discard)),
            Contestant(_LOOP, partial(plain_loop, segment, discard)),
        ],
        data.rounds,
    )
    report = Report(_title(segment))
    faster = ratio(times[_LOOP].cpu, times[_OURS].cpu)
    report.figures = [Figure("faster than a plain struct loop", faster, at_least=20)]
    report.add_times(times, records, segment.size)
    return report


def _title(segment: Segment) -> str:
    return (
        f"{segment.topic}, {segment.size / 1e6:,.0f} MB, file to Arrow columns, one core; "
        "ratios of processor time"
    )
