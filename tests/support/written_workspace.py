"""A workspace written without Spark: tables from rows, and the manifest of a replay."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.workspace import DECODED
from schemas import table

OFFSETS = "__consumer_offsets"
_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
    "array<struct<member_id:string,client_id:string,client_host:string>>": pa.list_(
        pa.struct(dict.fromkeys(("member_id", "client_id", "client_host"), pa.string()))
    ),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "double": pa.float64(),
}
STATE = (
    *("groups", "members", "assignments", "committed_offsets", "pending_offsets", "topics"),
    *("share_partitions", "share_batches", "configs", "partition_leaders"),
)

Row = Mapping[str, Any]

EMPTY = {
    "schema_version": 3,
    "created_from": ["dump"],
    "options": {},
    "copies": [],
    "partitions": [],
    "record_types": [],
    "kafka_version": {},
}
"""The manifest of a dump without anything."""


def schema_of(name: str) -> pa.Schema:
    """Return the Arrow schema of a table of the contract."""
    return pa.schema([(each.name, _TYPES[each.type]) for each in table(name).columns])


def write_workspace(
    folder: Path,
    tables: Mapping[str, Iterable[Row]],
    *,
    partitions: Sequence[Row] = (),
    replay: Row | None = None,
    **manifest: Any,
) -> Path:
    """Write a workspace that was replayed, of a dump without records.

    Args:
        folder: Where.
        tables: Rows by table; what a row does not name is null. State tables without rows are
            written too.
        partitions: Of the manifest; `topic` is the offsets topic where they do not say.
        replay: Of the manifest; the end of the dump by default.
        manifest: What else it says.
    """
    # A dump of which nothing is decoded leaves the folder behind.
    (folder / DECODED).mkdir(parents=True)
    for name in {*STATE, *tables}:
        contract = table(name)
        kind = "evaluations" if contract.kind == "evaluation" else contract.kind
        schema = schema_of(name)
        path = folder / kind / name
        path.mkdir(parents=True)
        rows = pa.Table.from_pylist(list(tables.get(name, ())), schema)
        pq.write_table(rows, path / "part-00000.parquet")
    said = {
        "schema_version": 3,
        "groupscope_version": "0.1.0",
        "created_from": ["dump"],
        "options": {},
        "copies": [{"name": "broker-1", "node_id": 1}],
        "partitions": [{"topic": OFFSETS, "is_leading": True, **each} for each in partitions],
        "record_types": [],
        "kafka_version": {"at_least": "4.3", "evidence": []},
        "replay": {
            "as_of": {"time": None, "offsets": {}},
            "lines": [],
            "kafka_version": "4.3",
            "rows": {},
            **(replay or {}),
        },
        **manifest,
    }
    (folder / "manifest.json").write_text(json.dumps(said), "utf-8")
    return folder


def group(name: str, kind: str = "classic", home: int = 0, **more: Any) -> dict[str, Any]:
    """Return a row of the table `groups`."""
    return {
        "group_id": name,
        "group_type": kind,
        "state": "Empty",
        "member_count": 0,
        "coordinator_partition": home,
        "complete": True,
        **more,
    }
