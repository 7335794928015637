"""Archived raw rows decode to what the segments they came from decode to, less the batches."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.decode.archived_rows import RowsReport, decode_rows_on_spark
from analytics.decode.records.chunks import decode_chunk
from analytics.decode.records.tables import Origin
from analytics.decode.tasks import Settings
from analytics.dump.records.raw_rows import read_raw_rows
from analytics.dump.records.segment_reader import read_segment
from analytics.errors import InputNotRecognizedError
from tests.support.archived import Rows, rows_of_partition, write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

TOPIC = "__consumer_offsets"
LOST = ["leader_epoch", "producer_id", "producer_epoch", "is_transactional", "batch_offset"]
LOST += ["batch_position", "record_bytes", "copy", "segment"]
COLUMNS = ("key", "value")


def write_parquet_rows(folder: Path, rows: Rows) -> Path:
    return write_parquet(folder / "rows.parquet", rows)


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


WRITERS = {"parquet": write_parquet_rows, "json": write_json, "avro": write_avro}


@pytest.fixture(scope="module")
def segment(failover_dump: Path) -> Path:
    return failover_dump / "broker-3" / f"{TOPIC}-9" / "00000000000000000000.log"


@pytest.fixture(scope="module")
def rows(segment: Path) -> Rows:
    return rows_of_partition(segment.parent)


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
    spark: SparkSession, path: Path, kind: str, staging: Path, encoding: str | None = None
) -> tuple[dict[str, Rows], RowsReport]:
    frame = read_raw_rows(spark, [str(path)], kind, encoding)
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


def test_equal_rows_are_kept_once_and_contradictions_not_at_all(
    spark: SparkSession, tmp_path: Path, rows: Rows
) -> None:
    again = [rows[3], {**rows[5], "value": b"\x00\x03other"}, rows[5]]
    path = write_parquet_rows(tmp_path, again + rows)
    tables, counts = decode(spark, path, "parquet", tmp_path / "staging")
    assert counts.counts.left_out["duplicate_copy"] == 1
    contradicting = rows[5]["offset"]
    refused = [(row["reason"], row["offset"]) for row in tables["undecoded"]]
    assert refused == [("conflicting_row", contradicting)] * 3
    assert counts.counts.records == len(rows) + 3
    # An offset of which nothing is known is lost.
    assert (contradicting, contradicting + 1, "not_decoded") in counts.gaps


ODD_TEXT: dict[str, dict[str, Callable[[bytes], bytes]]] = {
    "hex": {
        "plain": lambda content: content.hex().encode(),
        "upper case": lambda content: content.hex().upper().encode(),
        "of SQL Server": lambda content: b"0x" + content.hex().encode(),
        "of PostgreSQL": lambda content: b"\\x" + content.hex().encode(),
        "in groups": lambda content: content.hex(" ", 2).encode() + b"\n",
    },
    "base64": {
        "plain": base64.b64encode,
        "without padding": lambda content: base64.b64encode(content).rstrip(b"="),
        "for URLs": base64.urlsafe_b64encode,
        "in lines": base64.encodebytes,
    },
}


@pytest.mark.parametrize("encoding", ODD_TEXT)
def test_text_of_every_habit_is_read_and_what_is_no_such_text_is_kept_as_it_is(
    spark: SparkSession, tmp_path: Path, segment: Path, rows: Rows, encoding: str
) -> None:
    habits = list(ODD_TEXT[encoding].values())
    written = [
        {**row, **{name: row[name] and habits[number % len(habits)](row[name]) for name in COLUMNS}}
        for number, row in enumerate(rows)
    ]
    garbage = {"offset": rows[-1]["offset"] + 1, "key": b"no text of that kind: \xff!"}
    path = write_parquet_rows(tmp_path, [*written, {**written[-1], **garbage}])
    tables, counts = decode(spark, path, "parquet", tmp_path / "staging", encoding)
    (refused,) = tables.pop("undecoded")
    assert tables == from_segment(segment)
    assert (refused["reason"], refused["detail"]) == (
        "invalid_encoding",
        f"the key is not {encoding} text",
    )
    assert (refused["key"], refused["value"]) == (garbage["key"], written[-1]["value"])
    assert counts.gaps[-1] == (garbage["offset"], garbage["offset"] + 1, "not_decoded")


def test_a_missing_column_is_named(spark: SparkSession, tmp_path: Path, rows: Rows) -> None:
    pq.write_table(pa.table({"key": [row["key"] for row in rows]}), tmp_path / "rows.parquet")
    with pytest.raises(InputNotRecognizedError, match=r"missing: value, topic, partition, offset"):
        read_raw_rows(spark, [str(tmp_path / "rows.parquet")], "parquet")
