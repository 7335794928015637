"""All schema files, loaded once each and held against each other.

Read through importlib.resources, so that the package works from inside a zip.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any, TypeVar

from schemas.errors import SchemaError
from schemas.fields import ALL_VERSIONS, NO_VERSIONS
from schemas.model import (
    Column,
    Default,
    Embedded,
    EmbeddedUse,
    Field,
    RecordType,
    Struct,
    Table,
    VersionRange,
)
from schemas.names import INTERNAL_TOPICS
from schemas.table_contract import closed_list

# Record types that no release of Kafka has.
#
# Those of its designs are read on request only; those of another broker show that it wrote one.

CHECKPOINT_DELTA = "checkpoint-delta"
"""Share state as control records of data partitions: an early text of KIP-932."""
KIP_932_TEXT = "kip-932-text"
"""Share state in `__share_group_state` as a late text of KIP-932 has it."""

REDPANDA = "redpanda"
"""What Redpanda writes into `__consumer_offsets` and Kafka does not."""


@cache
def dialect_types(dialect: str) -> Mapping[str, RecordType]:
    """Return the record types of a dialect by the name of their file ("share_delta").

    Raises:
        SchemaError: A file is wrong.
    """
    return MappingProxyType(
        {
            stem: parse_record_type(document, topic=dialect, table=stem, file=file)
            for stem, file, document in documents(f"dialects/{dialect}")
        }
    )


def broken_chain_words() -> Mapping[str, str]:
    """Return why a record of a chain is not applied: each word and what it means."""
    return _words()["broken"]


def odd_chain_words() -> Mapping[str, str]:
    """Return what is odd about a record that is applied: each word and what it means."""
    return _words()["odd"]


def reading_words() -> Mapping[str, str]:
    """Return why a record is not applied by the late text: each word and what it means."""
    return _words()["readings"]


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    text = files(__package__).joinpath("dialects/words.json").read_text(encoding="utf-8")
    words: Mapping[str, Mapping[str, str]] = json.loads(text)
    return words


# JSON documents to the model, refusing whatever a schema file should not say.
#
# Unknown keys are refused, not skipped: a misspelt "nullabel" would otherwise change what is
# decoded without a word.

Document = Mapping[str, Any]
_T = TypeVar("_T")


def parse_record_type(document: object, *, topic: str, table: str, file: str) -> RecordType:
    """Read the record type of one file.

    Args:
        document: The parsed JSON.
        topic: The internal topic, after which the file's folder is named.
        table: The decoded table, after which the file is named.
        file: The file's name, for errors.

    Raises:
        SchemaError: The document makes no sense; it names the file and the field.
    """
    with _naming_file(file):
        record = _object(
            document,
            required={"name": str, "ids": list, "about": str, "versions": str, "flexible": str},
            optional={"framing": str, "read": str, "layouts": list, "key": list, "value": list},
        )
        return RecordType(
            ids=_list_of(record, "ids", int),
            name=record["name"],
            table=table,
            topic=topic,
            framing=record.get("framing", "coordinator"),
            read=record.get("read", "decode"),
            key=_struct(record, "key"),
            value=_struct(record, "value"),
            versions=_versions(record, "versions", NO_VERSIONS),
            flexible=_versions(record, "flexible", NO_VERSIONS),
            layouts=_list_of(record, "layouts", str),
            about=record["about"],
        )


def parse_embedded(document: object, *, name: str, file: str) -> Embedded:
    """Read the embedded message of one file; arguments and errors as in `parse_record_type`."""
    with _naming_file(file):
        message = _object(
            document,
            required={"about": str, "versions": str, "framing": str, "fields": list},
            optional={"lenientTail": bool, "mayEndEarly": bool},
        )
        return Embedded(
            name=name,
            struct=_struct(message, "fields"),
            versions=_versions(message, "versions", NO_VERSIONS),
            framing=message["framing"],
            lenient_tail=message.get("lenientTail", False),
            about=message["about"],
            may_end_early=message.get("mayEndEarly", False),
        )


def parse_table(document: object, *, name: str, file: str) -> Table:
    """Read the table contract of one file; arguments and errors as in `parse_record_type`."""
    with _naming_file(file):
        table = _object(
            document,
            required={"kind": str, "about": str, "columns": list},
            optional={"key": list},
        )
        return Table(
            name=name,
            kind=table["kind"],
            columns=tuple(_column(each) for each in table["columns"]),
            key=_list_of(table, "key", str),
            about=table["about"],
        )


def _column(document: object) -> Column:
    column = _object(
        document,
        required={"name": str, "type": str, "about": str},
        optional={"nullable": bool, "values": object},
    )
    return Column(
        name=column["name"],
        type=column["type"],
        nullable=column.get("nullable", True),
        about=column["about"],
        closed=closed_list(column["values"]) if "values" in column else None,
    )


def _struct(parent: Document, key: str) -> Struct:
    with _naming_field(key):
        return Struct(tuple(_field(each) for each in parent.get(key, ())))


def _field(document: object) -> Field:
    item = _object(
        document,
        required={"name": str, "type": str, "about": str},
        optional={
            "fields": list,
            "versions": str,
            "nullable": str,
            "default": object,
            "tag": int,
            "layouts": list,
            "typeIn": dict,
            "embedded": dict,
            "withheldBy": str,
        },
    )
    with _naming_field(item["name"]):
        children = tuple(_field(each) for each in item.get("fields", ()))
        nullable = _versions(item, "nullable", NO_VERSIONS)
        type_in = item.get("typeIn", {})
        if not all(isinstance(each, str) for each in type_in.values()):
            raise SchemaError('"typeIn" maps a layout to a type')
        arguments: dict[str, Any] = {
            "fields": children,
            "versions": _versions(item, "versions", ALL_VERSIONS),
            "nullable": nullable,
            "default": _default(item, nullable),
            "tag": item.get("tag"),
            "layouts": _list_of(item, "layouts", str),
            "type_in": dict(type_in),
            "embedded": _embedded_use(item),
            "withheld_by": item.get("withheldBy"),
        }
    is_array = item["type"].startswith("[]")
    return Field(
        name=item["name"],
        type=item["type"].removeprefix("[]"),
        is_array=is_array,
        about=item["about"],
        **arguments,
    )


def _default(item: Document, nullable: VersionRange) -> Default:
    if "default" in item:
        value: Default = item["default"]
        if value is None and not nullable:
            raise SchemaError("defaults to null but is never null")
        return value
    # What Kafka takes for a nullable field without a default is empty, not null. A string can say
    # so; the others cannot, so a tagged one, whose default is ever used, has to be explicit.
    if nullable and item["type"] == "string":
        return ""
    if nullable and "tag" in item:
        raise SchemaError("a tagged field that may be null says what its default is")
    return None


def _embedded_use(item: Document) -> EmbeddedUse | None:
    if "embedded" not in item:
        return None
    use = _object(item["embedded"], required={"as": str}, optional={"when": dict})
    when = list(use.get("when", {}).items())
    if not when:
        return EmbeddedUse(use["as"])
    if len(when) > 1 or not isinstance(when[0][1], str):
        raise SchemaError('"when" names one field and the string it must hold')
    return EmbeddedUse(use["as"], when_field=when[0][0], when_value=when[0][1])


def _object(
    document: object, *, required: Mapping[str, type], optional: Mapping[str, type]
) -> Document:
    """Return the document if it is an object of just these keys, each of its type."""
    if not isinstance(document, dict):
        raise SchemaError(f"expected an object, found {type(document).__name__}")
    missing = sorted(required.keys() - document.keys())
    unknown = sorted(document.keys() - required.keys() - optional.keys())
    with _naming_field(str(document.get("name", ""))):
        if missing:
            raise SchemaError(f"missing: {', '.join(missing)}")
        if unknown:
            raise SchemaError(f"unknown: {', '.join(unknown)}")
        for key, kind in {**required, **optional}.items():
            if key in document:
                _check_kind(key, document[key], kind)
    return document


def _check_kind(key: str, value: object, kind: type) -> None:
    # In Python a bool is an int; in a schema file it is not.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SchemaError(f'"{key}" is {value!r}, not of type {kind.__name__}')


def _list_of(document: Document, key: str, kind: type[_T]) -> tuple[_T, ...]:
    values = document.get(key, [])
    for value in values:
        _check_kind(key, value, kind)
    return tuple(values)


def _versions(document: Document, key: str, otherwise: VersionRange) -> VersionRange:
    return VersionRange.parse(document[key]) if key in document else otherwise


@contextmanager
def _naming_field(name: str) -> Iterator[None]:
    try:
        yield
    except SchemaError as error:
        raise error.inside(name) from None


@contextmanager
def _naming_file(file: str) -> Iterator[None]:
    try:
        yield
    except SchemaError as error:
        raise error.in_file(file) from None


DECODED_TEMPLATE = "decoded_record"
"""The table file that holds the columns which all decoded tables share."""


@cache
def record_types(topic: str) -> Mapping[int, RecordType]:
    """Return the record types of an internal topic by id; empty for any other topic.

    Raises:
        SchemaError: A file is wrong, or two files claim one id.
    """
    if topic not in INTERNAL_TOPICS:
        return MappingProxyType({})
    by_id: dict[int, RecordType] = {}
    for stem, file, document in documents(f"records/{topic}"):
        record_type = parse_record_type(document, topic=topic, table=stem, file=file)
        _check_embedded(record_type, file)
        for number in record_type.ids:
            if number in by_id:
                raise SchemaError(f"id {number} is also {by_id[number].name}", file=file)
            by_id[number] = record_type
    return MappingProxyType(dict(sorted(by_id.items())))


@cache
def all_record_types() -> Mapping[str, RecordType]:
    """Return every record type of every internal topic by Kafka's name, by topic and then id.

    Raises:
        SchemaError: A file is wrong, or two files share a name.
    """
    by_name: dict[str, RecordType] = {}
    for topic in INTERNAL_TOPICS:
        for record_type in record_types(topic).values():
            if by_name.setdefault(record_type.name, record_type) is not record_type:
                raise SchemaError(f"{record_type.name} is in two topics", file=f"records/{topic}")
    return MappingProxyType(by_name)


@cache
def embedded(name: str) -> Embedded:
    """Return the embedded message of that name ("consumer_protocol_subscription").

    Raises:
        KeyError: There is none.
        SchemaError: Its file is wrong.
    """
    file = f"embedded/{name}.json"
    resource = files(__package__) / file
    if not resource.is_file():
        raise KeyError(name)
    return parse_embedded(_read(resource, file), name=name, file=file)


@cache
def all_embedded() -> Mapping[str, Embedded]:
    """Return every embedded message by name.

    Raises:
        SchemaError: A file is wrong.
    """
    return MappingProxyType({stem: embedded(stem) for stem, _, _ in documents("embedded")})


@cache
def written_tables() -> Mapping[str, Table]:
    """Return the table contracts that have a file of their own, the shared template included.

    Raises:
        SchemaError: A file is wrong.
    """
    return MappingProxyType(
        {
            stem: parse_table(document, name=stem, file=file)
            for stem, file, document in documents("tables")
        }
    )


def _check_embedded(record_type: RecordType, file: str) -> None:
    for path, each in record_type.value.walk("value"):
        if each.embedded is None:
            continue
        try:
            embedded(each.embedded.name)
        except KeyError:
            raise SchemaError(
                f'embeds "{each.embedded.name}", which has no file', field=path, file=file
            ) from None


def documents(folder: str) -> Iterator[tuple[str, str, object]]:
    """Yield name without suffix, file name for errors and content of a folder's JSON files."""
    for resource in sorted((files(__package__) / folder).iterdir(), key=lambda each: each.name):
        if resource.name.endswith(".json"):
            file = f"{folder}/{resource.name}"
            yield resource.name.removesuffix(".json"), file, _read(resource, file)


def _read(resource: Traversable, file: str) -> object:
    try:
        document: object = json.loads(
            resource.read_text("utf-8"), object_pairs_hook=_without_repeats
        )
    except ValueError as error:
        raise SchemaError(f"is not JSON: {error}", file=file) from error
    except SchemaError as error:
        raise error.in_file(file) from None
    return document


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object that has a key twice, of which JSON readers silently keep the last."""
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise SchemaError(f"twice in one object: {', '.join(repeated)}")
    return result
