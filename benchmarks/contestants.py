"""The ways to get from a segment to decoded Arrow columns, all with the same interface.

Each takes a `Segment` and hands every batch to ``emit``; what is emitted is compared before
anything is timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from analytics.decode.tables import LABEL, Origin
from analytics.decode.tasks import Settings, SliceReport, decode_slice
from analytics.dump.files.model import SegmentFile, Slice
from benchmarks.plain_columns import Emit
from benchmarks.plain_offsets import OffsetsRows
from benchmarks.plain_records import each_record
from benchmarks.plain_share import ShareRows

_COPY = "broker-1"


@dataclass(frozen=True)
class Segment:
    """A segment file of one partition."""

    path: Path
    topic: str
    partition: int = 0

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size

    @property
    def origin(self) -> Origin:
        """What the decoded rows say of where they come from."""
        return Origin(self.topic, self.partition, _COPY, self.path.name)


def ours(segment: Segment, emit: Emit, *, check_crc: bool = False) -> None:
    """The wire decoder, on one core, without Spark and without writing anything."""
    file = SegmentFile(str(segment.path), segment.path.name, 0, segment.size)
    each = Slice(_COPY, segment.topic, segment.partition, file, "", 0, segment.size)
    settings = Settings("", check_crc=check_crc, digest=False)
    for decoded in decode_slice(each, settings, SliceReport(0)):
        for table, batch in decoded.batches.items():
            emit(table, batch)


def plain_loop(segment: Segment, emit: Emit) -> None:
    """`struct`, one record after the other."""
    rows = _rows(segment, emit)
    each_record(segment.path.read_bytes(), rows.take, rows.flush)
    rows.finish()


def kafka_python(segment: Segment, emit: Emit) -> None:
    """kafka-python's record parser, then the fields with `struct`."""
    from kafka.record import MemoryRecords  # noqa: PLC0415 - only `make bench` installs it

    rows = _rows(segment, emit)
    records = MemoryRecords(segment.path.read_bytes())
    position = 0
    while (batch := records.next_batch()) is not None:
        before = (batch.leader_epoch, batch.producer_id, batch.producer_epoch)
        base_offset, is_transactional = batch.base_offset, batch.is_transactional
        for record in batch:
            size = record.size_in_bytes
            surroundings = (
                record.offset,
                record.timestamp * 1000,
                *before,
                is_transactional,
                base_offset,
                position,
                # It does not count the length itself, a varint.
                size + (1 if size < 64 else 2 if size < 8192 else 3),
            )
            rows.take(surroundings, record.key, record.value)
        position += batch.size_in_bytes
        rows.flush()
    rows.finish()


def _rows(segment: Segment, emit: Emit) -> OffsetsRows | ShareRows:
    kind = ShareRows if segment.topic == "__share_group_state" else OffsetsRows
    return kind(segment.origin, emit)


def discard(_table: str, batch: pa.RecordBatch) -> None:
    """Take a batch and let it go, as a task does that has written it."""
    assert batch.num_rows


def plain_strings(batch: pa.RecordBatch) -> list[pa.Array]:
    """Return a batch's columns with dictionaries decoded."""
    return [each.dictionary_decode() if each.type == LABEL else each for each in batch.columns]
