"""Bytes of keys, values and embedded messages, from a schema and plain Python values.

The counterpart of the decoder for tests, written from Kafka's wire format and one value at a
time: nothing is shared with ``analytics.wire``. Values have the shape of decoded rows: structs
are mappings of column names, uuids their 22-character text, null is None.
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from schemas.model import Embedded, Field, RecordType, Struct

_INTEGERS = {
    "int8": ">b",
    "int16": ">h",
    "int32": ">i",
    "int64": ">q",
    "uint16": ">H",
    "uint32": ">I",
}

TaggedDefaults = Literal["kafka", "always", "never"]
UnknownTags = dict[str, list[tuple[int, bytes]]]


def unsigned_varint(value: int) -> bytes:
    """Seven bits a byte, the least significant first, the top bit says that more follow."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of Kafka's text form of a uuid."""
    return base64.urlsafe_b64decode(text + "==")


@dataclass(frozen=True)
class Encoder:
    """Writes messages of one version and layout.

    ``unknown_tags`` are put into every struct at a path of field names ("", "members", …).
    Tagged fields at their default are left out, but for a struct that is null: brokers write that
    one. ``tagged_defaults`` "always" writes them all, "never" not even the null struct; no Kafka
    does either, but every reader must bear both.
    """

    version: int
    layout: str | None = None
    flexible: bool = False
    unknown_tags: UnknownTags = field(default_factory=dict)
    tagged_defaults: TaggedDefaults = "kafka"

    def struct(self, schema: Struct, value: Mapping[str, Any], path: str = "") -> bytes:
        """Encode a struct: its inline fields in order, then its tagged ones."""
        present = schema.at(self.version, self.layout)
        encoded = b"".join(
            self.field(each, value[each.column], _inside(path, each))
            for each in present
            if each.tag is None
        )
        tagged = [each for each in present if each.tag is not None]
        return encoded + (self._tags(tagged, value, path) if self.flexible else b"")

    def _tags(self, tagged: Sequence[Field], value: Mapping[str, Any], path: str) -> bytes:
        parts = dict(self.unknown_tags.get(path, ()))
        for each in tagged:
            content = value[each.column]
            if self._is_written(each, content):
                assert each.tag is not None
                parts[each.tag] = self._payload(each, content, _inside(path, each))
        encoded = unsigned_varint(len(parts))
        for tag in sorted(parts):
            encoded += unsigned_varint(tag) + unsigned_varint(len(parts[tag])) + parts[tag]
        return encoded

    def _is_written(self, schema: Field, value: Any) -> bool:
        if self.tagged_defaults == "always" or value != default_of(schema, self.version):
            return True
        single_struct = schema.type == "struct" and not schema.is_array
        return single_struct and self.tagged_defaults == "kafka"

    def _payload(self, schema: Field, value: Any, path: str) -> bytes:
        if schema.type == "struct" and not schema.is_array and self.version in schema.nullable:
            # In a tag a struct's presence is a length-like varint, 0 for null; elsewhere a signed
            # byte, negative for null.
            return b"\x00" if value is None else b"\x01" + self.struct(schema.struct, value, path)
        return self.field(schema, value, path)

    def field(self, schema: Field, value: Any, path: str = "") -> bytes:
        """Encode one field, array or not."""
        if not schema.is_array:
            return self._single(schema, value, path)
        if value is None:
            return self._length(None, ">i")
        items = b"".join(self._single(schema, each, path, in_array=True) for each in value)
        return self._length(len(value), ">i") + items

    def _single(self, schema: Field, value: Any, path: str, *, in_array: bool = False) -> bytes:
        kind = schema.wire_type(self.layout)
        if kind in _INTEGERS:
            return struct.pack(_INTEGERS[kind], value)
        if kind == "bool":
            return b"\x01" if value else b"\x00"
        if kind == "uuid":
            return uuid_bytes(value)
        if kind == "struct":
            return self._struct_field(schema, value, path, in_array=in_array)
        if value is None:
            return self._length(None, ">h" if kind == "string" else ">i")
        content = value.encode("utf-8") if kind == "string" else value
        return self._length(len(content), ">h" if kind == "string" else ">i") + bytes(content)

    def _struct_field(self, schema: Field, value: Any, path: str, *, in_array: bool) -> bytes:
        # Only a single struct has a null; one that may be null says by a byte whether it is there.
        if in_array or self.version not in schema.nullable:
            return self.struct(schema.struct, value, path)
        if value is None:
            return b"\xff"
        return b"\x01" + self.struct(schema.struct, value, path)

    def _length(self, length: int | None, plain: str) -> bytes:
        if self.flexible:
            return unsigned_varint(0 if length is None else length + 1)
        return struct.pack(plain, -1 if length is None else length)


def default_of(schema: Field, version: int) -> Any:
    """What a reader takes for a tagged field that is not there."""
    if schema.default is not None or version in schema.nullable:
        return schema.default
    return [] if schema.is_array else b""


def _inside(path: str, schema: Field) -> str:
    return f"{path}.{schema.name}" if path else schema.name


def encode_key(kind: RecordType, number: int, key: Mapping[str, Any]) -> bytes:
    """Encode a key with its number before it; the metadata log's records have none."""
    assert kind.framing == "coordinator"
    return struct.pack(">h", number) + Encoder(0).struct(kind.key, key)


def encode_value(
    kind: RecordType,
    version: int,
    value: Mapping[str, Any],
    layout: str | None = None,
    unknown_tags: UnknownTags | None = None,
    *,
    tagged_defaults: TaggedDefaults = "kafka",
) -> bytes:
    """Encode a value with what frames it: a version, or the metadata log's three varints."""
    flexible = version in kind.flexible
    encoder = Encoder(version, layout, flexible, unknown_tags or {}, tagged_defaults)
    body = encoder.struct(kind.value, value)
    if kind.framing == "metadata":
        frame = unsigned_varint(1) + unsigned_varint(kind.ids[0]) + unsigned_varint(version)
        return frame + body
    return struct.pack(">h", version) + body


def encode_embedded(message: Embedded, version: int, value: Mapping[str, Any]) -> bytes:
    """Encode a message that lies in a bytes field; never flexible."""
    body = Encoder(version).struct(message.struct, value)
    return (struct.pack(">h", version) if message.framing == "int16-version" else b"") + body
