"""What record types and tables are: frozen values that refuse nonsense when they are built.

A record type is described once, as data, and everything that has to know it is derived from that
description: the columnar decoder, the Arrow and Spark types, the docs, the encoder of the tests.
"""

from __future__ import annotations

from schemas.embedded_message import Embedded
from schemas.errors import SchemaError
from schemas.fields import ZERO_UUID, Default, EmbeddedUse, Field, Struct
from schemas.record import RecordType
from schemas.table_contract import Column, Table
from schemas.versions import VersionRange

__all__ = [
    "ZERO_UUID",
    "Column",
    "Default",
    "Embedded",
    "EmbeddedUse",
    "Field",
    "RecordType",
    "SchemaError",
    "Struct",
    "Table",
    "VersionRange",
]
