"""Rows of tables as tasks of Spark read them: of a workspace's files, or handed to them.

A reader and its partitions travel to the tasks: what is heavy is imported where it is used.

Decoded rows of segments as tasks of Spark read them: one table, without files between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyarrow import fs
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition

from analytics.decode.tables import LABEL
from analytics.decode.tasks import Settings, SliceReport, decode_slice, packed
from analytics.decode.workload import packed_sizes
from analytics.dump.files.model import Slice
from analytics.errors import ReadFailedError
from analytics.locations import open_location

FILE_BYTES: Final = 32 << 20
"""So many bytes of Parquet are a task."""
PIECE_BYTES: Final = 8 << 20
"""So many bytes of rows are handed to a task."""


class FilesPartition(InputPartition):
    """Some files of a table, read by one Spark task.

    Attributes:
        files: Their locations.
    """

    def __init__(self, files: Sequence[str]) -> None:
        super().__init__(files[0])
        self.files = tuple(files)


class FilesReader(DataSourceReader):
    """Reads Parquet files of a table, in tasks."""

    def __init__(self, schema: pa.Schema, files: Sequence[tuple[str, int]]) -> None:
        """Name the files.

        Args:
            schema: The columns that are wanted, as Spark is told of them.
            files: The location of each, and how many bytes it has.
        """
        self.schema = schema
        self.files = list(files)

    def partitions(self) -> Sequence[InputPartition]:
        """Pack small files together; Spark wants at least one partition."""
        tasks = packed_sizes([size for _, size in self.files], FILE_BYTES)
        filled = [FilesPartition([self.files[number][0] for number in task]) for task in tasks]
        return filled or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some files.

        Raises:
            ReadFailedError: The machine that runs the task does not see a file.
            WorkspaceError: A file is damaged, or lacks a column.
        """
        from analytics.tables.parted_table import AS_THEY_ARE, PartedTable  # noqa: PLC0415 - heavy

        files = partition.files if isinstance(partition, FilesPartition) else ()
        for each in files:
            _check_seen(each)
            for rows in PartedTable(self.schema, [each], AS_THEY_ARE).scan():
                yield from rows.to_batches()


def _check_seen(file: str) -> None:
    """Raise where a file that was listed is not there: no row of it is taken for absent.

    Raises:
        ReadFailedError: It is not.
    """
    filesystem, path = open_location(file)
    if filesystem.get_file_info(path).type is not fs.FileType.File:
        raise ReadFailedError(
            f"{file} is not there: it was when the workspace was listed, so every machine that "
            f"runs tasks has to see that folder"
        )


class RowsPartition(InputPartition):
    """Some rows, handed to one Spark task.

    Attributes:
        content: The rows, as a stream of Arrow's.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__(None)
        self.content = content


class RowsReader(DataSourceReader):
    """Hands rows to tasks, which read nothing."""

    def __init__(self, rows: pa.Table) -> None:
        self._pieces = [_written(each) for each in _pieces_of(rows)]

    def __getstate__(self) -> dict[str, object]:
        """Leave out the rows: tasks have those of their partitions."""
        return {**self.__dict__, "_pieces": []}

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for some megabytes of rows; Spark wants at least one."""
        return [RowsPartition(each) for each in self._pieces] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        if isinstance(partition, RowsPartition):
            with pa.ipc.open_stream(partition.content) as stream:
                yield from stream


def _pieces_of(rows: pa.Table) -> Iterator[pa.Table]:
    most = max(1, rows.num_rows * PIECE_BYTES // max(rows.nbytes, 1))
    for first in range(0, rows.num_rows, most):
        yield rows.slice(first, most)


def _written(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write_table(rows.combine_chunks())
    content: bytes = sink.getvalue().to_pybytes()
    return content


_PRUNING: dict[str, Callable[[Slice], object]] = {
    "topic": lambda each: each.topic,
    "partition": lambda each: each.partition,
    "copy": lambda each: each.copy,
}


class SlicePartition(InputPartition):
    """Some slices of segments, read by one Spark task."""

    def __init__(self, slices: list[Slice]) -> None:
        super().__init__(slices[0].segment.name)
        self.slices = slices


class SliceReader(DataSourceReader):
    """Yields one table's rows of each slice as Arrow batches."""

    def __init__(self, table: str, schema: pa.Schema, slices: list[Slice]) -> None:
        self.table = table
        self.schema = schema
        self.slices = slices

    def partitions(self) -> Sequence[InputPartition]:
        """Pack small segments together; Spark wants at least one partition."""
        tasks = packed(self.slices)
        filled = [SlicePartition([self.slices[number] for number in task]) for task in tasks]
        return filled or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Decode slices and keep one table."""
        settings, wanted = Settings("", digest=False), frozenset([self.table])
        for each in partition.slices if isinstance(partition, SlicePartition) else ():
            for decoded in decode_slice(each, settings, SliceReport(0), wanted):
                batch = decoded.batches.get(self.table)
                if batch is not None:
                    yield self._exact(batch)

    def _exact(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            column.dictionary_decode() if column.type == LABEL else column
            for column in (batch.column(name) for name in self.schema.names)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class FilteringSliceReader(SliceReader):
    """The same, which takes filters: a reader that has this method is refused where it may not."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Skip slices that a filter on topic, partition or copy rules out; Spark checks again."""
        for each in filters:
            if isinstance(each, EqualTo | In) and each.attribute[0] in _PRUNING:
                value = _PRUNING[each.attribute[0]]
                wanted = {each.value} if isinstance(each, EqualTo) else set(each.value)
                self.slices = [one for one in self.slices if value(one) in wanted]
            yield each
