"""What the records of Kafka's internal topics and our own tables look like, as data.

This is the only door. Record types, embedded messages and table contracts are JSON files in the
folders `records/`, `embedded/` and `tables/`; they are read once, checked, and handed out as frozen
values of `schemas.model`.
"""

from __future__ import annotations

from schemas.catalog import TOPICS, all_embedded, all_record_types, embedded, record_types
from schemas.contracts import record_type, table, tables
from schemas.decoded import decoded_table, spark_struct, spark_type
from schemas.model import (
    ZERO_UUID,
    Column,
    Embedded,
    EmbeddedUse,
    Field,
    RecordType,
    SchemaError,
    Struct,
    Table,
    VersionRange,
)

__all__ = [
    "TOPICS",
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
