"""Coverage-guided keys and values of the internal topics, the metadata log's among them.

    python tests/fuzz/fuzz_records.py CORPUS -max_total_time=60

The first byte of an input chooses the topic; the rest is records, each a key and a value behind
their lengths. Every record is decoded or kept as undecoded; what becomes of it depends neither on
the records beside it nor on whether loops run compiled; and what was decoded, encoded again by the
tests' own encoder, decodes to the same.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analytics.decode.chunks import UNDECODED_TABLE, Decoded, decode_chunk
from analytics.decode.tables import Origin
from analytics.dump.records.raw_rows import raw_records
from schemas import INTERNAL_TOPICS, all_record_types, record_types
from schemas.model import RecordType
from tests.fuzz.fuzzing import fuzz, loops_run
from tests.fuzz.made_messages import random_struct
from tests.support.encoder import encode_key, encode_value

Pair = tuple[bytes | None, bytes | None]

MOST_RECORDS = 8
KINDS = {
    topic: {kind.table: kind for kind in record_types(topic).values() if kind.read == "decode"}
    for topic in INTERNAL_TOPICS
}
_NULL = 0xFFFF
_LENGTH = struct.Struct(">H")
_SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)


def look_at(content: bytes) -> None:
    """Decode the records of an input; an assertion fails where a promise does."""
    if not content:
        return
    topic = INTERNAL_TOPICS[content[0] % len(INTERNAL_TOPICS)]
    pairs = pairs_of(content[1:])
    together = decode(topic, pairs, compiled=False)
    assert counted(together) == len(pairs)
    assert rows_of(decode(topic, pairs, compiled=True)) == rows_of(together)
    apart: list[Any] = []
    for place, pair in enumerate(pairs):
        apart += rows_of(decode(topic, [pair], compiled=False, first=place))
    assert sorted(map(repr, apart)) == sorted(map(repr, rows_of(together)))
    _look_at_encoded(topic, together)


def pairs_of(content: bytes) -> list[Pair]:
    """Read keys and values behind their lengths; a length beyond the end means up to the end."""
    pieces: list[bytes | None] = []
    while len(content) >= _LENGTH.size and len(pieces) < 2 * MOST_RECORDS:
        (length,) = _LENGTH.unpack_from(content)
        content = content[_LENGTH.size :]
        pieces.append(None if length == _NULL else content[:length])
        content = (
            b""
            if length != _NULL and length > len(content)
            else (content if length == _NULL else content[length:])
        )
    return list(zip(pieces[::2], pieces[1::2], strict=False))


def decode(topic: str, pairs: list[Pair], *, compiled: bool, first: int = 0) -> Decoded:
    """Decode records as archived rows, which bring no batches along."""
    rows = pa.RecordBatch.from_pylist(
        [
            {"offset": first + place, "timestamp": 0, "key": key, "value": value}
            for place, (key, value) in enumerate(pairs)
        ],
        _SCHEMA,
    )
    with loops_run(compiled=compiled):
        return decode_chunk(raw_records(rows), [], Origin(topic, 0))


def counted(decoded: Decoded) -> int:
    """Count where records went."""
    rows = sum(batch.num_rows for batch in decoded.batches.values())
    return rows + sum(decoded.left_out.values())


def rows_of(decoded: Decoded) -> list[tuple[str, dict[str, Any]]]:
    """Return all rows with their tables."""
    return [(table, row) for table, batch in decoded.batches.items() for row in batch.to_pylist()]


def _look_at_encoded(topic: str, decoded: Decoded) -> None:
    rows = [(table, row) for table, row in rows_of(decoded) if table != UNDECODED_TABLE]
    if not rows:
        return
    pairs = [_encoded(KINDS[topic][table], row) for table, row in rows]
    again = rows_of(decode(topic, pairs, compiled=False))
    assert [meaning(table, row) for table, row in again] == [
        meaning(table, row) for table, row in rows
    ]


def _encoded(kind: RecordType, row: dict[str, Any]) -> Pair:
    key = None
    if kind.framing == "coordinator":
        key = encode_key(kind, row["record_type"], row.get("key") or {})
    if row["is_tombstone"]:
        return key, None
    version, layout = row["value_version"], row["value_layout"]
    return key, encode_value(kind, version, row.get("value") or {}, layout)


def meaning(table: str, row: dict[str, Any]) -> str:
    """Return what a row says, without where it was and what no schema knows."""
    return repr((table, row.get("key"), row.get("value"), row["value_version"]))


def write_corpus(folder: Path) -> None:
    """Write inputs to begin from: sound records of every type in every version and layout."""
    for kind in all_record_types().values():
        for version in range(kind.versions.first, kind.versions.last + 1):
            for layout in kind.layouts or (None,):
                name = f"{kind.name}-{version}-{layout}"
                (folder / name).write_bytes(_made(kind, version, layout, Random(name)))


def _made(kind: RecordType, version: int, layout: str | None, draw: Random) -> bytes:
    made = bytes([INTERNAL_TOPICS.index(kind.topic)])
    for place in range(3):
        value: bytes | None = None
        if place < 2:
            drawn = random_struct(draw, kind.value, version, layout)
            value = encode_value(kind, version, drawn, layout)
        key = None
        if kind.framing == "coordinator":
            key = encode_key(kind, kind.ids[-1], random_struct(draw, kind.key, 0, None))
        for piece in (key, value):
            made += _LENGTH.pack(_NULL if piece is None else len(piece)) + (piece or b"")
    return made


if __name__ == "__main__":
    fuzz(look_at, write_corpus)
