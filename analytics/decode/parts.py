"""Parquet parts written by the task that decoded the rows, one file per table.

Spark's own Parquet writer would need one pass per table and a row-by-row hand-over; a task that
has Arrow batches in hand writes them about four times faster itself (``docs/decisions``). Every
table of a workspace exists, so that readers need no special case: one without rows has a part
without rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.decode.records.chunks import CONTROL_TABLE, UNDECODED_TABLE
from analytics.decode.records.tables import CONTROL_MARKERS, UNDECODED, decoded_schema
from analytics.workspace import Part, open_location
from schemas import all_record_types

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import TracebackType

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
        self._filesystem.create_dir(self._root, recursive=True)
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
    filesystem.create_dir(root, recursive=True)
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
