"""Buckets: whole groups, or whole share partitions.

What follows the records of a group needs all of that group and of no other. So the records are laid
into buckets that fit into memory. Groups are divided by a hash of their names alone: whatever is
made of a bucket has rows of its groups and of no others, and its files say which these are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from zlib import crc32

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import fs, ipc

from analytics.decode.workload import SMALL_RECORDS
from analytics.locations import make_folder, open_location
from analytics.tables.record_keys import spread
from analytics.workspace import reading
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Arrow files of buckets: rows in any order are laid out so that each bucket is read by itself.

_ENDS: Final = ".arrow"
MOST_OPEN: Final = 400
"""So many files are open at the same time: systems allow a process a thousand."""


class BucketFiles(ExitStack):
    """Files that stay open while rows of a table come, one for each bucket.

    ``{place}/{bucket}/{table}/{turn}-{name}.arrow``; with several names several write at the same
    time. Where there are more buckets than files may be open, a bucket has a file of each turn.
    """

    def __init__(self, place: str, table: str, name: str = "rows") -> None:
        super().__init__()
        self._folder, self._name = f"{place}/%d/{table}", f"{name}{_ENDS}"
        self._open: dict[int, ipc.RecordBatchFileWriter] = {}
        self._turn = 0

    def add(self, rows: pl.DataFrame, bucket: pl.Expr) -> None:
        """Lay rows out; `bucket` is the number of each one's bucket."""
        numbers = rows.select(bucket).to_series().to_numpy()
        order = np.argsort(numbers, kind="stable")
        # In polars a text is moved by its view, once all are in one piece; here it is copied once.
        ordered = rows.rechunk()[order].to_arrow(compat_level=pl.CompatLevel.oldest())
        self._add_ordered(ordered, numbers[order])

    def add_rows(self, rows: pa.Table, numbers: NDArray[np.integer[Any]]) -> None:
        """Lay rows of Arrow out, each into the bucket of its number."""
        order = np.argsort(numbers, kind="stable")
        self._add_ordered(rows.combine_chunks().take(pa.array(order)), numbers[order])

    def _add_ordered(self, rows: pa.Table, numbers: NDArray[np.integer[Any]]) -> None:
        found, starts, counts = np.unique(numbers, return_index=True, return_counts=True)
        for bucket, start, count in zip(found, starts, counts, strict=True):
            self._write(int(bucket), rows.slice(int(start), int(count)))

    def _write(self, bucket: int, rows: pa.Table) -> None:
        if bucket not in self._open:
            if len(self._open) == MOST_OPEN:
                self.close()
                self._open.clear()
                self._turn += 1
            filesystem, root = open_location(self._folder % bucket)
            make_folder(filesystem, root)
            # Files are read in the order of their names.
            path = f"{root}/{self._turn:06}-{self._name}"
            sink = self.enter_context(filesystem.open_output_stream(path))
            writer = ipc.new_file(sink, rows.schema, options=ipc.IpcWriteOptions(compression="lz4"))
            self._open[bucket] = self.enter_context(writer)
        self._open[bucket].write_table(rows)


def buckets_in(place: str) -> list[int]:
    """Return the numbers of buckets that have files, of any attempt.

    Args:
        place: The folder of all buckets.
    """
    filesystem, root = open_location(place)
    with reading(place):
        folders = filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True))
    return sorted(int(each.base_name) for each in folders)


def rows_of_bucket(
    place: str,
    bucket: int,
    table: str,
    attempts: Collection[str] | None = None,
    *,
    share: tuple[int, int] = (0, 1),
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table in a bucket, by the file that they are in.

    Args:
        place: The folder of all buckets.
        bucket: Its number.
        table: The table.
        attempts: What names of files end with that count: those of tasks that came to their end.
            Others were tried twice, or at the same time on two machines. None counts all.
        share: Which of how many shares of the files is read.
    """
    filesystem, root = open_location(place)
    folder = fs.FileSelector(f"{root}/{bucket}/{table}", allow_not_found=True)
    paths = sorted(each.path for each in filesystem.get_file_info(folder))
    for path in paths:
        name = path.rpartition("/")[2]
        if attempts is not None and name.removesuffix(_ENDS).rpartition("-")[2] not in attempts:
            continue
        if crc32(name.encode()) % share[1] != share[0]:
            continue
        with reading(path), filesystem.open_input_file(path) as source:
            content = source.read()
        # Polars takes in many small batches twice as fast as Arrow does.
        yield pl.read_ipc(content)


# Files that say of which groups their rows are.

_LABEL: Final = "groupscope.groups"
_GROUP: Final = "group_id"
_WORDS: Final = re.compile(rb"(\d+) of (\d+)")


class GroupBucket(NamedTuple):
    """Some of all groups: those whose hash, divided by `parts`, leaves `part`."""

    part: int
    parts: int

    @classmethod
    def of_file(cls, metadata: Mapping[bytes, bytes] | None) -> Self | None:
        """Return of which groups a Parquet file says that all its rows are; None says nothing."""
        words = _WORDS.fullmatch((metadata or {}).get(_LABEL.encode(), b""))
        if words is None:
            return None
        found = cls(*map(int, words.groups()))
        return found if found.part < found.parts else None

    def label_of(self, rows: pl.DataFrame) -> dict[str, str]:
        """Return what a Parquet file says in its metadata of the groups of its rows.

        That is nothing where one is not of these: nobody would look for it in this file. A row of
        no group lies where a group without a name does.

        Args:
            rows: Those of the file; of what has no `group_id` nothing is said.
        """
        if _GROUP not in rows.columns:
            return {}
        # Rows of a group lie side by side: of each such run one is looked at.
        groups = rows.select(pl.col(_GROUP).rle().struct.field("value"))
        is_true = groups.select(self.has(pl.col("value")).all()).item()
        return {_LABEL: f"{self.part} of {self.parts}"} if is_true else {}

    def is_within(self, parts: int) -> bool:
        """Return whether all these groups are in one bucket of so many."""
        return self.parts % parts == 0

    def has(self, group: pl.Expr) -> pl.Expr:
        """Return whether a group is one of them."""
        return spread(group) % self.parts == self.part


MOST_ROWS: Final = SMALL_RECORDS
"""So many records are looked at in one go."""


@dataclass(frozen=True)
class Bucket:
    """Some of the records of an internal topic.

    Attributes:
        topic: The internal topic.
        partitions: The partitions that are meant, or with `is_rest` those that are not.
        is_rest: All partitions but those named.
        part: Which part of their keys.
        parts: Into how many parts their keys are divided, by a hash.
    """

    topic: str
    partitions: tuple[int, ...] = ()
    is_rest: bool = False
    part: int = 0
    parts: int = 1

    @property
    def is_first(self) -> bool:
        """Whether it also has what is not of a key: each such record is in one bucket."""
        return self.part == 0

    @property
    def groups(self) -> GroupBucket | None:
        """The groups that it has, whole and no others; None where that is told by more."""
        is_by_groups = self.topic == CONSUMER_OFFSETS and self.is_rest and not self.partitions
        return GroupBucket(self.part, self.parts) if is_by_groups and self.parts > 1 else None


def buckets(topic: str, records: Mapping[int, int], most: int = MOST_ROWS) -> list[Bucket]:
    """Lay the records of a topic into buckets.

    Groups are divided among all buckets, wherever they lie. Of share partitions small partitions of
    the topic share a bucket, a large one is divided by its keys; partitions that are not named are
    in the first.

    Args:
        topic: The internal topic.
        records: How many each partition has.
        most: So many a bucket shall have at most.
    """
    if topic == CONSUMER_OFFSETS:
        parts = max(-(-sum(records.values()) // most), 1)
        return [Bucket(topic, is_rest=True, part=part, parts=parts) for part in range(parts)]
    large = [number for number, count in records.items() if count > most]
    found = [
        Bucket(topic, (number,), part=part, parts=-(-records[number] // most))
        for number in sorted(large)
        for part in range(-(-records[number] // most))
    ]
    small = set(records) - set(large)
    _, *others = packed({number: records[number] for number in small}, most)
    found += [Bucket(topic, tuple(each)) for each in others]
    rest = tuple(sorted({number for each in others for number in each} | set(large)))
    return [Bucket(topic, rest, is_rest=True), *found]


def packed(counts: Mapping[int, int], at_once: int) -> Iterator[list[int]]:
    """Yield partitions that are read together: no more records than that, or one partition."""
    lot: list[int] = []
    held = 0
    for partition in sorted(counts):
        if lot and held + counts[partition] > at_once:
            yield lot
            lot, held = [], 0
        lot.append(partition)
        held += counts[partition]
    yield lot
