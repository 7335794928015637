"""Random sound messages of any schema: what the corpora of fuzz targets begin from."""

from __future__ import annotations

import base64
from random import Random
from typing import Any

from schemas import embedded
from schemas.model import Embedded, Field, Struct
from tests.support.encoder import encode_embedded

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_WORDS = ("", "consumer", "orders", "größe", "x" * 130)


def random_struct(draw: Random, schema: Struct, version: int, layout: str | None) -> dict[str, Any]:
    """Draw a value of a struct: the columns of that version and layout."""
    return {each.column: _field(draw, each, version, layout) for each in schema.at(version, layout)}


def random_embedded(draw: Random, message: Embedded) -> bytes:
    """Draw an encoded message of any of its versions."""
    version = draw.randint(message.versions.first, message.versions.last)
    return encode_embedded(message, version, random_struct(draw, message.struct, version, None))


def _field(draw: Random, schema: Field, version: int, layout: str | None) -> Any:
    if version in schema.nullable and draw.random() < 0.2:
        return None
    if schema.is_array:
        return [_single(draw, schema, version, layout) for _ in range(draw.randint(0, 2))]
    return _single(draw, schema, version, layout)


def _single(draw: Random, schema: Field, version: int, layout: str | None) -> Any:
    kind = schema.wire_type(layout)
    if kind in _BITS:
        half = 1 << (_BITS[kind] - 1)
        return draw.choice((0, 1, -1, 5, half - 1, -half))
    if kind == "struct":
        return random_struct(draw, schema.struct, version, layout)
    if kind == "bytes":
        if schema.embedded is not None and draw.random() < 0.8:
            return random_embedded(draw, embedded(schema.embedded.name))
        return draw.randbytes(draw.randint(0, 9))
    if kind == "uuid":
        return base64.urlsafe_b64encode(draw.randbytes(16)).decode("ascii").rstrip("=")
    return {"bool": draw.random() < 0.5, "uint16": draw.randint(0, 0xFFFF)}.get(
        kind, draw.choice(_WORDS)
    )
