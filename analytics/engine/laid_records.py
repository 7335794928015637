"""Records of a large dump laid out by bucket: a file is read once, whatever the number of buckets.

What is written lies in the staging folder, as Arrow files that are quick to write and to read, and
goes with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.engine.cut_tables import IN_BUCKETS, Cut, tables_of
from analytics.replay.log.arrow_rows import polars_rows
from analytics.tables.buckets import BucketFiles
from analytics.tables.record_keys import key_hash
from analytics.tables.record_reader import RecordFile
from schemas import record_types

if TYPE_CHECKING:
    from analytics.tables.buckets import Bucket

TASK_BYTES: Final = 8 << 20
_ROW: Final = "row"
_PLACE: Final = ("topic", "partition", "offset", "timestamp", "key")
"""What tells whether a record counts, and its bucket."""


@dataclass(frozen=True)
class RecordLayout:
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

    def run(self, number: int) -> str:
        """Lay out the files of one task; return what the names of this attempt's files end with."""
        attempt = uuid.uuid4().hex
        for index, each in enumerate(self.tasks[number]):
            topic = _topic_of(each.table)
            bucket = _bucket_of(each.table, topic, self.buckets)
            with BucketFiles(self.place, each.table, f"{number}-{index}-{attempt}") as files:
                for rows in self.cut.reader.batches(each):
                    placed = polars_rows(rows.select(_PLACE)).with_row_index(_ROW)
                    kept = self.cut.cut_rows(each.table, placed.filter(pl.col("topic") == topic))
                    is_whole = kept.height == rows.num_rows
                    counting = rows if is_whole else rows.take(kept[_ROW].to_arrow())
                    files.add_rows(counting, kept.select(bucket).to_series().to_numpy())
        return attempt


def record_layout(cut: Cut, buckets: Sequence[Bucket], place: str) -> RecordLayout:
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
    return RecordLayout(cut, tasks, buckets, place)


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
