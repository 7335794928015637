"""The second door: archived raw rows, as Spark's Kafka source gives them.

Such rows have no batches: producer ids, control records and leader epochs are not in them, so
transactions cannot be told apart and elections leave no trace. The manifest says so.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from analytics.dump.records.raw_records import Batches, RawRecords, Spans
from analytics.dump.records.raw_rows_encoding import BINARY, column_encoding, parsed
from analytics.errors import InputNotRecognizedError, InputUnreadableError
from analytics.spark_worker import on_worker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame, SparkSession

REQUIRED = ("key", "value", "topic", "partition", "offset")
ROWS_SCHEMA = "topic string, partition int, offset long, timestamp long, key binary, value binary"
_PLACE = ("topic", "partition", "offset", "timestamp")
_AVRO_ROWS = 1 << 14
_JSON_SCHEMA = (
    "key string, value string, topic string, partition int, offset long, timestamp string"
)


def read_raw_rows(
    spark: SparkSession, paths: Sequence[str], file_format: str, encoding: str | None = None
) -> DataFrame:
    """Read archived rows of the internal topics.

    Args:
        spark: The session.
        paths: Files or folders, all of one format.
        file_format: ``parquet``, ``json`` (lines) or ``avro``.
        encoding: How keys and values are written; None takes text for base64 and bytes as they are.

    Returns:
        ``topic, partition, offset, timestamp`` (milliseconds, -1 where there is none),
        ``key, value`` (binary), and ``unparsed``: what is not text of the encoding (null where all
        is); key and value are then as they were found.

    Raises:
        InputNotRecognizedError: A required column is missing.
    """
    if file_format == "avro":
        frame = _read_avro(spark, paths)
    elif file_format == "json":
        frame = spark.read.schema(_JSON_SCHEMA).json(list(paths))
    else:
        frame = spark.read.parquet(*paths)
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        message = (
            f"{', '.join(paths)}: archived rows need the columns of Spark's Kafka source; "
            f"missing: {', '.join(missing)}; found: {', '.join(frame.columns)}"
        )
        raise InputNotRecognizedError(message)
    return _parsed(frame, encoding)


def read_keys(
    spark: SparkSession, paths: Sequence[str], file_format: str, topics: Sequence[str], most: int
) -> list[bytes]:
    """Return some keys of archived rows as they are stored, bytes or text."""
    rows = read_raw_rows(spark, paths, file_format, BINARY)
    some = rows.where(rows["topic"].isin(*topics) & rows["key"].isNotNull()).limit(most)
    return [bytes(row.key) for row in some.select("key").collect()]


def _parsed(frame: DataFrame, encoding: str | None) -> DataFrame:
    """Return the columns of archived rows, key and value as the bytes they stand for."""
    plain = frame.select(
        F.col("topic").cast("string").alias("topic"),
        F.col("partition").cast("int").alias("partition"),
        F.col("offset").cast("long").alias("offset"),
        _milliseconds(frame).alias("timestamp"),
        "key",
        "value",
    )
    written = {name: column_encoding(frame, name, encoding) for name in ("key", "value")}
    if set(written.values()) == {BINARY}:
        unparsed = F.lit(None).cast("string")
        return plain.select(*_PLACE, *(F.col(name).cast("binary") for name in written)).withColumn(
            "unparsed", unparsed
        )
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
    )


def _milliseconds(frame: DataFrame) -> Column:
    if "timestamp" not in frame.columns:
        return F.lit(-1).cast("long")
    column, kind = F.col("timestamp"), frame.schema["timestamp"].dataType
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        known = F.unix_millis(column.cast("timestamp"))
    elif isinstance(kind, T.StringType):
        number = F.try_to_number(column, F.lit("S9999999999999999999")).cast("long")
        known = F.coalesce(number, F.unix_millis(F.try_to_timestamp(column)))
    else:
        known = column.cast("long")
    return F.coalesce(known, F.lit(-1).cast("long"))


def _read_avro(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Read Avro container files, one task a file: Spark's own reader is a jar it does not ship."""

    @on_worker
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from _avro_batches(path)

    files = spark.createDataFrame([(path,) for path in paths], "path string")
    return files.repartition(len(paths)).mapInArrow(read, ROWS_SCHEMA)


def _avro_batches(path: str) -> Iterator[pa.RecordBatch]:
    import fastavro  # noqa: PLC0415 - only where there is Avro

    from analytics.workspace import open_location  # noqa: PLC0415

    filesystem, name = open_location(path)
    schema = pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.int64()),
            ("key", pa.binary()),
            ("value", pa.binary()),
        ]
    )
    with filesystem.open_input_file(name) as stream:
        rows: list[dict[str, object]] = []
        for row in cast("Iterator[dict[str, object]]", fastavro.reader(stream)):
            missing = [each for each in REQUIRED if each not in row]
            if missing:
                message = f"{path}: archived rows lack {', '.join(missing)}"
                raise InputUnreadableError(message)
            rows.append({**row, "timestamp": _avro_milliseconds(row.get("timestamp"))})
            if len(rows) == _AVRO_ROWS:
                yield pa.RecordBatch.from_pylist(rows, schema)
                rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema)


def _avro_milliseconds(value: object) -> int:
    """Milliseconds of a timestamp that the Avro logical type has already made a datetime."""
    if value is None:
        return -1
    if isinstance(value, int):
        return value
    if isinstance(value, datetime):
        return int(value.timestamp() * 1000)
    message = f"archived rows with a timestamp of type {type(value).__name__} cannot be read"
    raise InputUnreadableError(message)


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
