"""The decoded tables that a replay is made of: read when they are asked for, cut at the instant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow.compute as pc

from analytics.decode.chunks import CONTROL_TABLE, UNDECODED_TABLE
from analytics.dump.inspection.found_losses import OPEN_END
from analytics.replay.dump.times import last_time, milliseconds
from analytics.replay.log.ends_at import leading
from analytics.replay.log.log_times import (
    COMMITS,
    GROUPS,
    Frame,
    above_log_starts,
    cut_all,
    timeless_ends,
)
from analytics.tables.buckets import Bucket, buckets
from analytics.tables.record_reader import RecordReader
from schemas import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    record_types,
)

if TYPE_CHECKING:
    from analytics.replay.dump.followed_lines import FollowedLine
    from analytics.replay.log.log_times import AsOf
    from analytics.workspace import Workspace
    from schemas.manifest import Manifest

# The two cuts of each partition at a time, read off the times of all its records.
#
# Of records whose leader's clock was wrong the metadata log bounds when they were written: they
# were appended after their leader was elected and before the next one was. A clock that is ahead
# says when they had been written at the latest, one that is behind when they had been at the
# earliest.

_SNAPSHOT: Final = ".checkpoint"
Key = tuple[str, int]

_KEY: Final = ("topic", "partition", "leader_epoch")
_BOUNDS: Final = pl.Schema(
    {
        "topic": pl.String,
        "partition": pl.Int32,
        "leader_epoch": pl.Int32,
        "from_ms": pl.Int64,
        "to_ms": pl.Int64,
        "is_ahead": pl.Boolean,
    }
)
_NEVER: Final = 2**62


@dataclass
class _TimesOfPartition:
    """What was seen of a partition: (offset, time) of the first later record and the last other.

    Of times beyond the end of the dump, which are not believed, the offsets. `is_bounded`: some
    were written by a broker whose clock differed, and lie between two elections.
    """

    later: tuple[int, int] | None = None
    earlier: tuple[int, int] | None = None
    lacks_times: bool = False
    is_bounded: bool = False
    unbelieved: list[dict[str, int]] = field(default_factory=list)


def framed(
    instant: AsOf,
    source: Workspace,
    lines: Sequence[FollowedLine],
    before_swaps: Sequence[Key] = (),
) -> AsOf:
    """Return an instant with the frames of the partitions that are cut at an offset.

    That are those whose times go back; those in which a broker led whose clock differed from the
    controller's; those with times beyond the end of the dump, which are not believed; and those in
    which a record has no time, unless all such are of the kinds that message format 0 wrote: of
    these `timeless_ends` tells.

    Args:
        instant: The instant.
        source: The workspace with the decoded tables.
        lines: The lines that are followed instead of the surviving ones.
        before_swaps: Partitions of which the log is read that was before swap files.
    """
    if instant.timestamp_ms is None:
        return instant
    seen: dict[Key, _TimesOfPartition] = defaultdict(_TimesOfPartition)
    end = last_time(source.manifest())
    end_ms = OPEN_END if end is None else milliseconds(end)
    bounds = clock_bounds(source.manifest())
    reader = RecordReader(source, lines, before_swaps=before_swaps)
    for name in sorted(tables_of(tuple(INTERNAL_TOPICS)) | {CONTROL_TABLE}):
        for times in reader.times(name):
            bounded = with_bounds(times, bounds)
            _see(seen, bounded, (instant.timestamp_ms, end_ms), is_early=name in (COMMITS, GROUPS))
    for key, (offset, ms) in _last_before_steps(source.manifest(), lines):
        # Records that are only counted have their place in the log, too.
        if instant.timestamp_ms < ms <= end_ms and key in seen and not seen[key].is_bounded:
            seen[key].later = _first(min, seen[key].later, {"offset": offset, "ms": ms})
    is_whole = instant.timestamp_ms >= end_ms
    frames = {key: _frame(each, is_whole=is_whole) for key, each in seen.items()}
    return replace(instant, frames={key: each for key, each in frames.items() if each is not None})


def _last_before_steps(
    manifest: Manifest, lines: Sequence[FollowedLine]
) -> Iterator[tuple[Key, tuple[int, int]]]:
    """Yield the records before which a clock was set back, by partition: offset and time."""
    left = {(each.topic, each.partition): each.diverges_at for each in lines}
    for row in leading(manifest):
        key = row["topic"], row["partition"]
        for first, _, before_ms in row.get("clock_steps") or ():
            if first < left.get(key, OPEN_END):
                yield key, (first - 1, before_ms)


def _see(
    of_partitions: dict[Key, _TimesOfPartition],
    times: pl.DataFrame,
    within: tuple[int, int],
    *,
    is_early: bool,
) -> None:
    at_ms, end_ms = within
    ms, offset = pl.col("timestamp").dt.epoch("ms"), pl.col("offset")
    # Elections bound the others, even those of a lost line beyond all that survived.
    is_beyond = (ms > end_ms).fill_null(value=False) & ~pl.col("is_bounded")
    is_later = (pl.col("latest_ms") > at_ms).fill_null(value=False) & ~is_beyond
    is_earlier = (pl.col("earliest_ms") <= at_ms).fill_null(value=False) & ~is_beyond
    # The order within a snapshot is not that of the log.
    is_of_log = ~pl.col("segment").cast(pl.String).str.ends_with(_SNAPSHOT).fill_null(value=False)
    found = (
        times.filter(is_of_log & offset.is_not_null())
        .group_by("topic", "partition")
        .agg(
            pl.struct(offset, ms.alias("ms"))
            .filter(is_later)
            .sort_by(offset.filter(is_later))
            .first()
            .alias("later"),
            pl.struct(offset, ms.alias("ms"))
            .filter(is_earlier)
            .sort_by(offset.filter(is_earlier))
            .last()
            .alias("earlier"),
            ms.is_null().any().alias("is_timeless"),
            pl.col("is_bounded").any(),
            pl.struct(offset, ms.alias("ms")).filter(is_beyond).alias("beyond"),
        )
    )
    for row in found.to_dicts():
        own = of_partitions[str(row["topic"]), row["partition"]]
        own.lacks_times |= row["is_timeless"] and not is_early
        own.is_bounded |= row["is_bounded"]
        own.later = _first(min, own.later, row["later"])
        own.unbelieved += row["beyond"]
        own.earlier = _first(max, own.earlier, row["earlier"])


def _first(
    choose: Callable[..., Any], held: tuple[int, int] | None, reported: dict[str, int] | None
) -> tuple[int, int] | None:
    told = (
        []
        if reported is None or reported["offset"] is None
        else [(reported["offset"], reported["ms"])]
    )
    first: tuple[int, int] | None = choose([*told, *([] if held is None else [held])], default=None)
    return first


def _frame(own: _TimesOfPartition, *, is_whole: bool) -> Frame | None:
    """Return the frame of a partition, None where its times never go back and all are believed.

    Args:
        own: What its records say.
        is_whole: The time is the end of the dump, or later.
    """
    later, earlier = own.later or (OPEN_END, 0), own.earlier or (-1, 0)
    if is_whole and (own.unbelieved or own.is_bounded):
        return Frame(OPEN_END, OPEN_END, 0)
    if own.is_bounded:
        return Frame(later[0], max(earlier[0] + 1, later[0]), later[1])
    if earlier[0] > later[0]:
        return Frame(later[0], earlier[0] + 1, later[1], earlier[1])
    between = [each for each in own.unbelieved if earlier[0] < each["offset"] < later[0]]
    if between:
        first = min(between, key=itemgetter("offset"))
        last = max(each["offset"] for each in between)
        end = last + 1 if own.later is None else later[0]
        return Frame(first["offset"], end, first["ms"])
    is_cut_by_time = not (own.unbelieved or own.lacks_times) or own.later is None
    return None if is_cut_by_time and not own.unbelieved else Frame(later[0], later[0], later[1])


def clock_bounds(manifest: Manifest) -> pl.DataFrame:
    """Return `_KEY`, `from_ms`, `to_ms` (epoch milliseconds, null where not known) and `is_ahead`.

    Args:
        manifest: Of a workspace with decoded tables; its `leader_clocks` name the brokers. One
            whose clock was ahead at times and behind at others tells nothing: `is_ahead` is null.
    """
    rows = [
        {**led, "is_ahead": clock["ahead_ms"] > 0}
        for clock in manifest.get("leader_clocks", ())
        for led in clock["led"]
    ]
    is_both = pl.col("is_ahead").n_unique() > 1
    return (
        pl.DataFrame(rows, schema=_BOUNDS)
        .group_by(_KEY)
        .agg(
            pl.col("from_ms", "to_ms").first(),
            pl.when(is_both).then(None).otherwise(pl.col("is_ahead").first()).alias("is_ahead"),
        )
    )


def with_bounds(times: pl.DataFrame, bounds: pl.DataFrame) -> pl.DataFrame:
    """Add `earliest_ms` and `latest_ms` (epoch milliseconds), and `is_bounded`.

    Both are the record's own time but where its leader's clock was wrong.

    Args:
        times: `_KEY` and `timestamp` of records.
        bounds: Of `clock_bounds`.
    """
    own = pl.col("timestamp").dt.epoch("ms")
    if bounds.is_empty():
        return times.with_columns(
            own.alias("earliest_ms"),
            own.alias("latest_ms"),
            pl.lit(value=False).alias("is_bounded"),
        )
    began = pl.col("from_ms").fill_null(0)
    ended = pl.col("to_ms").fill_null(_NEVER)
    is_bounded = pl.col("is_named") & own.is_not_null()
    earliest = (
        pl.when("is_ahead")
        .then(began)
        .otherwise(
            pl.when(pl.col("is_ahead").is_null())
            .then(began)
            .otherwise(pl.max_horizontal(own, began))
        )
    )
    latest = pl.when("is_ahead").then(pl.min_horizontal(own, ended)).otherwise(ended)
    return (
        times.with_columns(pl.col("topic").cast(pl.String))
        .join(bounds.with_columns(is_named=pl.lit(value=True)), on=_KEY, how="left")
        .with_columns(pl.col("is_named").fill_null(value=False))
        .with_columns(
            pl.when(is_bounded).then(earliest).otherwise(own).alias("earliest_ms"),
            pl.when(is_bounded).then(latest).otherwise(own).alias("latest_ms"),
            is_bounded.alias("is_bounded"),
        )
        .drop("is_named", "from_ms", "to_ms", "is_ahead")
    )


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
        is_laid = self._laid is not None and name != UNDECODED_TABLE
        if name in (CONTROL_TABLE, UNDECODED_TABLE) and not is_laid:
            # Of markers there may be as many as transactions: those of other topics are not read.
            topics = [each for each in self._topics if not reader.topics or each in reader.topics]
            of_topics = replace(reader, topics=topics)
            return (
                cut.cut_rows(name, of_topics.table(name, bucket)) if topics else reader.empty(name)
            )
        if self._laid is not None:
            return pl.concat([reader.empty(name), *self._laid(name)], rechunk=True)
        return cut.cut_rows(name, reader.table(name, bucket))


def cut_of(
    reader: RecordReader,
    as_of: AsOf,
    log_starts: Mapping[tuple[str, int], int],
) -> Cut:
    """Return what a replay at an instant reads.

    A record without a time lies behind one of a later time, whichever group that is of.
    """
    ends: Mapping[tuple[str, int], int] = {}
    if as_of.timestamp_ms is not None and reader.count(_WITHOUT_TIME, _has_no_time()):
        # Hardly any dump has records without a time, and statistics of files say so.
        every = reader.unfiltered()
        decoded = {name: every.table(name) for name in _WITHOUT_TIME}
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
