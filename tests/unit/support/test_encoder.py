"""The encoder writes the bytes that brokers wrote: it is itself held against real segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from schemas import record_types
from tests.support.dump_folder import DumpFolder, bundled_dumps
from tests.support.dump_log_records import PrintedRecord
from tests.support.encoder import encode_key, encode_value, unsigned_varint
from tests.support.plain_records import plain_records
from tests.support.printed_values import value_candidates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemas.model import RecordType
    from tests.support.dump_log_contents import Content

DUMPS = bundled_dumps()


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**31, "8080808008")],
)
def test_an_unsigned_varint_has_its_low_bits_first(value: int, encoded: str) -> None:
    assert unsigned_varint(value).hex() == encoded


def encodings(kind: RecordType, payload: Content) -> Iterator[bytes]:
    """Yield what the printed value may have been, in each layout and embedded version."""
    assert payload.data is not None
    version = payload.value_version
    assert version is not None
    for layout in kind.layouts or (None,):
        for values in value_candidates(kind.value, version, layout, payload.data):
            yield encode_value(kind, version, values, layout)


def records_with_bytes(
    dump: DumpFolder,
) -> Iterator[tuple[PrintedRecord, bytes | None, bytes | None]]:
    """Yield the printed records of uncompressed batches with the bytes of key and value."""
    for copy in dump.copies:
        for segment in dump.segments(copy):
            for batch in segment.text.batches:
                if batch.codec != "none":
                    continue
                found = plain_records(segment.data, batch)
                for line, (offset, key, value) in zip(batch.records, found, strict=True):
                    assert offset == line.offset
                    yield PrintedRecord(segment, batch, line), key, value


@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.root.name)
def test_what_the_tool_printed_encodes_to_the_bytes_the_broker_wrote(dump: DumpFolder) -> None:
    checked = 0
    for record, key, value in records_with_bytes(dump):
        if record.table is None or record.line.control is not None:
            continue
        assert record.number is not None
        kind = record_types(record.segment.topic)[record.number]
        if record.line.key is not None:
            assert record.line.key.data is not None
            (values,) = value_candidates(kind.key, 0, None, record.line.key.data)
            assert encode_key(kind, record.number, values) == key, record.where
            checked += 1
        payload = record.line.payload
        assert payload is not None
        if payload.data is not None and not payload.is_partial:
            assert value in set(encodings(kind, payload)), record.where
            checked += 1
    assert checked
