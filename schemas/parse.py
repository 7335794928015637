"""JSON documents to the model, refusing whatever a schema file should not say.

Unknown keys are refused, not skipped: a misspelt "nullabel" would otherwise change what is decoded
without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from schemas.closed_lists import closed_list
from schemas.errors import SchemaError
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
from schemas.shown import ALWAYS, MAIN, PAGE, ShownColumn, View, head_of, head_on_page
from schemas.versions import ALL_VERSIONS, NO_VERSIONS

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
            optional={"key": list, "shown": list, "views": dict},
        )
        columns = tuple(_column(each) for each in table["columns"])
        shown = {MAIN: table["shown"]} if "shown" in table else {}
        by_name = {each.name: each for each in columns}
        return Table(
            name=name,
            kind=table["kind"],
            columns=columns,
            key=_list_of(table, "key", str),
            about=table["about"],
            views=tuple(
                View(view, tuple(_view_column(each, by_name, view) for each in listed))
                for view, listed in {**shown, **table.get("views", {})}.items()
            ),
        )


def _column(document: object) -> Column:
    column = _object(
        document,
        required={"name": str, "type": str, "about": str},
        optional={"nullable": bool, "values": object, "unit": str, "head": str, "rank": int},
    )
    return Column(
        name=column["name"],
        type=column["type"],
        nullable=column.get("nullable", True),
        about=column["about"],
        closed=closed_list(column["values"]) if "values" in column else None,
        unit=column.get("unit"),
        head=column.get("head"),
        rank=column.get("rank", ALWAYS),
    )


def _view_column(document: object, columns: Mapping[str, Column], view: str) -> ShownColumn:
    """Return a column of a view: its name, or an object that says what its column does not."""
    shown = _object(
        {"name": document} if isinstance(document, str) else document,
        required={"name": str},
        optional={"head": str, "rank": int, "from": list, "as": str},
    )
    name = shown["name"]
    column = columns.get(name)
    is_page = view.startswith(PAGE)
    head = head_on_page(name) if is_page else (column and column.head) or head_of(name)
    form = (column.form_on_page if column else "text") if is_page else None
    return ShownColumn(
        name=name,
        head=shown.get("head", head),
        rank=shown.get("rank", column.rank if column and not is_page else ALWAYS),
        sources=_list_of(shown, "from", str),
        form=shown.get("as", form),
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
