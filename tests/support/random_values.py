"""Hypothesis strategies for what a record type can hold, and the row a decoder owes for it."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from schemas import embedded
from schemas.model import Struct
from tests.support.consumer_protocol import parse_assignment, parse_subscription
from tests.support.dump_log_fields import snake_case
from tests.support.encoder import encode_embedded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from schemas.model import Embedded, Field


def uuid_text(content: bytes) -> str:
    """Kafka's text of 16 bytes."""
    return base64.urlsafe_b64encode(content).decode("ascii").rstrip("=")


_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_MOST_ELEMENTS = 3
_TEXT = st.one_of(
    st.text(max_size=8),
    # Compact lengths of more than one byte.
    st.integers(120, 300).map("x".__mul__),
)
_BYTES = st.binary(max_size=12)

_PLAIN = {
    "uint16": st.integers(0, 0xFFFF),
    "bool": st.booleans(),
    "uuid": st.binary(min_size=16, max_size=16).map(uuid_text),
    "string": _TEXT,
}

_PARSERS = {
    "consumer_protocol_subscription": parse_subscription,
    "consumer_protocol_assignment": parse_assignment,
}


def structs(schema: Struct, version: int, layout: str | None) -> st.SearchStrategy[dict[str, Any]]:
    """Values of a struct: the columns of that version and layout."""
    return st.fixed_dictionaries(
        {each.column: _field(each, version, layout) for each in schema.at(version, layout)}
    )


def _field(schema: Field, version: int, layout: str | None) -> st.SearchStrategy[Any]:
    single = _single(schema, version, layout)
    if schema.is_array:
        single = st.lists(single, max_size=_MOST_ELEMENTS)
    if schema.tag is not None and schema.default is not None:
        # A random number is hardly ever the default.
        single = st.one_of(st.just(schema.default), single)
    return st.one_of(st.none(), single) if version in schema.nullable else single


def _single(schema: Field, version: int, layout: str | None) -> st.SearchStrategy[Any]:
    kind = schema.wire_type(layout)
    if kind in _BITS:
        half = 1 << (_BITS[kind] - 1)
        return st.integers(-half, half - 1)
    if kind == "struct":
        return structs(schema.struct, version, layout)
    if kind == "string" and schema.name == "protocolType":
        # The word on which it depends whether members' bytes are the consumer protocol.
        return st.one_of(st.just("consumer"), _TEXT)
    return _bytes(schema) if kind == "bytes" else _PLAIN[kind]


def _bytes(schema: Field) -> st.SearchStrategy[bytes]:
    if schema.embedded is None:
        return _BYTES
    return st.one_of(_BYTES, embedded_bytes(embedded(schema.embedded.name)))


def embedded_bytes(message: Embedded) -> st.SearchStrategy[bytes]:
    """Encoded embedded messages of every version, some longer or shorter than they should be."""
    versions = range(message.versions.first, message.versions.last + 1)
    return st.one_of([_embedded_in(message, version) for version in versions])


def _embedded_in(message: Embedded, version: int) -> st.SearchStrategy[bytes]:
    def encoded(value: dict[str, Any], tail: bytes, fields: int | None) -> bytes:
        first = replace(message, struct=Struct(message.struct.fields[:fields]))
        return encode_embedded(first, version, value) + tail

    return st.builds(
        encoded,
        structs(message.struct, version, None),
        st.sampled_from((b"", b"", b"\x00")),
        st.sampled_from((None, None, 1, 2, 3)),
    )


def owed_row(schema: Struct, version: int, layout: str | None, value: Mapping[str, Any]) -> Any:
    """The decoded struct: columns of all versions, null where this one has no such field."""
    return _Owed(version, layout, value).struct(schema, value)


class _Owed:
    def __init__(self, version: int, layout: str | None, top: Mapping[str, Any]) -> None:
        self.version = version
        self.layout = layout
        self.top = top

    def struct(self, schema: Struct, value: Mapping[str, Any]) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for each in schema.fields:
            present = each.is_in(self.version, self.layout)
            row[each.column] = self._value(each, value[each.column]) if present else None
            if each.embedded is not None:
                row[f"{each.column}_decoded"] = self._decoded(each, row[each.column])
        return row

    def _value(self, schema: Field, value: Any) -> Any:
        if value is None:
            return None
        if schema.is_array and schema.type == "struct":
            return [self.struct(schema.struct, each) for each in value]
        return self.struct(schema.struct, value) if schema.type == "struct" else value

    def _decoded(self, schema: Field, content: bytes | None) -> dict[str, Any] | None:
        use = schema.embedded
        assert use is not None
        if content is None:
            return None
        if use.when_field is not None and self.top[snake_case(use.when_field)] != use.when_value:
            return None
        printed = _PARSERS[use.name](content)
        return None if printed is None else embedded_row(embedded(use.name).row, printed)


def embedded_row(schema: Struct, printed: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for each in schema.fields:
        value = printed.get(each.name)
        if value is not None and each.type == "bytes":
            value = base64.b64decode(value)
        elif each.type == "struct" and value is not None:
            value = [embedded_row(each.struct, item) for item in value]
        row[each.column] = value
    return row
