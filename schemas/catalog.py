"""All schema files, loaded once each and held against each other.

Read through importlib.resources, so that the package works from inside a zip.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

from schemas.errors import SchemaError
from schemas.model import Embedded, RecordType, Table
from schemas.parse import parse_embedded, parse_record_type, parse_table
from schemas.topic_names import INTERNAL_TOPICS

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
