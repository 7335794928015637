"""What the records of Kafka's internal topics and our own tables look like, as data.

This is the only door. Record types, embedded messages and table contracts are JSON files in the
folders `records/`, `embedded/` and `tables/`; they are read once, checked, and handed out as frozen
values of `schemas.model`.
"""

from __future__ import annotations

from schemas.catalog import all_embedded, all_record_types, embedded, record_types
from schemas.contracts import decoded_table, record_type, spark_struct, spark_type, table, tables
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
from schemas.names import (
    CLUSTER_METADATA,
    COMPACTED_TOPICS,
    CONSUMER_OFFSETS,
    COORDINATOR_TOPICS,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)

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
