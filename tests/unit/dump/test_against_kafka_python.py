"""kafka-python's record parser, where it is installed, reads the same from the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.segments import Record, read_back

record_parser = pytest.importorskip("kafka.record", reason="kafka-python is not installed")

DUMPS = Path(__file__).parents[2] / "data" / "dumps"
SEGMENTS = sorted(DUMPS.glob("*/broker-1/__*/*.log"))


def _read_by_kafka_python(data: bytes) -> list[Record]:
    found = []
    batches = record_parser.MemoryRecords(data)
    while batches.has_next():
        batch = batches.next_batch()
        for record in batch:
            timestamp = -1 if record.timestamp is None else record.timestamp
            found.append(Record(record.offset, timestamp, record.key, record.value))
    return found


def test_every_segment_of_the_dumps_reads_the_same() -> None:
    assert SEGMENTS
    compared = 0
    for path in SEGMENTS:
        data = path.read_bytes()
        ours = read_back(data)
        # It has no codec for snappy and lz4 without further packages, and its lz4 of format 0
        # wants a right header checksum.
        if {each["codec"] for each in ours.batches} <= {0, 1}:
            assert ours.records == _read_by_kafka_python(data), path
            compared += len(ours.records)
    assert compared > 1000
