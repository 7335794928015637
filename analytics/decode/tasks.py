"""The unit of a decode run: some slices of segments, decoded and written as Parquet parts."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.decode.chunks import (
    CONTROL_TABLE,
    DECODED,
    EVERYTHING,
    UNDECODED_TABLE,
    Decoded,
    RecordKind,
    decode_chunk,
)
from analytics.decode.frames import RowBuffer
from analytics.decode.tables import CONTROL_MARKERS, UNDECODED, Origin, decoded_schema
from analytics.decode.workload import packed_sizes
from analytics.dump.batches.headers import Headers
from analytics.dump.batches.segment_stats import SegmentStats
from analytics.dump.records.raw_records import take_records
from analytics.dump.records.segment_reader import SegmentReader
from analytics.errors import InputUnreadableError
from analytics.failed_reads import failed_here
from analytics.locations import is_uri, make_folder, open_location
from analytics.spark_tasks import run_tasks
from analytics.wire.columns import counted
from analytics.workspace import Part
from schemas import all_record_types

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from types import TracebackType

    from pyspark.sql import SparkSession

    from analytics.decode.selection import Selection
    from analytics.dump.batches.batch_bytes import Damage
    from analytics.dump.batches.segment_stats import SegmentSurvey
    from analytics.dump.files.model import Slice
    from analytics.dump.records.raw_records import RawRecords
    from analytics.dump.records.segment_reader import Summary
    from schemas.releases import FieldEvidence

# Parquet parts written by the task that decoded the rows, one file per table.
#
# Spark's own Parquet writer would need one pass per table and a row-by-row hand-over; a task that
# has Arrow batches in hand writes them about four times faster itself (``docs/decisions``). Every
# table of a workspace exists, so that readers need no special case: one without rows has a part
# without rows.

ROWS_PER_GROUP = 1 << 17
# What waits to fill a row group, all tables of a task together.
_BUFFERED_BYTES = 64 << 20
# What a reader may skip a part by, beside what grows: where hardly any record is in a transaction,
# a replay reads the few parts that have one.
_OFTEN_ALL_ALIKE = ("partition", "is_transactional", "is_tombstone", "producer_id")
# Values of a column that Arrow hands to its encoder together.
_VALUES_AT_A_TIME = 1 << 16
# Wide numbers of which a file has few different ones.
_FEW_VALUES = frozenset({"producer_id"})


class _TableWriter:
    """One file; a row group for all that waited."""

    def __init__(self, path: str, writer: pq.ParquetWriter) -> None:
        self.path = path
        self.writer = writer
        self.waiting: list[pa.RecordBatch] = []
        self.rows = 0
        self.waiting_rows = 0
        self.waiting_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.waiting.append(batch)
        self.rows += batch.num_rows
        self.waiting_rows += batch.num_rows
        self.waiting_bytes += batch.get_total_buffer_size()

    def flush(self) -> None:
        if self.waiting:
            table = pa.Table.from_batches(self.waiting).unify_dictionaries()
            self.writer.write_table(table, row_group_size=table.num_rows)
        self.waiting, self.waiting_rows, self.waiting_bytes = [], 0, 0


class PartWriter:
    """Writes the parts of one attempt of one task into a folder of its own."""

    def __init__(self, location: str) -> None:
        self._filesystem, self._root = open_location(location)
        self._tables: dict[str, _TableWriter] = {}

    def __enter__(self) -> Self:
        """Start with an empty folder."""
        make_folder(self._filesystem, self._root)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files, finished or not."""
        for table in self._tables.values():
            table.writer.close()

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Append rows to a table ("decoded/offset_commit")."""
        writer = self._tables.get(table)
        if writer is None:
            writer = self._tables[table] = self._open(table, batch.schema)
        writer.add(batch)
        if writer.waiting_rows >= ROWS_PER_GROUP:
            writer.flush()
        elif sum(each.waiting_bytes for each in self._tables.values()) > _BUFFERED_BYTES:
            max(self._tables.values(), key=lambda each: each.waiting_bytes).flush()

    def finish(self) -> list[Part]:
        """Write what waits and name the files."""
        for table in self._tables.values():
            table.flush()
        return [Part(name, each.path, each.rows) for name, each in sorted(self._tables.items())]

    def _open(self, table: str, schema: pa.Schema) -> _TableWriter:
        path = f"{self._root}/{table.replace('/', '.')}.parquet"
        growing, others = _by_encoding(schema)
        writer = pq.ParquetWriter(
            path,
            schema,
            filesystem=self._filesystem,
            compression="snappy",
            use_dictionary=others,
            column_encoding=dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
            # The least and the most of anything else say nothing about a part of a log.
            write_statistics=[*growing, *_OFTEN_ALL_ALIKE],
            write_batch_size=_VALUES_AT_A_TIME,
            # Readers see the plain types: text, not our in-memory dictionaries.
            store_schema=False,
        )
        return _TableWriter(path, writer)


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
    make_folder(filesystem, root)
    parts = []
    for name, schema in table_schemas().items():
        table = f"{prefix}/{name}"
        if table not in tables_with_rows:
            path = f"{root}/{table.replace('/', '.')}.empty.parquet"
            pq.write_table(schema.empty_table(), path, filesystem=filesystem, store_schema=False)
            parts.append(Part(table, path, 0))
    return parts


def _by_encoding(schema: pa.Schema) -> tuple[list[str], list[str]]:
    """Part leaf columns into those of numbers that grow from row to row, and all others.

    Offsets, positions and times are hardly ever equal: a dictionary of them takes half the time of
    writing a file and half its bytes, where their differences take next to nothing.
    """
    growing: list[str] = []
    others: list[str] = []
    for path, type_ in (leaf for each in schema for leaf in _leaves(each.name, each.type)):
        grows = type_ == pa.int64() or pa.types.is_timestamp(type_)
        (growing if grows and path not in _FEW_VALUES else others).append(path)
    return growing, others


def _leaves(path: str, type_: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the columns that Parquet has for a field, by their path in the file."""
    if pa.types.is_struct(type_):
        for each in type_:
            yield from _leaves(f"{path}.{each.name}", each.type)
    elif pa.types.is_list(type_):
        yield from _leaves(f"{path}.list.element", type_.value_type)
    else:
        yield path, type_


# A task runs anywhere; what it returns is small: which parts it wrote, and where every byte and
# every record of its slices went.

# A small segment is not worth a task, nor a file per table, of its own.
TASK_BYTES = 64 << 20


@dataclass(frozen=True)
class Settings:
    """What all tasks of a run share.

    Attributes:
        staging: The folder that tasks write into.
        selection: What is decoded of what is read.
        check_crc: Sum over every batch.
        digest: Of every file.
        within: The folder of the workspace that the tables are for; empty is the workspace itself.
    """

    staging: str
    selection: Selection = EVERYTHING
    check_crc: bool = True
    digest: bool = True
    within: str = ""

    def folder(self, line: str) -> str:
        """Return where in a workspace the tables of a line are."""
        top = f"{self.within}/" if self.within else ""
        return f"{top}diverged/{line}/decoded" if line else f"{top}decoded"

    def attempt(self, name: str, number: int) -> str:
        """Return a folder for one attempt of one task."""
        return f"{self.staging}/{name}-{number:05d}-{uuid.uuid4().hex[:8]}"


@dataclass
class SliceReport:
    """Where the bytes and records of one slice went.

    ``left_out`` counts records by the rule that left them out, ``undecoded`` those that could not
    be decoded by their reason; ``survey`` is what the headers said. ``record_bytes`` are the bytes
    of records by what became of them, as in `Decoded`; so are ``kinds_left_out`` and
    ``fields_left_out``, what those that a filter left out show of the release. ``unreadable`` says
    why the system refused to read on, where it did. ``sha256`` is of the bytes up to the end of the
    last batch, where nothing is damaged.
    """

    number: int
    summary: Summary | None = None
    survey: SegmentSurvey | None = None
    kinds: Counter[RecordKind] = field(default_factory=Counter)
    control_markers: int = 0
    undecoded: Counter[str] = field(default_factory=Counter)
    record_bytes: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unreadable: str | None = None
    kinds_left_out: set[RecordKind] = field(default_factory=set)
    fields_left_out: set[FieldEvidence] = field(default_factory=set)
    sha256: str | None = None

    @property
    def records(self) -> int:
        """Records that are accounted for."""
        return (
            self.kinds.total()
            + self.control_markers
            + self.undecoded.total()
            + self.left_out.total()
        )

    @property
    def is_sound(self) -> bool:
        """Whether all that lies in the slice is batches that can be believed, but for a tail."""
        summary = self.summary
        return (
            summary is not None
            and self.unreadable is None
            and bool(summary.batches)
            and not summary.damages
            and not summary.implausible_epochs
        )

    @property
    def is_empty(self) -> bool:
        """Whether the slice has nothing of which a table could have a row."""
        summary = self.summary
        nothing = summary is not None and not (summary.batches or summary.damages)
        return nothing and self.unreadable is None

    @property
    def fates(self) -> Counter[str]:
        """Records by what became of them: the names of `record_bytes`."""
        into = {
            DECODED: self.kinds.total(),
            CONTROL_TABLE: self.control_markers,
            UNDECODED_TABLE: self.undecoded.total(),
        }
        return self.left_out + Counter(into)

    def counted(self, decoded: Decoded) -> Decoded:
        """Add what became of a chunk, and pass it on."""
        self._add(decoded)
        markers = decoded.batches.get("control_markers")
        self.control_markers += 0 if markers is None else markers.num_rows
        return decoded

    def add(self, other: SliceReport) -> None:
        """Add what became of the records of another report."""
        self._add(other)
        self.control_markers += other.control_markers

    def _add(self, other: Decoded | SliceReport) -> None:
        self.kinds += other.kinds
        self.left_out += other.left_out
        self.undecoded += other.undecoded
        self.record_bytes += other.record_bytes
        self.kinds_left_out |= other.kinds_left_out
        self.fields_left_out |= other.fields_left_out


@dataclass(frozen=True)
class TaskReport:
    """Parts written by the attempt that succeeded, and one report a slice."""

    number: int
    parts: list[Part]
    slices: list[SliceReport]


def packed(slices: Sequence[Slice], task_bytes: int = TASK_BYTES) -> list[list[int]]:
    """Pack slices, in order, into tasks of about ``task_bytes``; the result is slice numbers."""
    return packed_sizes([each.to_position - each.from_position for each in slices], task_bytes)


def decode_here(slices: Sequence[Slice], settings: Settings) -> list[TaskReport]:
    """Decode all slices in this process, in the tasks that Spark would run."""
    return [
        run_task(number, [(index, slices[index]) for index in indices], settings)
        for number, indices in enumerate(packed(slices))
    ]


def decode_on_spark(
    spark: SparkSession,
    slices: Sequence[Slice],
    settings: Settings,
    task_bytes: int = TASK_BYTES,
) -> list[TaskReport]:
    """Decode all slices; returns the reports of the attempts that succeeded, in task order.

    Parts of other attempts (failed, repeated, speculative) stay in the staging folder and are
    never published.
    """
    tasks = packed(slices, task_bytes)
    # A worker's own folder is another one.
    slices = of_absolute_paths(slices)

    def run(number: int) -> TaskReport:
        return run_task(number, [(index, slices[index]) for index in tasks[number]], settings)

    return run_tasks(spark, len(tasks), run)


def of_absolute_paths(slices: Sequence[Slice]) -> list[Slice]:
    """Return slices whose files are found from any folder."""

    def absolute(path: str) -> str:
        return path if is_uri(path) else str(Path(path).absolute())

    return [
        replace(each, segment=replace(each.segment, path=absolute(each.segment.path)))
        for each in slices
    ]


def run_task(number: int, slices: Sequence[tuple[int, Slice]], settings: Settings) -> TaskReport:
    """Decode slices and write their rows; each attempt writes into a folder of its own.

    Raises:
        ReadFailedError: A file cannot be read that whoever listed the dump could open.
    """
    with PartWriter(settings.attempt("task", number)) as writer:
        reports = [_run_slice(index, each, settings, writer) for index, each in slices]
        return TaskReport(number, writer.finish(), reports)


def _run_slice(number: int, each: Slice, settings: Settings, writer: PartWriter) -> SliceReport:
    report = SliceReport(number)
    prefix = settings.folder(each.line)
    try:
        for decoded in decode_slice(each, settings, report):
            for table, batch in decoded.batches.items():
                writer.write(f"{prefix}/{table}", batch)
    except InputUnreadableError as error:
        if each.unreadable is None:
            raise failed_here(error) from error
        # One file that nobody can read must not cost the others.
        report.unreadable = each.unreadable
    if report.is_sound and report.summary is not None:
        report.sha256 = report.summary.sha256_of_batches
    return report


def decode_slice(
    each: Slice,
    settings: Settings,
    report: SliceReport,
    tables: frozenset[str] | None = None,
) -> Iterator[Decoded]:
    """Decode one slice chunk by chunk, counting into the report."""
    origin = Origin(each.topic, each.partition, each.copy, each.segment.name)
    reader = SegmentReader(each, check_crc=settings.check_crc, digest=settings.digest)
    stats = SegmentStats(each.segment)
    damages: list[Damage] = []
    row_buffer = RowBuffer()
    decode = partial(decode_chunk, origin=origin, selection=settings.selection, tables=tables)

    def those_that_wait() -> Iterator[Decoded]:
        if row_buffer.parts:
            yield report.counted(decode(row_buffer.release(), []))

    try:
        for chunk in reader.chunks():
            stats.add(Headers.of_batches(chunk.records.batches))
            damages += chunk.damages
            records = select(each, chunk.records, report)
            yield report.counted(decode(records, chunk.damages, row_buffer=row_buffer))
            if row_buffer.is_full:
                yield from those_that_wait()
    except InputUnreadableError:
        # Where the disk refuses half-way: what was read until then is accounted for.
        yield from those_that_wait()
        raise
    else:
        yield from those_that_wait()
    finally:
        report.summary = reader.summary
        survey = stats.survey(damages, reader.summary.tail)
        # Headers give the last time of a batch; the records have given the first.
        report.survey = replace(survey, first_timestamp=reader.summary.min_timestamp)


def select(each: Slice, records: RawRecords, report: SliceReport) -> RawRecords:
    """Leave out the records that a named rule of the slice leaves out, and count them."""
    if not each.rules or not records.offset.size:
        return records
    first = np.array([rule[0] for rule in each.rules])
    end = np.array([rule[1] for rule in each.rules])
    number = np.searchsorted(first, records.offset, "right") - 1
    hit = (number >= 0) & (records.offset < end[number])
    for place, count in counted(number[hit]):
        rule = each.rules[place][2]
        report.left_out[rule] += count
        weight = records.record_bytes[hit & (number == place)].sum(dtype=np.int64)
        report.record_bytes[rule] += int(weight)
    return take_records(records, np.flatnonzero(~hit)) if hit.any() else records
