"""The job on Spark against Spark merely copying Parquet files of the same rows.

- `groupscope decode`'s job (recognise, plan, decode, write all tables, publish with a manifest)
  against Spark copying raw key/value rows, as its own Kafka source gives them, from Parquet to
  Parquet.
- The data source `kafka_dump` written to Parquet against Spark copying the same decoded rows.

All in one session on `local[2]`, warmed up, each contestant once a round.

To compare two branches: `python -m benchmarks spark` on each; the copies are Spark's own work
alone, so the ratios tell the branches apart.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from analytics.dump.records.segment_reader import read_segment
from benchmarks.data import Data, segments_in, size_of
from benchmarks.measure import Contestant, Times, interleaved, ratio, tree_cpu
from benchmarks.report import Figure, Report
from benchmarks.warm_session import commands_in
from groupscope import KafkaDump
from jobs.cli.console import Console
from jobs.spark.session import spark_session
from jobs.workspaces.decoding import decode_into

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    from analytics.dump.records.raw_records import RawRecords, Spans

_JOB, _COPY_RAW = "groupscope decode, the job", "Spark copies the raw rows"
_SOURCE, _COPY_DECODED = "data source to Parquet", "Spark copies the decoded rows"
_TABLE = "offset_commit"
# The JVM compiles what it runs often: the first rounds are not like the others.
_WARM_UP = 2


def run(data: Data) -> list[Report]:
    """Measure."""
    with spark_session(Console(quiet=True), master="local[2]") as spark:
        bench = _Bench(spark, data)
        return [bench.job(), bench.data_source()]


class _Bench:
    def __init__(self, spark: SparkSession, data: Data) -> None:
        self.spark = spark
        self.data = data
        self.raw = data.folder / "raw"
        self.workspace = data.folder / "workspace"
        self.decoded = self.workspace / "decoded" / _TABLE
        self.out = data.folder / "copy"

    def job(self) -> Report:
        records = write_raw_rows(self.data.dump, self.raw)
        self._decode()
        self._copy(self.raw)
        rows = sum(
            pq.read_metadata(part).num_rows for part in self.workspace.glob("decoded/*/*.parquet")
        )
        assert rows == records, f"{rows} rows of {records} records"
        assert _rows(self.out) == records
        ours = Contestant(_JOB, self._decode, tree_cpu)
        copy = Contestant(_COPY_RAW, lambda: self._copy(self.raw), tree_cpu)
        times = self._measured(ours, copy)
        report = Report(f"The job on local[2], {self._size()}; ratios of wall time")
        report.figures = [
            Figure(
                "of the time of Spark copying raw rows",
                ratio(times[_JOB].wall, times[_COPY_RAW].wall),
                at_most=1.0,
                aim=0.85,
            ),
            Figure("the same in processor time", ratio(times[_JOB].cpu, times[_COPY_RAW].cpu)),
        ]
        report.add_times(times, records, size_of(self.data.dump))
        return report

    def data_source(self) -> Report:
        self.spark.dataSource.register(KafkaDump)
        self._read_source()
        rows, expected = _rows(self.decoded), _sums(self.decoded)
        assert (_rows(self.out), _sums(self.out)) == (rows, expected)
        self._copy(self.decoded)
        assert (_rows(self.out), _sums(self.out)) == (rows, expected)
        source = Contestant(_SOURCE, self._read_source, tree_cpu)
        copy = Contestant(_COPY_DECODED, lambda: self._copy(self.decoded), tree_cpu)
        times = self._measured(source, copy)
        report = Report(f"The data source on local[2], {self._size()}; ratios of wall time")
        report.figures = [
            Figure(
                "of the time of Spark copying decoded rows",
                ratio(times[_SOURCE].wall, times[_COPY_DECODED].wall),
                at_most=1.5,
            ),
            Figure(
                "the same in processor time", ratio(times[_SOURCE].cpu, times[_COPY_DECODED].cpu)
            ),
        ]
        report.add_times(times, rows, size_of(self.data.dump))
        return report

    def _measured(self, *contestants: Contestant) -> dict[str, Times]:
        interleaved(contestants, min(_WARM_UP, self.data.rounds))
        return interleaved(contestants, self.data.rounds)

    def _decode(self) -> None:
        with commands_in(self.spark):
            decode_into(str(self.workspace), Console(quiet=True), inputs=[str(self.data.dump)])

    def _copy(self, rows: Path) -> None:
        self.spark.read.parquet(str(rows)).write.mode("overwrite").parquet(str(self.out))

    def _read_source(self) -> None:
        frame = (
            self.spark.read.format("kafka_dump").option("table", _TABLE).load(str(self.data.dump))
        )
        frame.write.mode("overwrite").parquet(str(self.out))

    def _size(self) -> str:
        segments = segments_in(self.data.dump)
        return f"{len(segments)} segments, {size_of(self.data.dump) / 1e6:,.0f} MB"


def write_raw_rows(dump: Path, folder: Path) -> int:
    """Write a dump's records with the columns of Spark's Kafka source; returns how many."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    records = 0
    for number, path in enumerate(segments_in(dump)):
        topic, _, partition = path.parent.name.rpartition("-")
        chunks = [each.records for each in read_segment(path)]
        tables = [_raw_rows(each, topic, int(partition)) for each in chunks]
        table = pa.concat_tables(tables)
        pq.write_table(table, folder / f"part-{number:05d}.parquet", compression="snappy")
        records += table.num_rows
    return records


def _raw_rows(records: RawRecords, topic: str, partition: int) -> pa.Table:
    count = records.offset.size
    return pa.table(
        {
            "key": pa.array(_contents(records.data, records.key), pa.binary()),
            "value": pa.array(_contents(records.data, records.value), pa.binary()),
            "topic": pa.repeat(pa.scalar(topic), count),
            "partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
            "offset": pa.array(records.offset),
            "timestamp": pa.array(records.timestamp * 1000).view(pa.timestamp("us", "UTC")),
            "timestampType": pa.repeat(pa.scalar(0, pa.int32()), count),
        }
    )


def _contents(data: NDArray[np.uint8], spans: Spans) -> list[bytes | None]:
    raw = data.tobytes()
    return [
        raw[start : start + size] if size >= 0 else None
        for start, size in zip(spans.start.tolist(), spans.length.tolist(), strict=True)
    ]


def _rows(folder: Path) -> int:
    return sum(pq.read_metadata(part).num_rows for part in folder.glob("*.parquet"))


def _sums(folder: Path) -> list[int]:
    """Return sums over numbers and over lengths of text, key and value among them."""
    columns = {name: ds.field(name) for name in ("offset", "partition", "record_bytes")}
    columns |= {
        "committed": ds.field("value", "offset"),
        "group": pc.binary_length(ds.field("key", "group")),
        "metadata": pc.binary_length(ds.field("value", "metadata")),
    }
    table = ds.dataset(sorted(folder.glob("*.parquet"))).to_table(columns=columns)
    return [pc.sum(column.cast(pa.int64())).as_py() for column in table.columns]
