"""Coverage-guided bytes of clients: subscriptions, assignments, and the assignors' user data.

    python tests/fuzz/fuzz_user_data.py CORPUS -max_total_time=60

The first byte of an input chooses the message and, where the bytes name none, its version. What is
read of the consumer protocol equals what the tests' plain parser reads; and what was read of any
message, encoded again, is read as the same. Nothing raises, and rows do not touch each other.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analytics.wire.columns import Binary, Column, invalid_rows, struct_array, struct_type, take
from analytics.wire.cursor import ByteBuffer, Cursor, Journal
from analytics.wire.decoder import early_readers, embedded_readers
from analytics.wire.structs import EmbeddedReader
from schemas import all_embedded
from schemas.model import FIELDS_WRITTEN, Embedded, EmbeddedUse
from tests.fuzz.fuzzing import fuzz, loops_run
from tests.fuzz.made_messages import random_embedded
from tests.support.consumer_protocol import parse_assignment, parse_subscription
from tests.support.encoder import encode_embedded
from tests.support.random_values import embedded_row

MESSAGES = tuple(all_embedded().values())
PARSERS = {
    "consumer_protocol_subscription": parse_subscription,
    "consumer_protocol_assignment": parse_assignment,
}


def look_at(content: bytes) -> None:
    """Read the bytes of an input as one message; an assertion fails where a promise does."""
    if not content:
        return
    message = MESSAGES[content[0] % len(MESSAGES)]
    version = content[0] // len(MESSAGES) % (message.versions.last + 1)
    data = content[1:]
    row = read(message, version, data, compiled=False)
    assert read(message, version, data, compiled=True) == row
    if message.name in PARSERS:
        printed = PARSERS[message.name](data)
        assert row == (None if printed is None else embedded_row(message.row, printed))
    if row is not None:
        if message.framing == "int16-version":
            version = min(int.from_bytes(data[:2], "big"), message.versions.last)
        again = encode_embedded(message, version, row)
        whole = row | ({FIELDS_WRITTEN.column: None} if message.may_end_early else {})
        assert read(message, version, again, compiled=False) == whole


def read(message: Embedded, version: int, data: bytes, *, compiled: bool) -> Any:
    """Read bytes as a message, broken bytes on both sides of them; None where they are none."""
    broken = b"\xff\xff\x00"
    content = np.frombuffer(broken + data + broken, np.uint8)
    start = np.array([0, len(broken), len(broken) + len(data)], np.int64)
    length = np.array([len(broken), len(data), len(broken)], np.int64)
    with loops_run(compiled=compiled):
        rows = _read(message, version, Binary(ByteBuffer(content), start, length))
    return rows[1]


def _read(message: Embedded, version: int, column: Binary) -> list[Any]:
    if message.framing == "int16-version":
        use = EmbeddedUse(message.name, None, None)
        reader = EmbeddedReader(use, message, embedded_readers(message), early_readers(message))
        found = reader.read(Journal.of(column.size), np.arange(column.size), column)
        return rows_of(message, found)
    cursor = Cursor.over(column.buffer, column.start, column.length)
    found = embedded_readers(message)[version].read(cursor)
    readable = np.flatnonzero(~(cursor.dead | invalid_rows(found, struct_type(message.struct))))
    rows: list[Any] = [None] * column.size
    for place, row in zip(readable, rows_of(message, take(found, readable)), strict=True):
        rows[place] = row
    return rows


def rows_of(message: Embedded, found: Column) -> list[Any]:
    """Return what was read as plain values."""
    rows: list[Any] = struct_array(found, struct_type(message.row)).to_pylist()
    return rows


def write_corpus(folder: Path) -> None:
    """Write inputs to begin from: sound messages of every kind, some with bytes behind them."""
    for place, message in enumerate(MESSAGES):
        for seed in range(12):
            draw = Random(seed)
            data = random_embedded(draw, message) + draw.choice((b"", b"", b"\x00"))
            (folder / f"{message.name}-{seed}").write_bytes(bytes([place]) + data)


if __name__ == "__main__":
    fuzz(look_at, write_corpus)
