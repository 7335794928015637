"""What the records of Kafka's internal topics and our own tables look like, as data.

This is the only door. Record types, embedded messages and table contracts are JSON files in the
folders `records/`, `embedded/` and `tables/`; they are read once, checked, and handed out as frozen
values of `schemas.model`.

The contracts of all tables, those of decoded tables made from record types, and look-up by name.

In decoded tables the columns around key and value are the same for all and come from one template;
key and value are structs, so nothing collides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from schemas.catalog import (
    DECODED_TEMPLATE,
    all_embedded,
    all_record_types,
    embedded,
    record_types,
    written_tables,
)
from schemas.model import (
    ZERO_UUID,
    Column,
    Embedded,
    EmbeddedUse,
    Field,
    RecordType,
    Struct,
    Table,
    VersionRange,
)
from schemas.names import (
    CLUSTER_METADATA,
    COMPACTED_TOPICS,
    CONSUMER_OFFSETS,
    COORDINATOR_TOPICS,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from schemas.reading import SchemaError

__all__ = [
    "CLUSTER_METADATA",
    "COMPACTED_TOPICS",
    "CONSUMER_OFFSETS",
    "COORDINATOR_TOPICS",
    "INTERNAL_TOPICS",
    "SHARE_GROUP_STATE",
    "TRANSACTION_STATE",
    "ZERO_UUID",
    "Column",
    "Embedded",
    "EmbeddedUse",
    "Field",
    "RecordType",
    "SchemaError",
    "Struct",
    "Table",
    "VersionRange",
    "all_embedded",
    "all_record_types",
    "decoded_table",
    "embedded",
    "record_type",
    "record_types",
    "spark_struct",
    "spark_type",
    "table",
    "tables",
]


SPARK_TYPES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint16": "int",  # Spark has no unsigned types; the next wider signed one holds every value
    "uint32": "bigint",
    "bool": "boolean",
    "string": "string",
    "bytes": "binary",
    "uuid": "string",  # as Kafka prints it: 22 characters of URL-safe base64
}


@cache
def record_type(name: str) -> RecordType:
    """Return the record type of that name, Kafka's or the table's: "OffsetCommit", "offset_commit".

    Raises:
        KeyError: There is none.
    """
    for each in all_record_types().values():
        if name in (each.name, each.table):
            return each
    raise KeyError(name)


@cache
def tables() -> Mapping[str, Table]:
    """Return every table's contract by name: decoded, control, state, history, evaluation.

    Raises:
        SchemaError: A file is wrong, or two tables share a name.
    """
    by_name = {
        each.table: decoded_table(each)
        for each in all_record_types().values()
        if each.read == "decode"
    }
    for name, written in written_tables().items():
        if name == DECODED_TEMPLATE:
            continue
        if name in by_name:
            raise SchemaError("a decoded table has that name", file=f"tables/{name}.json")
        by_name[name] = written
    return MappingProxyType(by_name)


def table(name: str) -> Table:
    """Return the contract of the table of that name.

    Raises:
        KeyError: There is none.
    """
    return tables()[name]


@cache
def decoded_table(record_type: RecordType) -> Table:
    """Return the contract of the table that a record type is decoded into.

    A record type without key fields (all of the metadata log) has no `key` column and one without
    value fields no `value` column, because Parquet has no empty struct.

    Raises:
        ValueError: The record type is counted, not decoded.
    """
    if record_type.read != "decode":
        raise ValueError(f"{record_type.name} is not decoded ({record_type.read})")
    template = written_tables()[DECODED_TEMPLATE]
    structs = {"key": record_type.key, "value": record_type.value}
    columns = tuple(
        _specialised(column, structs.get(column.name))
        for column in template.columns
        if column.name not in structs or structs[column.name].fields
    )
    # Each snapshot of the metadata log counts its records from 0.
    key = (*template.key, "segment") if record_type.topic == CLUSTER_METADATA else template.key
    return replace(
        template, name=record_type.table, columns=columns, about=record_type.about, key=key
    )


def spark_struct(struct: Struct) -> str:
    """Return the Spark DDL type of a struct: the union of its versions, in schema order.

    Bytes that embed a message are followed by `<column>_decoded`, a struct of that message.
    """
    parts: list[str] = []
    for each in struct.fields:
        parts.append(f"{each.column}:{spark_type(each)}")
        if each.embedded is not None:
            parts.append(f"{each.column}_decoded:{spark_struct(embedded(each.embedded.name).row)}")
    return f"struct<{','.join(parts)}>"


def spark_type(field: Field) -> str:
    """Return the Spark DDL type of a field."""
    element = spark_struct(field.struct) if field.type == "struct" else SPARK_TYPES[field.type]
    return f"array<{element}>" if field.is_array else element


def _specialised(column: Column, struct: Struct | None) -> Column:
    return column if struct is None else replace(column, type=spark_struct(struct))
