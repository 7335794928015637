"""Archived raw rows decode to what the segments they came from decode to, less the batches."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.decode.archived_rows import RowsReport, decode_rows_on_spark
from analytics.decode.chunks import decode_chunk
from analytics.decode.tables import Origin
from analytics.decode.tasks import Settings
from analytics.dump.raw_rows import read_raw_rows
from analytics.dump.segment_reader import read_segment
from analytics.errors import InputNotRecognizedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

TOPIC = "__consumer_offsets"
LOST = ["leader_epoch", "producer_id", "producer_epoch", "is_transactional", "batch_offset"]
LOST += ["batch_position", "record_bytes", "copy", "segment"]
Rows = list[dict[str, Any]]


def write_parquet(folder: Path, rows: Rows) -> Path:
    types = {"timestamp": pa.timestamp("us", "UTC"), "key": pa.binary(), "value": pa.binary()}
    columns = {name: pa.array([row[name] for row in rows], types.get(name)) for name in rows[0]}
    columns["timestamp"] = pa.array([row["timestamp"] * 1000 for row in rows]).cast(
        types["timestamp"]
    )
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    return folder / "rows.parquet"


def text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def write_json(folder: Path, rows: Rows) -> Path:
    lines = [
        json.dumps({**row, "key": text(row["key"]), "value": text(row["value"])}) for row in rows
    ]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "rows.jsonl"


def write_avro(folder: Path, rows: Rows) -> Path:
    types = {"topic": "string", "partition": "int", "offset": "long"}
    fields: list[dict[str, Any]] = [{"name": name, "type": kind} for name, kind in types.items()]
    fields += [{"name": name, "type": ["null", "bytes"]} for name in ("key", "value")]
    fields += [{"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}}]
    schema = fastavro.parse_schema({"type": "record", "name": "row", "fields": fields})
    with (folder / "rows.avro").open("wb") as file:
        fastavro.writer(file, schema, rows)
    return folder / "rows.avro"


WRITERS = {"parquet": write_parquet, "json": write_json, "avro": write_avro}


@pytest.fixture(scope="module")
def segment(failover_dump: Path) -> Path:
    return failover_dump / "broker-3" / f"{TOPIC}-9" / "00000000000000000000.log"


@pytest.fixture(scope="module")
def rows(segment: Path) -> Rows:
    """What Spark's Kafka source would have given for the segment: no control records."""
    found: Rows = []
    for chunk in read_segment(segment):
        records = chunk.records
        for row in np.flatnonzero(~records.batches.is_control[records.batch]).tolist():
            cut = {
                name: None
                if spans.length[row] < 0
                else records.data[spans.start[row] : spans.start[row] + spans.length[row]].tobytes()
                for name, spans in (("key", records.key), ("value", records.value))
            }
            place = {"topic": TOPIC, "partition": 9, "offset": int(records.offset[row])}
            found.append({**place, "timestamp": int(records.timestamp[row]), **cut})
    return found


def from_segment(segment: Path) -> dict[str, Rows]:
    tables: dict[str, Rows] = {}
    for chunk in read_segment(segment):
        decoded = decode_chunk(chunk.records, [], Origin(TOPIC, 9, "copy", "segment"))
        for table, batch in decoded.batches.items():
            if table != "control_markers":
                tables.setdefault(table, []).extend(batch.to_pylist())
    return {
        table: [{**row, **dict.fromkeys(LOST)} for row in found] for table, found in tables.items()
    }


def decode(
    spark: SparkSession, path: Path, kind: str, staging: Path
) -> tuple[dict[str, Rows], RowsReport]:
    frame = read_raw_rows(spark, [str(path)], kind)
    settings = Settings(str(staging))
    (report,) = [
        each for each in decode_rows_on_spark(frame, settings, (TOPIC,), 2) if each.partitions
    ]
    tables = {
        part.table.removeprefix("decoded/"): pq.read_table(part.path).to_pylist()
        for part in report.parts
    }
    (counts,) = report.partitions
    return tables, counts


@pytest.mark.parametrize("kind", WRITERS)
def test_each_format_gives_the_rows_of_the_segment(
    spark: SparkSession, tmp_path: Path, segment: Path, rows: Rows, kind: str
) -> None:
    write: Callable[[Path, Rows], Path] = WRITERS[kind]
    tables, counts = decode(spark, write(tmp_path, rows[::-1]), kind, tmp_path / "staging")
    assert tables == from_segment(segment)
    assert counts.rows == counts.counts.records == len(rows)
    assert (counts.first_offset, counts.end_offset) == (rows[0]["offset"], rows[-1]["offset"] + 1)


def test_equal_rows_are_kept_once_and_contradictions_among_the_undecoded(
    spark: SparkSession, tmp_path: Path, rows: Rows
) -> None:
    again = [rows[3], {**rows[5], "value": b"\x00\x03other"}]
    path = write_parquet(tmp_path, rows + again)
    tables, counts = decode(spark, path, "parquet", tmp_path / "staging")
    assert counts.counts.left_out["duplicate_copy"] == 1
    assert [row["reason"] for row in tables["undecoded"]] == ["conflicting_row"]
    assert tables["undecoded"][0]["offset"] == rows[5]["offset"]
    assert counts.counts.records == len(rows) + 2


def test_a_missing_column_is_named(spark: SparkSession, tmp_path: Path, rows: Rows) -> None:
    pq.write_table(pa.table({"key": [row["key"] for row in rows]}), tmp_path / "rows.parquet")
    with pytest.raises(InputNotRecognizedError, match=r"missing: value, topic, partition, offset"):
        read_raw_rows(spark, [str(tmp_path / "rows.parquet")], "parquet")
