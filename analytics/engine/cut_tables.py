"""The decoded tables that a replay is made of: read when they are asked for, cut at the instant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow.compute as pc

from analytics.decode.records.chunks import CONTROL_TABLE, UNDECODED_TABLE
from analytics.replay.log.as_of import above_log_starts, cut_all, timeless_ends
from analytics.tables.buckets import Bucket, buckets
from schemas import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    record_types,
)

if TYPE_CHECKING:
    from analytics.replay.log.instants import AsOf
    from analytics.tables.record_reader import RecordReader

IN_BUCKETS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
"""Topics whose records are looked at bucket by bucket; the others are small, and read whole."""
_WHOLE: Final = (CLUSTER_METADATA, TRANSACTION_STATE)
_BYTES: Final = 400
"""A commit takes less of a log."""
_WITHOUT_TIME: Final = ("offset_commit", "group_metadata")


LaidOutRecords = Callable[[str], Iterable[pl.DataFrame]]
"""Yields the rows of a decoded table that were laid out for a bucket, cut already."""


def tables_of(topics: Sequence[str]) -> frozenset[str]:
    """Return the decoded tables of internal topics."""
    return frozenset(
        kind.table
        for topic in topics
        for kind in record_types(topic).values()
        if kind.read == "decode"
    )


@dataclass(frozen=True)
class Cut:
    """What a replay reads.

    Attributes:
        reader: Reads what is wanted.
        as_of: The instant.
        log_starts: Where logs start whose deleted records are there nevertheless.
        timeless: From where on records without a time are later than the instant.
    """

    reader: RecordReader
    as_of: AsOf
    log_starts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    timeless: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def cut_rows(self, name: str, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a decoded table that count."""
        if rows.is_empty():
            return rows
        above = above_log_starts({name: rows}, self.log_starts)
        return cut_all(above, self.as_of, timeless=self.timeless)[name]

    def whole(self) -> CutTables:
        """Return the decoded tables of the metadata log and of transactions."""
        return CutTables(self, tables_of(_WHOLE) | {CONTROL_TABLE, UNDECODED_TABLE}, _WHOLE)

    def of(self, bucket: Bucket | None, laid_out: LaidOutRecords | None = None) -> CutTables:
        """Return the decoded tables of a bucket.

        Args:
            bucket: None is one that has everything.
            laid_out: Where records of its keys were laid out, for this bucket.
        """
        names = tables_of(IN_BUCKETS) | {CONTROL_TABLE, UNDECODED_TABLE}
        return CutTables(self, names, IN_BUCKETS, bucket, laid_out)


class CutTables(Mapping[str, pl.DataFrame]):
    """Decoded tables by name; those of other topics have no rows."""

    def __init__(
        self,
        cut: Cut,
        names: frozenset[str],
        topics: Sequence[str],
        bucket: Bucket | None = None,
        laid_out: LaidOutRecords | None = None,
    ) -> None:
        self._cut, self._names, self._topics = cut, names, topics
        self._bucket, self._laid = bucket, laid_out
        self._read: dict[str, pl.DataFrame] = {}
        self._lock = Lock()

    def __getitem__(self, name: str) -> pl.DataFrame:
        with self._lock:
            if name not in self._read:
                self._read[name] = self._rows(name)
            return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(tables_of((*IN_BUCKETS, *_WHOLE)) | {CONTROL_TABLE, UNDECODED_TABLE}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _rows(self, name: str) -> pl.DataFrame:
        cut, reader = self._cut, self._cut.reader
        bucket = self._bucket
        is_elsewhere = bucket is not None and not bucket.is_first and name == UNDECODED_TABLE
        if name not in self._names or is_elsewhere:
            return reader.empty(name)
        if name in (CONTROL_TABLE, UNDECODED_TABLE):
            of_topics = pl.col("topic").is_in(self._topics)
            return cut.cut_rows(name, reader.table(name, bucket).filter(of_topics))
        if self._laid is not None:
            return pl.concat([reader.empty(name), *self._laid(name)], rechunk=True)
        return cut.cut_rows(name, reader.table(name, bucket))


def cut_of(
    reader: RecordReader,
    as_of: AsOf,
    log_starts: Mapping[tuple[str, int], int],
) -> Cut:
    """Return what a replay at an instant reads."""
    ends: Mapping[tuple[str, int], int] = {}
    if as_of.timestamp_ms is not None and reader.count(_WITHOUT_TIME, _has_no_time()):
        # Hardly any dump has records without a time, and statistics of files say so.
        decoded = {name: reader.table(name) for name in _WITHOUT_TIME}
        ends = timeless_ends(decoded, as_of)
    return Cut(reader, as_of, log_starts, ends)


def timeless_partitions(reader: RecordReader) -> list[int]:
    """Return the partitions of the offsets topic in which a tombstone has no time."""
    found = reader.table_where("offset_commit", ["partition"], _has_no_time() & _IS_TOMBSTONE)
    return sorted(found["partition"].unique().to_list())


def buckets_of(
    reader: RecordReader, most: int, sizes: Mapping[tuple[str, int], int] = MappingProxyType({})
) -> list[Bucket]:
    """Lay all records of groups and share partitions into buckets.

    Args:
        reader: Reads them.
        most: So many a bucket shall have at most.
        sizes: Bytes of log by topic and partition: a record that holds much counts for several.
    """
    found: list[Bucket] = []
    for topic in IN_BUCKETS:
        counts = reader.counts(sorted(tables_of((topic,))))
        weights = {
            number: max(count, sizes.get((topic, number), 0) // _BYTES)
            for number, count in counts.items()
        }
        found += buckets(topic, weights, most)
    return found


_IS_TOMBSTONE: Final = pc.field("is_tombstone")


def _has_no_time() -> pc.Expression:
    return pc.field("timestamp").is_null()
