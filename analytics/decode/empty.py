"""Tables without rows: every table of a workspace exists, so that readers need no special case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.decode.records.chunks import CONTROL_TABLE, UNDECODED_TABLE
from analytics.decode.records.tables import CONTROL_MARKERS, UNDECODED, decoded_schema
from analytics.workspace import Part, open_location
from schemas import all_record_types

if TYPE_CHECKING:
    from collections.abc import Collection


def table_schemas() -> dict[str, pa.Schema]:
    """Arrow schemas of all decoded tables, control_markers and undecoded among them."""
    schemas = {
        kind.table: decoded_schema(kind)
        for kind in all_record_types().values()
        if kind.read == "decode"
    }
    return {**schemas, CONTROL_TABLE: CONTROL_MARKERS, UNDECODED_TABLE: UNDECODED}


def empty_parts(staging: str, prefix: str, tables_with_rows: Collection[str]) -> list[Part]:
    """Write a part without rows for each table under ``prefix`` that no task wrote to."""
    filesystem, root = open_location(staging)
    filesystem.create_dir(root, recursive=True)
    parts = []
    for name, schema in table_schemas().items():
        table = f"{prefix}/{name}"
        if table not in tables_with_rows:
            path = f"{root}/{table.replace('/', '.')}.empty.parquet"
            pq.write_table(schema.empty_table(), path, filesystem=filesystem, store_schema=False)
            parts.append(Part(table, path, 0))
    return parts
