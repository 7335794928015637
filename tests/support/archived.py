"""Archived rows of a log directory: what Spark's Kafka source would have given for its segments."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analytics import State
from analytics.dump.records.segment_reader import read_segment
from schemas import table

Rows = list[dict[str, Any]]
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "hex": lambda content: content.hex().encode(),
    "base64": base64.b64encode,
}


def rows_of_partition(folder: Path) -> Rows:
    """Return one partition's records in log order, without control records: no batch shows."""
    topic, _, number = folder.name.rpartition("-")
    found: Rows = []
    for segment in sorted(folder.glob("*.log")):
        for chunk in read_segment(segment):
            records = chunk.records
            for row in np.flatnonzero(~records.batches.is_control[records.batch]).tolist():
                cut = {
                    name: None
                    if spans.length[row] < 0
                    else records.data[
                        spans.start[row] : spans.start[row] + spans.length[row]
                    ].tobytes()
                    for name, spans in (("key", records.key), ("value", records.value))
                }
                place = {"topic": topic, "partition": int(number)}
                place["offset"] = int(records.offset[row])
                found.append({**place, "timestamp": int(records.timestamp[row]), **cut})
    return found


def rows_of_topics(log_directory: Path, topics: Iterable[str] = ("__consumer_offsets",)) -> Rows:
    """Return the records of all partitions of some topics in a broker's log directory."""
    return [
        row
        for topic in topics
        for folder in sorted(log_directory.glob(f"{topic}-*"))
        for row in rows_of_partition(folder)
    ]


def write_parquet(path: Path, rows: Rows, encoding: str | None = None) -> Path:
    """Write archived rows; with an encoding keys and values are text in binary columns."""
    encode = ENCODERS[encoding] if encoding else bytes
    types = {"key": pa.binary(), "value": pa.binary(), "partition": pa.int32()}
    columns = {name: pa.array([row[name] for row in rows], types.get(name)) for name in rows[0]}
    for name in ("key", "value"):
        content = [None if row[name] is None else encode(row[name]) for row in rows]
        columns[name] = pa.array(content, pa.binary())
    stamps = pa.array([row["timestamp"] * 1000 for row in rows])
    columns["timestamp"] = stamps.cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table(columns), path)
    return path


def rows_of(state: State, tables: Iterable[str]) -> dict[str, list[str]]:
    """Return the rows of tables of a replay on Spark, as texts in their order."""
    found = {}
    for name in tables:
        columns = [each.name for each in table(name).columns]
        found[name] = sorted(map(str, state.table(name).toArrow().select(columns).to_pylist()))
    return found
