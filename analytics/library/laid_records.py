"""Records of a large dump laid out by bucket: a file is read once, whatever the number of buckets.

What is written lies in the staging folder, as Arrow files that are quick to write and to read, and
goes with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl
from pyarrow import fs, ipc

from analytics.library.cut_tables import IN_BUCKETS, Cut, tables_of
from analytics.replay.log.arrow_rows import polars_rows
from analytics.tables.record_reader import RecordFile, key_hash
from analytics.workspace import open_location
from schemas import record_types

if TYPE_CHECKING:
    from analytics.tables.buckets import Bucket

TASK_BYTES: Final = 8 << 20
_BUCKET: Final = "_bucket"


@dataclass(frozen=True)
class Laying:
    """Lays records out.

    Attributes:
        cut: What is read.
        tasks: Files that are read, task by task.
        buckets: Into which they are laid.
        place: The folder for them.
    """

    cut: Cut
    tasks: Sequence[Sequence[RecordFile]]
    buckets: Sequence[Bucket]
    place: str

    def run(self, number: int) -> None:
        """Lay out the files of one task."""
        for index, each in enumerate(self.tasks[number]):
            with ExitStack() as stack:
                target = _Target(f"{self.place}/%d/{each.table}", f"{number}-{index}", stack)
                topic = _topic_of(each.table)
                bucket = _bucket_of(each.table, topic, self.buckets)
                for rows in self.cut.reader.batches(each):
                    frame = polars_rows(rows).filter(pl.col("topic") == topic)
                    kept = self.cut.kept(each.table, frame).with_columns(bucket.alias(_BUCKET))
                    told = kept.partition_by(_BUCKET, as_dict=True, include_key=False)
                    for (where,), part in told.items():
                        target.add(where, part)


def laying(cut: Cut, buckets: Sequence[Bucket], place: str) -> Laying:
    """Return the work of laying all records out."""
    tasks: list[list[RecordFile]] = [[]]
    size = 0
    for name in sorted(tables_of(IN_BUCKETS)):
        for each in cut.reader.files(name):
            if tasks[-1] and size + each.size > TASK_BYTES:
                tasks.append([])
                size = 0
            tasks[-1].append(each)
            size += each.size
    return Laying(cut, tasks, buckets, place)


def laid(place: str, number: int, name: str) -> Iterator[pl.DataFrame]:
    """Yield the rows of a decoded table in a bucket, by the file that they are of."""
    filesystem, root = open_location(place)
    folder = fs.FileSelector(f"{root}/{number}/{name}", allow_not_found=True)
    for path in sorted(each.path for each in filesystem.get_file_info(folder)):
        with filesystem.open_input_file(path) as source:
            yield polars_rows(ipc.open_file(source).read_all())


class _Target:
    """Files that stay open while rows come, one for each bucket."""

    def __init__(self, folder: str, name: str, stack: ExitStack) -> None:
        self._folder, self._name, self._stack = folder, name, stack
        self._open: dict[int, ipc.RecordBatchFileWriter] = {}

    def add(self, bucket: int, rows: pl.DataFrame) -> None:
        told = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
        if bucket not in self._open:
            filesystem, folder = open_location(self._folder % bucket)
            filesystem.create_dir(folder, recursive=True)
            sink = filesystem.open_output_stream(f"{folder}/{self._name}.arrow")
            options = ipc.IpcWriteOptions(compression="lz4")
            writer = ipc.new_file(self._stack.enter_context(sink), told.schema, options=options)
            self._open[bucket] = self._stack.enter_context(writer)
        self._open[bucket].write_table(told)


def _topic_of(table: str) -> str:
    return next(
        topic
        for topic in IN_BUCKETS
        if any(kind.table == table for kind in record_types(topic).values())
    )


def _bucket_of(table: str, topic: str, buckets: Sequence[Bucket]) -> pl.Expr:
    """Return the number of the bucket that a record is in."""
    first: dict[int, int] = {}
    parts: dict[int, int] = {}
    rest = 0
    for number, each in enumerate(buckets):
        if each.topic != topic:
            continue
        if each.is_rest:
            rest = number
            continue
        for partition in each.partitions:
            first.setdefault(partition, number)
            parts[partition] = each.parts
    return _of(first, rest) + key_hash(table, topic) % _of(parts, 1)


def _of(numbers: Mapping[int, int], otherwise: int) -> pl.Expr:
    if not numbers:
        return pl.lit(otherwise, pl.Int64)
    return pl.col("partition").replace_strict(
        list(numbers), list(numbers.values()), default=otherwise, return_dtype=pl.Int64
    )
