"""Whatever a record type can hold, in any version and layout, decodes to what was encoded.

The encoder is written from Kafka's wire format apart from the decoder, and is itself held against
bytes that brokers wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import strategies as st

from analytics.wire.columns import struct_array, struct_type
from analytics.wire.compiled import Loop
from analytics.wire.cursor import ByteBuffer, Cursor, Reason
from analytics.wire.decoder import key_reader, value_reader
from schemas import all_record_types
from tests.support.encoder import Encoder, TaggedDefaults, UnknownTags
from tests.support.examples import examples
from tests.support.random_values import owed_row, structs

if TYPE_CHECKING:
    from analytics.wire.structs import StructReader
    from schemas.model import Field, RecordType, Struct

KINDS = [kind for kind in all_record_types().values() if kind.read == "decode"]
SHAPES = [
    pytest.param(kind, version, layout, id=f"{kind.name}-v{version}-{layout}".removesuffix("-None"))
    for kind in KINDS
    for version in range(kind.versions.first, kind.versions.last + 1)
    for layout in kind.layouts or (None,)
]
WAYS = ("field by field", "in one walk")
# Tags far above any that Kafka has given a meaning.
UNKNOWN = st.dictionaries(st.integers(1000, 2**31 - 1), st.binary(max_size=6), max_size=2)


@contextmanager
def reading(way: str) -> Iterator[None]:
    """What follows each other is read column by column, or row by row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "pays", lambda *_: way == "in one walk")
        yield


def cursor_over(messages: list[bytes]) -> Cursor:
    """Lay messages into one buffer, foreign bytes around each, one row per message."""
    data, start = bytearray(b"\xff"), []
    for message in messages:
        start.append(len(data))
        data += message + b"\xff"
    length = [len(message) for message in messages]
    return Cursor.over(
        ByteBuffer(np.frombuffer(bytes(data), np.uint8)),
        np.array(start, np.int64),
        np.array(length, np.int64),
    )


def decoded(reader: StructReader, schema: Struct, cursor: Cursor) -> list[Any]:
    """Read every row; all must be readable to their last byte."""
    group = reader.read(cursor)
    cursor.require_exhausted(Reason.TRAILING_BYTES, "")
    assert not cursor.dead.any(), cursor.journal.causes
    if not schema.fields:  # Arrow loses the length of a struct array without children
        return [{}] * group.size
    rows: list[Any] = struct_array(group, struct_type(schema)).to_pylist()
    return rows


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.key.fields], ids=lambda k: k.name)
@examples(6, 20, data=st.data())
def test_keys(kind: RecordType, data: st.DataObject) -> None:
    keys = data.draw(st.lists(structs(kind.key, 0, None), max_size=5))
    messages = [Encoder(0).struct(kind.key, key) for key in keys]
    for way in WAYS:
        with reading(way):
            assert decoded(key_reader(kind.name), kind.key, cursor_over(messages)) == keys, way


@pytest.mark.parametrize(("kind", "version", "layout"), SHAPES)
@examples(6, 20, data=st.data())
def test_values(kind: RecordType, version: int, layout: str | None, data: st.DataObject) -> None:
    values = data.draw(st.lists(structs(kind.value, version, layout), max_size=5))
    encoders = [
        Encoder(version, layout, version in kind.flexible, tagged_defaults=data.draw(DEFAULTS))
        for _ in values
    ]
    messages = [
        encoder.struct(kind.value, each) for encoder, each in zip(encoders, values, strict=True)
    ]
    owed = [owed_row(kind.value, version, layout, each) for each in values]
    reader = value_reader(kind.name, version, layout)
    for way in WAYS:
        with reading(way):
            assert decoded(reader, kind.value, cursor_over(messages)) == owed, way


DEFAULTS: st.SearchStrategy[TaggedDefaults] = st.sampled_from(("kafka", "always", "never"))


def struct_paths(schema: Struct, present: tuple[Field, ...]) -> list[str]:
    """Paths of all structs of a message that can carry tags."""
    top = {each.name for each in present}
    inner = [path for path, each in schema.walk() if each.type == "struct"]
    return ["", *(path for path in inner if path.split(".")[0] in top)]


@pytest.mark.parametrize(
    ("kind", "version", "layout"),
    [shape for shape in SHAPES if shape.values[1] in shape.values[0].flexible],
)
@examples(6, 20, data=st.data())
def test_tags_newer_than_the_schema_are_kept_and_harm_nothing(
    kind: RecordType, version: int, layout: str | None, data: st.DataObject
) -> None:
    values = data.draw(st.lists(structs(kind.value, version, layout), min_size=1, max_size=4))
    paths = struct_paths(kind.value, kind.value.at(version, layout))
    unknown: list[UnknownTags] = [
        {path: list(data.draw(UNKNOWN).items()) for path in paths} for _ in values
    ]
    messages = [
        Encoder(version, layout, flexible=True, unknown_tags=tags).struct(kind.value, value)
        for value, tags in zip(values, unknown, strict=True)
    ]
    owed = [owed_row(kind.value, version, layout, value) for value in values]
    kept = {
        (row, path, tag, content)
        for row, (value, tags) in enumerate(zip(values, unknown, strict=True))
        for path, pairs in tags.items()
        for tag, content in pairs
        if occurs(value, path)
    }
    for way in WAYS:
        with reading(way):
            cursor = cursor_over(messages)
            rows = decoded(value_reader(kind.name, version, layout), kind.value, cursor)
        assert rows == owed, way
        assert kept_tags(cursor) == kept, way


def kept_tags(cursor: Cursor) -> set[tuple[int, str, int, bytes]]:
    """What the journal kept: row, path, tag and content."""
    data = cursor.buffer.data
    return {
        (int(row), tags.path, int(tag), data[start : start + length].tobytes())
        for tags in cursor.journal.unknown_tags
        for row, tag, start, length in zip(tags.row, tags.tag, tags.start, tags.length, strict=True)
    }


def occurs(value: Any, path: str) -> bool:
    """Whether some struct at that path is there to carry tags."""
    found = [value]
    for name in path.split(".") if path else ():
        column = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
        inner = [each[column] for each in found if each[column] is not None]
        found = [item for each in inner for item in (each if isinstance(each, list) else [each])]
    return bool(found)
