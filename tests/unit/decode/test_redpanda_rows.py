"""Rows that only Redpanda writes are named as such; Kafka's never are."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pytest

from analytics.decode.chunks import decode_chunk
from analytics.decode.tables import Origin
from analytics.dump.records.raw_records import RawRecords
from analytics.dump.records.redpanda_rows import may_be_redpandas, redpanda_rows
from analytics.dump.records.segment_reader import read_segment
from analytics.wire.cursor import ByteBuffer
from tests.support.dump_folder import bundled_dumps
from tests.support.redpanda import (
    commit_key,
    commit_of_either,
    group_key,
    group_of_kafka,
    group_of_redpanda,
    tombstone_behind_length,
)
from tests.support.segments import NOW, Record, batch

LONG = commit_key("g" * 200, "t" * 46)
"""256 bytes: its length has a 0 first, as Kafka's types have."""
REDPANDAS = [
    *(group_of_redpanda(0, "g", members, version) for members in (1, 3) for version in range(4)),
    tombstone_behind_length(0, commit_key("g")),
    tombstone_behind_length(0, group_key("g")),
    tombstone_behind_length(0, LONG),
]
KAFKAS = [
    *(group_of_kafka(0, "g", members, version) for members in (0, 1, 3) for version in range(4)),
    group_of_redpanda(0, "g", 0),
    commit_of_either(0, "g"),
    Record(0, NOW, commit_key("g"), None),
    Record(0, NOW, group_key("g"), None),
    Record(0, NOW, group_key("g"), group_of_kafka(0, "g", 1).value[:-3]),  # type: ignore[index]
    Record(0, NOW, b"\x1e\0\0\0 no key of Redpanda, ends", None),
    Record(0, NOW, b"\x1e\0", None),
    Record(0, NOW, group_key("g"), b"\0\3"),
    Record(0, NOW, group_key("g"), b""),
]


def raw(rows: Sequence[Record]) -> RawRecords:
    data = batch([each._replace(offset=number) for number, each in enumerate(rows)]).data
    (chunk,) = read_segment(io.BytesIO(data))
    return chunk.records


def named(rows: Sequence[Record]) -> list[int]:
    """Places of the rows that are undecoded as Redpanda's."""
    decoded = decode_chunk(raw(rows), [], Origin("__consumer_offsets", 3, "broker-1", "0.log"))
    found = decoded.batches.get("undecoded")
    kept = [] if found is None else found.to_pylist()
    assert decoded.undecoded.total() == len(kept)
    return [each["offset"] for each in kept if each["reason"].startswith("redpanda")]


@pytest.mark.parametrize("place", range(len(REDPANDAS)))
def test_what_only_redpanda_writes_is_named(place: int) -> None:
    assert named([commit_of_either(0, "g"), REDPANDAS[place]]) == [1]


def test_what_kafka_can_read_is_not_nor_what_nobody_can() -> None:
    assert named(KAFKAS) == []


def test_among_others_each_row_is_judged_by_itself() -> None:
    rows = [*KAFKAS, *REDPANDAS, *KAFKAS]

    first = len(KAFKAS)
    assert named(rows) == list(range(first, first + len(REDPANDAS)))


def test_the_cheap_look_misses_nothing() -> None:
    records = raw([*REDPANDAS, *KAFKAS])
    rows, buffer = np.arange(len(records)), ByteBuffer(records.data)

    suspects = may_be_redpandas(records, rows, buffer)
    found = redpanda_rows(records, rows, buffer)
    assert set(range(len(REDPANDAS))) <= set(suspects.tolist())
    assert sorted([*found.members, *found.keys]) == list(range(len(REDPANDAS)))


def test_a_key_of_256_bytes_is_among_them() -> None:
    assert len(LONG) == 256


def test_no_record_of_a_real_broker_is_taken_for_redpandas() -> None:
    segments = [
        segment
        for dump in bundled_dumps()
        for segment in dump.root.rglob("__consumer_offsets-*/*.log")
    ]
    seen = 0
    for segment in segments:
        for chunk in read_segment(segment):
            records = chunk.records
            rows = np.flatnonzero(~records.batches.is_control[records.batch])
            found = redpanda_rows(records, rows, ByteBuffer(records.data))
            assert found.total == 0, segment
            seen += rows.size
    assert seen > 10_000
