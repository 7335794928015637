"""Archived raw rows decode to what the segments they came from decode to, less the batches."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.decode.archived_rows import RowsReport, decode_rows_on_spark
from analytics.decode.chunks import decode_chunk
from analytics.decode.tables import Origin
from analytics.decode.tasks import Settings
from analytics.decode.unplaced_rows import add_gaps, named_rows
from analytics.dump.inspection.survey import NOT_DECODED, Gap
from analytics.dump.records.raw_rows import read_raw_rows
from analytics.dump.records.segment_reader import read_segment
from analytics.errors import InputNotRecognizedError, InputUnreadableError, ReadFailedError
from analytics.spark_tasks import own_errors
from tests.support.archived import Rows, rows_of_partition, write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from analytics.decode.archived_rows import ArchiveReport

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
    report = decode_rows_on_spark(frame, settings, (TOPIC,), 2)
    tables: dict[str, Rows] = {}
    for part in report.parts:
        rows = tables.setdefault(part.table.removeprefix("decoded/"), [])
        rows += pq.read_table(part.path).to_pylist()
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


BAD_LINES: dict[str, dict[str, Any]] = {
    "it has no partition": {"partition": None},
    "its partition is not the number of a partition: nine": {"partition": "nine"},
    "its partition is not the number of a partition: -1": {"partition": -1},
    "its partition is not the number of a partition: 2147483648": {"partition": 2**31},
    "its offset is not an offset: -3": {"offset": -3},
    "its offset is not an offset: 9223372036854775808": {"offset": 2**63},
    "its offset is not an offset: 1.5": {"offset": 1.5},
    "it has no offset": {"offset": None},
    "it has no topic": {"topic": None},
    'its topic is not the name of a topic: {"a":1}': {"topic": {"a": 1}},
    "its timestamp is no time": {"timestamp": "yesterday"},
}


def test_a_row_that_does_not_say_where_it_was_sinks_nothing_else(
    spark: SparkSession, tmp_path: Path, rows: Rows
) -> None:
    path = write_json(tmp_path, rows)
    sound = path.read_text()
    one = json.loads(sound.splitlines()[0])
    bad = [json.dumps({**one, **change}) for change in BAD_LINES.values()]
    path.write_text("\n".join(["no JSON", sound.rstrip(), "[1]", *bad, ""]))
    frame = read_raw_rows(spark, [str(path)], "json")
    found = decode_rows_on_spark(frame, Settings(str(tmp_path / "staging")), (TOPIC,), 1)
    unplaced, reports = found.unplaced, found.partitions
    assert [(each.rows, each.counts.undecoded.total()) for each in reports] == [(len(rows), 0)]
    assert unplaced.counts.total() == len(BAD_LINES) + 2
    named = {each["flaw"]: each["row"] for each in named_rows(unplaced)}
    last = len(rows) + 2
    assert named == {
        "the line is no JSON object": named["the line is no JSON object"],
        **{flaw: last + place for place, flaw in enumerate(BAD_LINES, 1)},
    }
    add_gaps(reports, unplaced)
    assert reports[0].gaps[-1] == Gap(reports[0].end_offset, reports[0].end_offset + 1, NOT_DECODED)
    paths = [each.path for each in found.parts if each.table.endswith("undecoded")]
    kept = [row for path in paths for row in pq.read_table(path).to_pylist()]
    assert {row["detail"] for row in kept} == named.keys()
    assert {row["reason"] for row in kept} == {"unplaced_row"}
    # Of a row that names no topic nobody knows whether it is of a secret setting.
    assert {row["value"] is None for row in kept if row["topic"] is None} == {True}
    assert {row["value"] is None for row in kept if row["topic"] == TOPIC} == {False}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_column_under_another_name_is_refused(
    spark: SparkSession, tmp_path: Path, rows: Rows, kind: str
) -> None:
    path = WRITERS[kind](tmp_path, rows[:3])
    renamed = {"json": rename_in_json, "parquet": rename_in_parquet, "avro": rename_in_avro}
    renamed[kind](path)
    with pytest.raises(InputNotRecognizedError, match=r"missing: value[;,].* found: .*payload"):
        read_raw_rows(spark, [str(path)], kind)


def rename_in_json(path: Path) -> None:
    path.write_text(path.read_text().replace('"value"', '"payload"'))


def rename_in_parquet(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(
        table.rename_columns([{"value": "payload"}.get(n, n) for n in table.column_names]), path
    )


def rename_in_avro(path: Path) -> None:
    with path.open("rb") as file:
        found = [{**row, "payload": row["value"]} for row in fastavro.reader(file)]  # type: ignore[dict-item,call-overload,index]
    types = {"topic": "string", "partition": "int", "offset": "long"}
    fields: list[dict[str, Any]] = [{"name": name, "type": kind} for name, kind in types.items()]
    fields += [{"name": name, "type": ["null", "bytes"]} for name in ("key", "payload")]
    schema = fastavro.parse_schema({"type": "record", "name": "row", "fields": fields})
    with path.open("wb") as file:
        fastavro.writer(file, schema, found)


def test_a_value_that_one_line_lacks_is_null_and_one_that_all_lack_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = {"topic": TOPIC, "partition": 0, "offset": 1, "key": "AA=="}
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in (place, {**place, "value": None})))
    assert read_raw_rows(spark, [str(path)], "json").select("value").collect() == [(None,)] * 2
    path.write_text(json.dumps(place))
    with pytest.raises(InputNotRecognizedError, match="missing: value, timestamp"):
        read_raw_rows(spark, [str(path)], "json")


def test_a_missing_column_is_named(spark: SparkSession, tmp_path: Path, rows: Rows) -> None:
    pq.write_table(pa.table({"key": [row["key"] for row in rows]}), tmp_path / "rows.parquet")
    with pytest.raises(InputNotRecognizedError, match=r"missing: value, topic, partition, offset"):
        read_raw_rows(spark, [str(tmp_path / "rows.parquet")], "parquet")


def test_a_session_that_ignores_files_it_cannot_read_ignores_none_of_ours(
    spark: SparkSession, tmp_path: Path, rows: Rows
) -> None:
    """A file that goes away, or is damaged, is an error; its rows are not left out."""
    path = write_parquet_rows(tmp_path, rows)
    settings = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
    for each in settings:
        spark.conf.set(each, "true")
    try:
        read = read_raw_rows(spark, [str(path)], "parquet")
        content = path.read_bytes()
        path.write_bytes(content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :])
        with pytest.raises(InputUnreadableError, match=r"rows\.parquet: .* damaged"), own_errors():
            read.collect()
        path.unlink()
        with pytest.raises(ReadFailedError, match=r"rows\.parquet: .* every machine"), own_errors():
            read.collect()
    finally:
        for each in settings:
            spark.conf.unset(each)


MANY = 5


def test_a_partition_of_many_rows_is_the_work_of_many_tasks(
    spark: SparkSession, tmp_path: Path, rows: Rows
) -> None:
    again = [rows[3], {**rows[5], "value": b"\x00\x03other"}, rows[5], *rows]
    path = write_parquet_rows(tmp_path, again)
    found = {}
    for tasks in (1, MANY):
        frame = read_raw_rows(spark, [str(path)], "parquet")
        settings = Settings(str(tmp_path / f"staging-{tasks}"))
        found[tasks] = decode_rows_on_spark(frame, settings, (TOPIC,), tasks)
    written = {Path(each.path).parent for each in found[MANY].parts}
    assert len(written) == MANY
    assert found[MANY].partitions == found[1].partitions
    assert tables_in_order(found[MANY]) == tables_in_order(found[1])


def test_places_with_more_digits_than_are_looked_at_first_are_cut_in_order_too(
    spark: SparkSession, tmp_path: Path, rows: Rows
) -> None:
    """Partitions from 65,535 and offsets from 2^45 on share the number that ranges are cut by."""
    far = [
        {**row, "partition": partition, "offset": first + row["offset"]}
        for partition in (0, 65_534, 65_535, 70_000)
        for first in (0, 2**45 - 2, 2**50)
        for row in rows[:4]
    ]
    path = write_parquet_rows(tmp_path, far[::-1])
    found = {}
    for tasks in (1, MANY):
        frame = read_raw_rows(spark, [str(path)], "parquet")
        settings = Settings(str(tmp_path / f"staging-{tasks}"))
        found[tasks] = decode_rows_on_spark(frame, settings, (TOPIC,), tasks)
    assert found[MANY].partitions == found[1].partitions
    assert [each.rows for each in found[1].partitions] == [12] * 4
    assert tables_in_order(found[MANY]) == tables_in_order(found[1])


def tables_in_order(report: ArchiveReport) -> dict[str, Rows]:
    tables: dict[str, Rows] = {}
    for part in report.parts:
        tables.setdefault(part.table, []).extend(pq.read_table(part.path).to_pylist())
    return tables
