"""`groupscope decode` against Kafka's `kafka-dump-log --offsets-decoder` on the same segments.

Kafka's tool prints one segment, in one thread, to nowhere; its rate on that segment, its start
taken off, is what it is credited with for the large dump. The installed command decodes the large
dump, which repeats four generated segments with other base offsets, on `local[2]`: as a whole
process, and without what the same command takes for a tiny dump, which is Spark's start.

To compare two branches: `python -m benchmarks --peers` on each.
"""

from __future__ import annotations

import shutil
import statistics
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.command import GROUPSCOPE, Run, run_command
from benchmarks.contestants import Segment, ours
from benchmarks.data import Data, segments_in, size_of
from benchmarks.equality import sums
from benchmarks.generate import Options, write_dump
from benchmarks.kafka_tools import RELEASE, ToolsUnavailableError, dump_log, fetch, printed_records
from benchmarks.measure import Contestant, interleaved
from benchmarks.report import Figure, Report

_TINY_BYTES = 100_000
_OURS, _OUR_START = "groupscope decode, large dump", "groupscope decode, tiny dump (start)"
_PEER, _PEER_START = "kafka-dump-log, one segment", "kafka-dump-log, tiny segment (start)"


def run(data: Data) -> list[Report]:
    """Measure."""
    report = Report(f"The command against kafka-dump-log {RELEASE}; ratios of records/s, wall time")
    try:
        jars = fetch(data.folder / "tools")
    except ToolsUnavailableError as reason:
        report.details.append(f"    skipped: {reason}")
        return [report]
    whole = data.offsets_whole
    printed, counted = printed_records(jars, whole.path), _records(whole)
    assert printed == counted, f"kafka-dump-log prints {printed} records of {counted}"
    tiny = data.folder / "tiny"
    tiny_segment = write_dump(tiny, Options(size=_TINY_BYTES), 1)[0].path
    with data.multiplied(data.large_times) as large:
        out = data.folder / "decoded"
        times = interleaved(
            [
                Contestant(_PEER, _quiet(dump_log(jars, data.offsets.path))),
                Contestant(_PEER_START, _quiet(dump_log(jars, tiny_segment))),
                Contestant(_OURS, _quiet(_decode(large, out))),
                Contestant(
                    _OUR_START,
                    _quiet(_decode(tiny, data.folder / "tiny-decoded")),
                ),
            ],
            data.rounds,
        )
        records = _written(out)
        report.title += f"; {len(segments_in(large))} segments, {size_of(large) / 1e6:,.0f} MB"
        shutil.rmtree(out)
    walls = {name: each.wall for name, each in times.items()}
    sample = _records(data.offsets)
    job, process = [], []
    for peer, peer_start, mine, my_start in zip(
        walls[_PEER], walls[_PEER_START], walls[_OURS], walls[_OUR_START], strict=True
    ):
        rate = sample / max(peer - peer_start, 1e-9)
        job.append(records / max(mine - my_start, 1e-9) / rate)
        process.append((peer_start + records / rate) / mine)
    report.figures = [
        Figure("times its records/s, the job itself", statistics.median(job), at_least=10),
        Figure("times its records/s, the whole process", statistics.median(process), at_least=5),
    ]
    start = statistics.median(walls[_OUR_START])
    report.details.append(f"    Spark's start and end: {start:.1f} s")
    report.details.append(f"    {records:,} records in the large dump, {sample:,} in the segment")
    report.add_times(times, cpu=False)
    return [report]


def _quiet(command: list[str]) -> partial[Run]:
    return partial(run_command, command)


def _decode(dump: Path, out: Path) -> list[str]:
    return [str(GROUPSCOPE), "decode", str(dump), "--out", str(out), "--master", "local[2]"]


def _records(segment: Segment) -> int:
    found = sums(segment, ours)
    return sum(
        count for (_, leaf, what), count in found.items() if (leaf, what) == ("offset", "rows")
    )


def _written(out: Path) -> int:
    return sum(pq.read_metadata(each).num_rows for each in out.glob("decoded/*/*.parquet"))
