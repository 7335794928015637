"""Coverage-guided bytes for the segment reader: `make fuzz`, or by hand.

    python tests/fuzz/fuzz_segment_reader.py CORPUS -max_total_time=60

The first byte of an input says how it is taken: as it is; or with every length and checksum along
it made right, so that what lies behind them is reached; and whether loops run compiled.
"""

from __future__ import annotations

import io
import struct
import sys
import zlib
from pathlib import Path

from crc32c import crc32c

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analytics.dump.batches.batch_bytes import Limits
from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.records.raw_records import PADDING, Chunk, Spans
from analytics.dump.records.segment_reader import ReadOptions, read_segment
from tests.fuzz.fuzzing import fuzz, loops_run
from tests.support.segments import joined, random_segment

# Small, so that no input is slow for being large.
LIMITS = Limits(1 << 18, 1 << 18, 1 << 12, 1 << 20, 50)
MODES = 16


def look_at(content: bytes) -> None:
    """Read bytes in the way the first of them says; an assertion fails where a promise does."""
    if not content:
        return
    mode, data = content[0] % MODES, content[1:]
    if mode & 1:
        data = sealed(data)
    options = ReadOptions(
        chunk_bytes=1 << 10 if mode & 2 else 1 << 20,
        check_crc=not mode & 4,
        limits=LIMITS,
        sense=LogSense(0) if mode & 2 else LogSense(),
    )
    with loops_run(compiled=bool(mode & 8)):
        _read(data, options)


def _read(data: bytes, options: ReadOptions) -> None:
    reader = read_segment(io.BytesIO(data), options)
    before = -1
    records = 0
    for chunk in reader:
        before = _look_at_chunk(chunk, before)
        records += len(chunk.records)
    summary = reader.summary
    assert summary.reconciles
    assert summary.records == records
    assert summary.bytes_read == len(data)


def _look_at_chunk(chunk: Chunk, before: int) -> int:
    found = chunk.records
    for spans in (found.key, found.value):
        _inside(spans, found.data.size - PADDING)
    offsets = found.offset.tolist()
    for offset in offsets:
        assert offset > before
        before = offset
    assert (found.batch < len(found.batches)).all()
    assert found.batches.count.sum() == len(found)
    for damage in chunk.damages:
        assert damage.size > 0
        assert damage.records >= 0
    return before


def _inside(spans: Spans, size: int) -> None:
    assert (spans.length >= -1).all()
    assert (spans.start >= 0).all()
    assert (spans.start + spans.length <= max(size, 0)).all()


def sealed(data: bytes) -> bytes:
    """Make the lengths and checksums along the chain right, as far as it goes."""
    made = bytearray(data)
    at = 0
    while len(made) - at >= 26:
        magic = made[at + 16]
        smallest = 61 if magic == 2 else 34
        rest = len(made) - at
        (size,) = struct.unpack_from(">I", made, at + 8)
        total = min(max(size + 12, smallest), rest)
        if total < smallest:
            break
        struct.pack_into(">I", made, at + 8, total - 12)
        if magic == 2:
            struct.pack_into(">I", made, at + 17, crc32c(made[at + 21 : at + total]))
        else:
            made[at + 16] = magic % 2
            struct.pack_into(">I", made, at + 12, zlib.crc32(made[at + 16 : at + total]))
        at += total
    return bytes(made)


def write_corpus(folder: Path, number: int = 40) -> None:
    """Write inputs to begin from: sound segments of all kinds, in every mode."""
    for seed in range(number):
        data = joined(random_segment(seed, batches=4))
        (folder / f"made-{seed}").write_bytes(bytes([seed % MODES]) + data)


if __name__ == "__main__":
    fuzz(look_at, write_corpus)
