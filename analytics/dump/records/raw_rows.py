"""The second door: archived raw rows, as Spark's Kafka source gives them.

Such rows have no batches: producer ids, control records and leader epochs are not in them, so
transactions cannot be told apart and elections leave no trace. The manifest says so.

A column that no row has is no column of nulls: where values are stored under another name, each
commit would be a deletion. Files whose names begin with an underscore Spark does not read, but
sinks call a file by its topic first, and the internal topics begin with two.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F

from analytics.dump.batches.headers import Batches
from analytics.dump.files.storage import SourceFile
from analytics.dump.records.raw_records import RawRecords, Spans
from analytics.dump.records.raw_rows_columns import (
    NOT_JSON,
    PLACE,
    REQUIRED,
    check_columns,
    check_types,
    column_encoding,
    parsed,
    with_numeric_places,
    with_places_of_folders,
    with_times_in_utc,
)
from analytics.dump.records.raw_rows_files import BINARY, FLAW, TABLE, columns_of_folders
from analytics.errors import InputNotRecognizedError, InputUnreadableError
from analytics.locations import base_name, for_spark, open_location
from analytics.spark_tasks import on_worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from analytics.dump.records.raw_rows_files import RawRows

ROWS_SCHEMA = (
    "topic string, partition string, offset string, timestamp long, key binary, value binary, "
    "file string, row long"
)
_PLACE = ("topic", "partition", "offset", "timestamp")
_ORIGIN = ("file", "row", "line")
_AVRO_ROWS = 1 << 14
_JSON_FIELDS = ("key", "value", "topic", "partition", "offset", "timestamp")
_JSON_SCHEMA = ", ".join(f"{name} string" for name in (*_JSON_FIELDS, "corrupt"))
_LOOKED_AT = 1000
"""Lines of which it is seen first which columns they have."""

# What an archived row's batch was is not known; the decoder asks only whether it held markers,
# and Kafka's consumer hands out none.
_NO_BATCH = Batches(
    position=np.zeros(1, np.int64),
    size=np.zeros(1, np.int64),
    magic=np.full(1, -1, np.int8),
    base_offset=np.zeros(1, np.int64),
    last_offset=np.zeros(1, np.int64),
    leader_epoch=np.full(1, -1, np.int32),
    attributes=np.zeros(1, np.int16),
    codec=np.zeros(1, np.int8),
    count=np.full(1, -1, np.int32),
    producer_id=np.full(1, -1, np.int64),
    producer_epoch=np.full(1, -1, np.int16),
    is_transactional=np.zeros(1, np.bool_),
    is_control=np.zeros(1, np.bool_),
    max_timestamp=np.full(1, -1, np.int64),
    base_timestamp=np.full(1, -1, np.int64),
    crc=np.zeros(1, np.uint32),
    delete_horizon=np.full(1, -1, np.int64),
    timestamp_type=np.full(1, -1, np.int8),
)

_BLOCK: Final = 4 << 20


def read_raw_rows(
    spark: SparkSession,
    paths: Sequence[str],
    file_format: str,
    encoding: str | None = None,
    place: tuple[str, int] | None = None,
) -> DataFrame:
    """Read archived rows of the internal topics.

    Args:
        spark: The session.
        paths: Files or folders, all of one format.
        file_format: ``parquet``, ``json`` (lines) or ``avro``.
        encoding: How keys and values are written; None takes text for base64 and bytes as they are.
        place: The topic and partition of rows that do not name them.

    Returns:
        ``topic, partition, offset, timestamp`` (milliseconds, -1 where there is none),
        ``key, value`` (binary), and ``unparsed``: what is not text of the encoding (null where all
        is); key and value are then as they were found. ``flaw`` is what is wrong with the place
        of a row; only then ``file``, ``row`` (from 1; null in JSON) and ``line`` (JSON) are set.

    Raises:
        InputNotRecognizedError: A required column is missing.
        InputUnreadableError: A file cannot be read.
    """
    if file_format == "json":
        frame = _read_json(spark, paths, has_place=place is not None)
    else:
        _check_files(paths, file_format, has_place=place is not None)
        read = _read_avro if file_format == "avro" else _read_parquet
        frame = read(spark, paths)
    if any(columns_of_folders(path) for path in paths):
        frame = with_places_of_folders(frame)
    if place is not None:
        frame = _of_place(frame, place)
    return _parsed(with_numeric_places(frame), encoding)


def read_archive(spark: SparkSession, archive: RawRows, encoding: str | None = None) -> DataFrame:
    """Read archived rows of files, of a table or of a DataFrame.

    Args:
        spark: The session.
        archive: What was given.
        encoding: As `read_raw_rows` takes it; text of a table must have one.

    Returns:
        As `read_raw_rows`; of a table and a DataFrame ``file`` is how it was given.

    Raises:
        InputNotRecognizedError: There is no such table; a column is missing, or has another type.
        InputUnreadableError: A file cannot be read.
    """
    archive = with_table_read(spark, archive)
    if archive.frame is None:
        return read_raw_rows(spark, archive.files, archive.format, encoding, archive.place)
    frame = check_frame(archive, encoding)
    wanted = with_times_in_utc(frame.select(*(n for n in _JSON_FIELDS if n in frame.columns)))
    none = {name: F.lit(None).cast("string") for name in ("flaw", "line")}
    origin = {"file": F.lit(archive.argument), "row": F.lit(None).cast("long")}
    rows = wanted.withColumns(none | origin)
    if archive.place is not None:
        rows = _of_place(rows, archive.place)
    return _parsed(with_numeric_places(rows), encoding)


def with_table_read(spark: SparkSession, archive: RawRows) -> RawRows:
    """Return archived rows of a table as those of a DataFrame; others as they are.

    Raises:
        InputNotRecognizedError: The session knows no such table.
    """
    if archive.format != TABLE or archive.frame is not None:
        return archive
    try:
        frame = spark.read.table(archive.path)
    except (AnalysisException, ParseException) as error:
        raise InputNotRecognizedError(
            f"{archive.argument}: Spark cannot read such a table ({error!s:.200})"
        ) from error
    return replace(archive, frame=frame)


def check_frame(archive: RawRows, encoding: str | None = None) -> DataFrame:
    """Return the DataFrame of archived rows, which has the columns that they need.

    Raises:
        InputNotRecognizedError: A column is missing, or has another type.
    """
    frame = cast("DataFrame", archive.frame)
    check_types(frame, archive.argument, encoding)
    check_columns(archive.argument, frame.columns, has_place=archive.place is not None)
    return frame


def read_keys(
    spark: SparkSession, archive: RawRows, topics: Sequence[str], most: int
) -> list[bytes]:
    """Return some keys of archived rows as they are stored, bytes or text."""
    rows = read_archive(spark, archive, BINARY)
    some = rows.where(rows["topic"].isin(*topics) & rows["key"].isNotNull()).limit(most)
    return [bytes(row.key) for row in some.select("key").collect()]


def _of_place(frame: DataFrame, place: tuple[str, int]) -> DataFrame:
    """Return rows with the topic and the partition where they name none."""
    for name, value in zip(PLACE, place, strict=True):
        known = F.lit(value).cast("string")
        there = [F.col(name).cast("string")] if name in frame.columns else []
        frame = frame.withColumn(name, F.coalesce(*there, known))
    return frame


def _parsed(frame: DataFrame, encoding: str | None) -> DataFrame:
    """Return the columns of archived rows, key and value as the bytes they stand for."""
    # Spark hands on each value of each row: where a sound one came from nobody asks.
    has_flaw = F.col(FLAW).isNotNull()
    origin = (F.when(has_flaw, F.col(each)).alias(each) for each in _ORIGIN)
    plain = frame.select(*_PLACE, "key", "value", FLAW, *origin)
    written = {name: column_encoding(frame, name, encoding) for name in ("key", "value")}
    if set(written.values()) == {BINARY}:
        unparsed = F.lit(None).cast("string")
        content = (F.col(name).cast("binary").alias(name) for name in written)
        return plain.select(*_PLACE, *content, unparsed.alias("unparsed"), FLAW, *_ORIGIN)
    meant = plain
    for name, each in written.items():
        meant = meant.withColumn(f"{name}_bytes", parsed(F.col(name), each))
    failed = [
        F.when(
            F.col(name).isNotNull() & F.col(f"{name}_bytes").isNull(),
            f"the {name} is not {each} text",
        )
        for name, each in written.items()
    ]
    whole = F.col("unparsed").isNull()
    return meant.withColumn("unparsed", F.coalesce(*failed)).select(
        *_PLACE,
        *(
            F.when(whole, F.col(f"{name}_bytes")).otherwise(F.col(name).cast("binary")).alias(name)
            for name in written
        ),
        "unparsed",
        FLAW,
        *_ORIGIN,
    )


def _read_json(spark: SparkSession, paths: Sequence[str], *, has_place: bool) -> DataFrame:
    """Read JSON Lines; a column that some line has is null in the lines that lack it.

    Raises:
        InputNotRecognizedError: A required column is in no line.
    """
    lines = _lines(spark, paths).where(F.trim("line") != "")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "corrupt"}
    read = lines.withColumn("fields", F.from_json("line", _JSON_SCHEMA, options))
    there = _json_columns(read)
    if not there >= set(REQUIRED):
        named = set.intersection(*(columns_of_folders(path) for path in paths))
        known = _json_keys(lines) | there | named
        check_columns(", ".join(paths), known, has_place=has_place)
    fields = read.select("file", "line", "fields.*")
    is_object = F.ltrim("line").startswith("{") & F.col("corrupt").isNull()
    flawed = fields.withColumn("flaw", F.when(~is_object, NOT_JSON))
    return flawed.withColumn("row", F.lit(None).cast("long")).drop("corrupt")


def _lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return the lines of files, and the file of each; empty ones among them."""
    hidden = [path for path in paths if _is_hidden(path)]
    shown = [path for path in paths if not _is_hidden(path)]
    found = []
    if shown:
        text = _reader(spark).text([*map(for_spark, shown)])
        found.append(
            text.select(F.col("value").alias("line"), F.col("_metadata.file_path").alias("file"))
        )
    if hidden:

        @on_worker
        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for path in batch.column(0).to_pylist():
                    yield from _lines_of_file(path)

        files = spark.createDataFrame([(path,) for path in hidden], "path string")
        files = files.repartition(len(hidden))
        found.append(files.mapInArrow(read, "line string, file string"))
    return reduce(lambda one, other: one.unionByName(other), found)


def _reader(spark: SparkSession) -> DataFrameReader:
    """Return a reader to whom a file that is gone or damaged is an error, whatever a session says.

    Either would leave out the rows of that file in silence.
    """
    return spark.read.options(ignoreMissingFiles=False, ignoreCorruptFiles=False)


def _json_columns(read: DataFrame) -> set[str]:
    """Return the columns of which the first lines have values."""
    seen = read.limit(_LOOKED_AT).agg(
        *(F.max(F.col(f"fields.{name}").isNotNull()).alias(name) for name in _JSON_FIELDS)
    )
    first = seen.first()
    return {name for name in _JSON_FIELDS if first is not None and first[name]}


def _json_keys(lines: DataFrame) -> set[str]:
    """Return the names that any line has, whatever their values."""
    keys = F.explode(F.json_object_keys("line")).alias("name")
    return {str(row["name"]) for row in lines.select(keys).distinct().limit(_LOOKED_AT).collect()}


def _read_parquet(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    for path in paths:
        if _is_hidden(path):
            raise InputNotRecognizedError(
                f"{path}: Spark reads no Parquet whose name begins with _: give it another name"
            )
    frame = _reader(spark).parquet(*map(for_spark, paths))
    wanted = [name for name in _JSON_FIELDS if name in frame.columns]
    origin = {"file": F.col("_metadata.file_path"), "row": F.col("_metadata.row_index") + 1}
    return frame.select(
        *wanted,
        *(column.alias(name) for name, column in origin.items()),
        *(F.lit(None).cast("string").alias(name) for name in ("flaw", "line")),
    )


def _read_avro(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Read Avro container files, one task a file: Spark's own reader is a jar it does not ship."""

    @on_worker
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from _avro_batches(path)

    files = spark.createDataFrame([(path,) for path in paths], "path string")
    rows = files.repartition(len(paths)).mapInArrow(read, ROWS_SCHEMA)
    none = (F.lit(None).cast("string").alias(name) for name in ("flaw", "line"))
    return rows.select("*", *none)


def _avro_batches(path: str) -> Iterator[pa.RecordBatch]:
    import fastavro  # noqa: PLC0415 - only where there is Avro

    schema = pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.string()),
            ("offset", pa.string()),
            ("timestamp", pa.int64()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("file", pa.string()),
            ("row", pa.int64()),
        ]
    )
    with SourceFile.opened(path) as stream:
        rows: list[dict[str, object]] = []
        for place, row in enumerate(fastavro.reader(stream), 1):
            rows.append(_avro_row(cast("dict[str, object]", row), path, place))
            if len(rows) == _AVRO_ROWS:
                yield pa.RecordBatch.from_pylist(rows, schema)
                rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema)


def _avro_row(row: dict[str, object], path: str, place: int) -> dict[str, object]:
    return {
        **{name: _text(row.get(name)) for name in ("topic", "partition", "offset")},
        **{name: _bytes(row.get(name)) for name in ("key", "value")},
        "timestamp": _avro_milliseconds(row.get("timestamp")),
        "file": path,
        "row": place,
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _bytes(value: object) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def _avro_milliseconds(value: object) -> int | None:
    """Milliseconds of a timestamp that the Avro logical type has already made a datetime."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, datetime):
        return int(value.timestamp() * 1000)
    message = f"archived rows with a timestamp of type {type(value).__name__} cannot be read"
    raise InputUnreadableError(message)


def raw_records(rows: pa.RecordBatch) -> RawRecords:
    """Archived rows as raw records: no batch says anything about them.

    Args:
        rows: ``offset, timestamp`` (milliseconds), ``key, value`` (binary), in log order.
    """
    key, value = _spans(rows["key"]), _spans(rows["value"])
    data = np.concatenate([key[0], value[0]])
    size = rows.num_rows
    return RawRecords(
        data=data,
        batches=_NO_BATCH,
        batch=np.zeros(size, np.int32),
        offset=rows["offset"].to_numpy(),
        timestamp=rows["timestamp"].fill_null(-1).to_numpy(zero_copy_only=False),
        record_bytes=np.zeros(size, np.int32),
        key=Spans(key[1], key[2]),
        value=Spans(np.where(value[2] < 0, 0, value[1] + key[0].size), value[2]),
    )


def _spans(
    column: pa.Array,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Bytes of a binary column, and the start and length of each value in them (-1 is null)."""
    _, offsets, data = column.cast(pa.binary()).buffers()
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    start, length = bounds[:-1].astype(np.int64), np.diff(bounds).astype(np.int64)
    null = column.is_null().to_numpy(zero_copy_only=False)
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return content, np.where(null, 0, start), np.where(null, -1, length)


def _check_files(paths: Iterable[str], file_format: str, *, has_place: bool = False) -> None:
    """Refuse files that lack a column: each says which it has.

    Args:
        paths: Of Parquet or Avro.
        file_format: Which of the two.
        has_place: The topic and the partition are known otherwise.

    Raises:
        InputNotRecognizedError: One lacks a column.
        InputUnreadableError: One cannot be read.
    """
    for path in paths:
        try:
            found = _of_avro(path) if file_format == "avro" else _of_parquet(path)
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise InputUnreadableError(f"{path} cannot be read: {error!s:.200}") from error
        check_columns(path, {*found, *columns_of_folders(path)}, has_place=has_place)


def _of_parquet(path: str) -> list[str]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where there is Parquet

    filesystem, name = open_location(path)
    return list(pq.read_schema(name, filesystem=filesystem).names)


def _of_avro(path: str) -> list[str]:
    import fastavro  # noqa: PLC0415 - only where there is Avro

    filesystem, name = open_location(path)
    with filesystem.open_input_file(name) as stream:
        schema = fastavro.reader(stream).writer_schema
    fields = schema.get("fields", ()) if isinstance(schema, dict) else ()
    return [str(each["name"]) for each in fields]


def _is_hidden(path: str) -> bool:
    """Return whether Spark takes a file for none of data."""
    return base_name(path).startswith(("_", "."))


def _lines_of_file(path: str) -> Iterator[pa.RecordBatch]:
    """Yield the lines of a file, unpacked where its name says that it is packed.

    Args:
        path: A local path or a URI.

    Returns:
        `line` and `file`, some thousands together; bytes that are no UTF-8 are replaced.
    """
    rest = b""
    packed = "gzip" if path.endswith(".gz") else None
    with SourceFile.opened(path) as file, pa.input_stream(file, compression=packed) as stream:
        while block := stream.read(_BLOCK):
            whole, newline, last = (rest + block).rpartition(b"\n")
            rest = last
            if newline:
                yield _batch(whole, path)
    if rest:
        yield _batch(rest, path)


def _batch(content: bytes, path: str) -> pa.RecordBatch:
    text = content.decode("utf-8-sig", "replace")
    lines = pc.split_pattern(pa.array([text]), "\n").flatten()
    lines = pc.replace_substring_regex(lines, "\r$", "")
    files = pa.repeat(pa.scalar(path, pa.string()), len(lines))
    return pa.RecordBatch.from_arrays([lines, files], ["line", "file"])
