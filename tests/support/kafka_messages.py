"""Messages as Kafka's jars describe them, and as our schemas do, in one comparable form.

Kafka's coordinator jars hold the schema files that its classes were generated from; of the metadata
log there are only the classes, which `DescribeKafka.java` asks.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas import VersionRange
from schemas.model import Field, Struct

NOT_COMPARED = "not compared"
"""Default of a field that is always written and so never takes it, where we cannot say it."""


@dataclass(frozen=True)
class WireField:
    """One field of one version as it is on the wire; `path` is dotted from the message's root."""

    path: str
    type: str
    is_array: bool
    nullable: bool
    tag: int | None
    default: object


@dataclass(frozen=True)
class Message:
    """A key, a value or an embedded message, in every version that a release reads.

    Attributes:
        name: Kafka's name of it.
        id: The record type's number; None where the message has none, or several.
        versions: Fields by version, inline ones in the order they are written, then tagged ones.
        flexible: The versions that end in a tag section.
    """

    name: str
    id: int | None
    versions: Mapping[int, tuple[WireField, ...]]
    flexible: frozenset[int]


def our_fields(struct: Struct, version: int, layout: str | None) -> tuple[WireField, ...]:
    """Return the fields of one of our structs in a version and layout."""

    def walk(part: Struct, parent: str) -> Iterable[WireField]:
        for each in part.at(version, layout):
            path = f"{parent}{each.name}"
            yield WireField(
                path=path,
                type=each.wire_type(layout),
                is_array=each.is_array,
                nullable=version in each.nullable,
                tag=each.tag,
                default=_our_default(each, version),
            )
            yield from walk(each.struct, f"{path}.")

    return _inline_first(walk(struct, ""))


def _our_default(each: Field, version: int) -> object:
    if each.is_array or each.type in ("bytes", "struct"):
        if each.tag is None:
            return NOT_COMPARED
        return None if version in each.nullable else "empty"
    return each.default


def messages_in(jar: Path, prefix: str = "") -> dict[str, Message]:
    """Return the messages whose schema files the jar holds, by name, all or some of them."""
    with zipfile.ZipFile(jar) as archive:
        found = [
            _of_schema_file(archive.read(name).decode())
            for name in archive.namelist()
            if name.startswith(f"common/message/{prefix}") and name.endswith(".json")
        ]
    return {message.name: message for message in found}


def messages_of_classes(printed: str) -> dict[str, Message]:
    """Return the messages that `DescribeKafka.java` printed, by name."""
    return {each["name"]: _of_classes(each) for each in json.loads(printed)}


def _of_schema_file(text: str) -> Message:
    schema: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    structs = {each["name"]: each["fields"] for each in schema.get("commonStructs", ())}
    valid = _versions(schema["validVersions"])
    flexible = VersionRange.parse(schema.get("flexibleVersions", "none"))
    return Message(
        name=schema["name"],
        id=schema.get("apiKey"),
        versions={
            version: _inline_first(_of_file(schema["fields"], version, structs, ""))
            for version in valid
        },
        flexible=frozenset(version for version in valid if version in flexible),
    )


def _of_file(
    fields: list[dict[str, Any]], version: int, structs: Mapping[str, Any], parent: str
) -> Iterable[WireField]:
    for each in fields:
        if version not in VersionRange.parse(each.get("versions") or each["taggedVersions"]):
            continue
        path = f"{parent}{each['name'][0].lower()}{each['name'][1:]}"
        kind = each["type"].removeprefix("[]")
        children = each.get("fields") or structs.get(kind)
        is_array = each["type"].startswith("[]")
        kind = "struct" if children else kind
        tagged = "tag" in each and version in VersionRange.parse(each["taggedVersions"])
        default = _file_default(each.get("default", ""), kind, is_array=is_array)
        yield WireField(
            path=path,
            type=kind,
            is_array=is_array,
            nullable=version in VersionRange.parse(each.get("nullableVersions", "none")),
            tag=each["tag"] if tagged else None,
            default=_comparable(default, kind, is_array=is_array, tagged=tagged),
        )
        yield from _of_file(children or [], version, structs, f"{path}.")


def _file_default(default: object, kind: str, *, is_array: bool) -> object:
    if default in (None, "null"):
        return None
    if is_array or kind in ("bytes", "struct"):
        return "empty"
    if kind == "bool":
        return default in (True, "true")
    if kind == "uuid":
        return "A" * 22
    return default if kind == "string" else int(str(default) or "0", 0)


def _of_classes(described: dict[str, Any]) -> Message:
    versions = {int(version): fields for version, fields in described["versions"].items()}
    return Message(
        name=described["name"],
        id=described["id"] if described["id"] >= 0 else None,
        versions={
            version: _inline_first(_of_class(fields, "")) for version, fields in versions.items()
        },
        flexible=frozenset(
            version for version, fields in versions.items() if {"section": True} in fields
        ),
    )


def _of_class(fields: list[dict[str, Any]], parent: str) -> Iterable[WireField]:
    for each in fields:
        if "section" in each:
            continue
        # The assignors' own schemas have snake_case names, where the generated ones have members.
        name = re.sub("_([a-z])", lambda match: match[1].upper(), each["name"])
        path = f"{parent}{name}"
        kind = re.sub("^(COMPACT_|NULLABLE_)+", "", each["type"]).lower()
        kind = "bool" if kind == "boolean" else kind
        tagged = each["tag"] is not None
        default = each.get("default", NOT_COMPARED)
        yield WireField(
            path=path,
            type=kind,
            is_array=each["array"],
            nullable=each["nullable"],
            tag=each["tag"],
            default=_comparable(default, kind, is_array=each["array"], tagged=tagged),
        )
        yield from _of_class(each["fields"], f"{path}.")


def _comparable(default: object, kind: str, *, is_array: bool, tagged: bool) -> object:
    if (is_array or kind in ("bytes", "struct")) and not tagged:
        return NOT_COMPARED
    return default


def _inline_first(fields: Iterable[WireField]) -> tuple[WireField, ...]:
    """Order matters between inline fields; tagged ones, with what they hold, go by their tags."""
    listed = list(fields)
    tagged = {each.path for each in listed if each.tag is not None}

    def inside_tag(each: WireField) -> bool:
        return any(each.path == path or each.path.startswith(f"{path}.") for path in tagged)

    return (
        *(each for each in listed if not inside_tag(each)),
        *sorted((each for each in listed if inside_tag(each)), key=lambda each: each.path),
    )


def _versions(text: str) -> range:
    versions = VersionRange.parse(text)
    return range(versions.first, versions.last + 1)
