"""What the tool printed as JSON, turned into the plain values that the encoder takes.

Names become columns, base64 becomes bytes, tagged fields that were not printed get their default.
The tool prints the consumer protocol as an object and drops its version; every version that has
just those fields is offered.
"""

from __future__ import annotations

import base64
from itertools import product
from typing import TYPE_CHECKING, Any

from schemas import embedded
from tests.support.encoder import default_of, encode_embedded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from schemas.model import Embedded, Field, Struct


def value_candidates(
    schema: Struct, version: int, layout: str | None, printed: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield each reading of a printed object: one, or one per version of what is embedded."""
    versions = range(4) if _has_object_for_bytes(schema, printed) else range(1)
    for subscription, assignment in product(versions, versions):
        try:
            yield _struct(schema, version, layout, printed, (subscription, assignment))
        except KeyError:
            continue


def _has_object_for_bytes(schema: Struct, printed: Mapping[str, Any]) -> bool:
    members = printed.get("members", ())
    return any(each.name == "members" for each in schema.fields) and any(
        isinstance(member.get(name), dict)
        for member in members
        for name in ("subscription", "assignment")
    )


def _struct(
    schema: Struct,
    version: int,
    layout: str | None,
    printed: Mapping[str, Any],
    inner: tuple[int, int],
) -> dict[str, Any]:
    values = {}
    for each in schema.at(version, layout):
        if each.name not in printed and each.tag is not None:
            values[each.column] = default_of(each, version)
        else:
            values[each.column] = _value(each, version, layout, printed[each.name], inner)
    return values


def _value(
    schema: Field, version: int, layout: str | None, printed: Any, inner: tuple[int, int]
) -> Any:
    if isinstance(printed, list):
        return [_value(schema, version, layout, each, inner) for each in printed]
    if printed is None:
        return None
    if schema.type == "struct":
        return _struct(schema.struct, version, layout, printed, inner)
    if schema.type != "bytes":
        return printed
    if not isinstance(printed, dict):
        return base64.b64decode(printed)
    assert schema.embedded is not None
    chosen = inner[0] if schema.name == "subscription" else inner[1]
    return embedded_bytes(embedded(schema.embedded.name), chosen, printed)


def embedded_bytes(message: Embedded, version: int, printed: Mapping[str, Any]) -> bytes:
    """Encode an embedded message as printed.

    Raises:
        KeyError: The version has other fields than were printed.
    """
    present = {each.name for each in message.struct.at(version, None)}
    if present != set(printed):
        raise KeyError(version)
    return encode_embedded(
        message, version, _struct(message.struct, version, None, printed, (0, 0))
    )
