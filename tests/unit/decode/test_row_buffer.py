"""Rows carried from chunk to chunk are those of one chunk, in the same order.

Chunks of a few kilobytes hold few rows of every table, so all of them wait; what comes out is held
against the whole segment decoded at once, nothing of which waits.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from analytics.decode import frames
from analytics.decode.chunks import Decoded, decode_chunk
from analytics.decode.frames import RowBuffer
from analytics.decode.tables import Origin
from analytics.dump.records.segment_reader import ReadOptions, read_segment
from benchmarks.generate import Options, write_segment

DUMPS = Path(__file__).parents[2] / "data" / "dumps"
SEGMENTS = sorted(DUMPS.glob("kafka-4.4.0-random/broker-1/__*/*.log"))
TOPICS = {"__consumer_offsets", "__share_group_state", "__transaction_state", "__cluster_metadata"}


def origin(segment: Path) -> Origin:
    topic, _, number = segment.parent.name.rpartition("-")
    return Origin(topic, int(number), "broker-1", segment.name)


def at_once(segment: Path, place: Origin) -> list[Decoded]:
    chunks = read_segment(segment).chunks()
    return [decode_chunk(chunk.records, chunk.damages, place) for chunk in chunks]


def piecemeal(segment: Path, place: Origin, chunk_bytes: int) -> list[Decoded]:
    waiting, decoded = RowBuffer(), []
    for chunk in read_segment(segment, ReadOptions(chunk_bytes=chunk_bytes)).chunks():
        decoded.append(decode_chunk(chunk.records, chunk.damages, place, row_buffer=waiting))
        if waiting.is_full:
            decoded.append(decode_chunk(waiting.release(), [], place))
    if waiting.parts:
        decoded.append(decode_chunk(waiting.release(), [], place))
    return decoded


def rows(decoded: list[Decoded]) -> dict[str, list[dict[str, object]]]:
    tables: dict[str, list[pa.RecordBatch]] = {}
    for each in decoded:
        for name, batch in each.batches.items():
            tables.setdefault(name, []).append(batch)
    return {name: pa.Table.from_batches(parts).to_pylist() for name, parts in tables.items()}


def kinds(decoded: list[Decoded]) -> Counter[object]:
    return sum((Counter[object](each.kinds) for each in decoded), Counter[object]())


@pytest.mark.parametrize("chunk_bytes", [1_000, 20_000])
def test_real_segments_read_in_small_chunks(chunk_bytes: int) -> None:
    read = [each for each in SEGMENTS if origin(each).topic in TOPICS and each.stat().st_size]
    assert read
    for segment in read:
        whole = at_once(segment, origin(segment))
        pieces = piecemeal(segment, origin(segment), chunk_bytes)
        assert rows(pieces) == rows(whole)
        assert kinds(pieces) == kinds(whole)


def test_many_rows_behind_waiting_ones_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some chunks have more commits than may wait and some have fewer.
    monkeypatch.setattr(frames, "FEW", 140)
    monkeypatch.setattr(frames, "MOST_ROWS", 300)
    written = write_segment(tmp_path / "a.log", Options("offsets", 600_000, 50, 30))
    place = Origin("__consumer_offsets", 0, "broker-1", "a.log")

    pieces = piecemeal(written.path, place, 17_700)

    sizes = [
        each.batches["offset_commit"].num_rows for each in pieces if "offset_commit" in each.batches
    ]
    assert any(frames.FEW <= size < frames.MOST_ROWS for size in sizes)
    assert any(size >= frames.MOST_ROWS for size in sizes)
    assert rows(pieces) == rows(at_once(written.path, place))
