"""The times of a log: instants asked about, where it is cut by them, what they measure.

Decoded records cut at the instant asked about, as frames of polars.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from analytics.epoch_times import iso_time
from analytics.replay.metadata_log import snapshot_end
from schemas import CLUSTER_METADATA

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from schemas.manifest import FrameEntry

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]


# Where a log is cut by a time when the times of its records go back.
#
# Records lie in the order in which they were appended; their times are what a clock said, and a
# clock may be set. So a cut by a time is a cut of the log, never a choice of single records. One
# cut ends before the first record that is later than the time, the other after the last record
# that is not. Where the times never go back both are one. Else the records between them may count
# or not: what they are about is not certain.


@dataclass(frozen=True)
class Frame:
    """The two cuts of a partition at a time.

    Attributes:
        certain_end: The offset of the first record that is later: all before it count.
        possible_end: The offset after the last record that is not later: none from it on counts.
        later_ms: The time of the first later record, epoch milliseconds.
        earlier_ms: The time of the last record that is not later; None where the records between
            the cuts have times that are not believed.
    """

    certain_end: int
    possible_end: int
    later_ms: int
    earlier_ms: int | None = None

    @property
    def is_certain(self) -> bool:
        """Whether both cuts are one."""
        return self.possible_end <= self.certain_end

    def why(self, topic: str, partition: int) -> str:
        """Return in words why records of the partition may count or not."""
        last = self.possible_end - 1
        offsets = (
            f"offset {last}"
            if last == self.certain_end
            else (f"offsets {self.certain_end} to {last}")
        )
        if self.earlier_ms is None:
            return (
                f"{topic}-{partition} says {_iso(self.later_ms)} at offset {self.certain_end}, "
                f"which is not believed; whether {offsets} had been written by then cannot be told"
            )
        return (
            f"the times of {topic}-{partition} go back: offset {self.certain_end} says "
            f"{_iso(self.later_ms)}, offset {last} says {_iso(self.earlier_ms)}; whether "
            f"{offsets} had been written by then cannot be told"
        )


Frames = Mapping[tuple[str, int], Frame]


def frame_rows(frames: Frames) -> list[FrameEntry]:
    """Return frames as the manifest of a replay has them."""
    return [
        {
            "topic": topic,
            "partition": partition,
            "certain_end": each.certain_end,
            "possible_end": each.possible_end,
            "later_ms": each.later_ms,
            "earlier_ms": each.earlier_ms,
        }
        for (topic, partition), each in sorted(frames.items())
    ]


def frames_of_rows(rows: Iterable[FrameEntry]) -> dict[tuple[str, int], Frame]:
    """Return frames of the manifest's rows."""
    return {
        (row["topic"], row["partition"]): Frame(
            row["certain_end"], row["possible_end"], row["later_ms"], row["earlier_ms"]
        )
        for row in rows
    }


def disputed(frames: Frames, topic: str) -> dict[int, Frame]:
    """Return by partition of a topic the frames whose two cuts differ."""
    return {
        partition: each
        for (of_topic, partition), each in frames.items()
        if of_topic == topic and not each.is_certain
    }


def _iso(time_ms: int) -> str:
    return iso_time(time_ms) or f"{time_ms} ms"


# The instant asked about: the end of each internal partition's log, or a time.


@dataclass(frozen=True)
class AsOf:
    """Which records count.

    Attributes:
        offsets: End offset (exclusive) by topic and partition; partitions not named are taken to
            their end.
        timestamp_ms: Epoch milliseconds; a record counts if its append time is not later. One
            without a time (message format 0) counts unless something says that it is later
            (`timeless_ends`).
        frames: Of the partitions whose times go back, by topic and partition: there all records
            before `possible_end` count, whatever their times.
    """

    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    timestamp_ms: int | None = None
    frames: Mapping[tuple[str, int], Frame] = field(default_factory=dict)

    @property
    def is_end(self) -> bool:
        """Whether everything counts."""
        return not self.offsets and self.timestamp_ms is None


END = AsOf()


# What the times of a log's records measure, where a clock was set or a leader's was wrong.
#
# Records of a partition follow each other; where one has an earlier time than the one before it a
# clock was set, or the next leader has another one. How far it went back no record shows, as
# nothing tells how long it was between the two; nor when a clock that is behind was put right, or
# one that is right was set ahead: it only seems that nothing happened for longer. So in such a
# log no time measures how long something took. Where the metadata log shows whose clock was
# wrong, only what that broker wrote is in doubt.

Span = tuple[int, int]
NOBODY: Final = -1
"""In place of a stretch that a wrong clock wrote: a clock that nothing contradicts."""


@dataclass(frozen=True)
class LogClock:
    """The clocks of one log; all offsets in order.

    Attributes:
        steps: Between the first and the last of each, which are mostly the same offset, lie the
            first records behind a step back.
        wrong: Which offsets were written by brokers whose clocks are known to have been wrong: the
            first of each stretch, and the one after its last.
    """

    steps: tuple[Span, ...] = ()
    wrong: tuple[Span, ...] = ()

    @property
    def first_doubt(self) -> int | None:
        """The first offset whose time may be another clock's than that of those before it."""
        return min((first for first, _ in (*self.steps, *self.wrong)), default=None)

    @property
    def unexplained(self) -> tuple[Span, ...]:
        """The steps back that are not between a broker whose clock was wrong and another one."""
        edges = {offset for span in self.wrong for offset in span}
        return tuple(each for each in self.steps if each[0] != each[1] or each[0] not in edges)

    def until(self, end: int | None) -> LogClock | None:
        """Return what is known of the records before an offset, None of all; None for nothing."""
        kept = self
        if end is not None:
            steps, wrong = (
                tuple((first, min(last, bound)) for first, last in spans if first < end)
                for spans, bound in ((self.steps, end - 1), (self.wrong, end))
            )
            kept = replace(self, steps=steps, wrong=wrong)
        return kept if kept.steps or kept.wrong else None

    def is_wrong(self, offsets: Numbers) -> Flags:
        """Return which records were written by a broker whose clock was wrong."""
        found: Flags = self.stretch_of(offsets) != NOBODY
        return found

    def are_doubtful(self, offsets: Numbers) -> Flags:
        """Return of which records the time measures nothing."""
        if self.unexplained:
            return np.ones(offsets.shape, np.bool_)
        return self.is_wrong(offsets)

    def stretch_of(self, offsets: Numbers) -> Numbers:
        """Return which stretch of a wrong clock each record is in, `NOBODY` for none."""
        first, end = np.array(self.wrong, np.int64).reshape(-1, 2).T
        place = np.searchsorted(first, offsets, side="right") - 1
        is_in = (place >= 0) & (offsets < np.append(end, 0)[place])
        return np.where(is_in, place, NOBODY)

    def is_other(self, after: Numbers, until: Numbers) -> Flags:
        """Return which records another clock wrote than wrote an earlier one of the same pair.

        Args:
            after: The earlier ones.
            until: The other ones; `NOBODY` for the instant, which no clock tells that is wrong.
        """
        found: Flags = self.stretch_of(after) != self.stretch_of(until)
        for first, last in self.unexplained:
            found |= (last > after) & ((until == NOBODY) | (first <= until))
        return found


Clocks = Mapping[tuple[str, int], LogClock]
"""By topic and partition; those that are not there have clocks that nothing contradicts."""


def clocks_of_topic(clocks: Clocks, topic: str) -> dict[int, LogClock]:
    """Return those of a topic, by partition."""
    return {number: clock for (name, number), clock in clocks.items() if name == topic}


def doubtful_times(clocks: Mapping[int, LogClock], partitions: Numbers, offsets: Numbers) -> Flags:
    """Return of which records of a topic the time measures nothing.

    Args:
        clocks: Of `clocks_of_topic`.
        partitions: Of each record.
        offsets: Likewise.
    """
    found = np.zeros(len(partitions), np.bool_)
    for number, clock in clocks.items():
        here = partitions == number
        found[here] = clock.are_doubtful(offsets[here])
    return found


# Records without a time (message format 0): which of them are later than an instant.
#
# A partition's records were appended in the order of their offsets. So one without a time that lies
# behind a record of a later time is later itself. A commit says its own time in its value.

COMMITS, GROUPS = "offset_commit", "group_metadata"
"""What releases wrote that knew message format 0."""
_PLACE: Final = ("topic", "partition", "offset", "timestamp")


def timeless_ends(decoded: Mapping[str, pl.DataFrame], as_of: AsOf) -> dict[tuple[str, int], int]:
    """Return from which offset on records without a time are later than an instant.

    Args:
        decoded: Decoded tables of whole partitions; of each at least where and when its records
            were written, of commits their `value`, too.
        as_of: The instant.

    Returns:
        By topic and partition, of partitions with such records of which any is surely later.
    """
    if as_of.timestamp_ms is None or not {COMMITS, GROUPS} <= decoded.keys():
        return {}
    commits, groups = decoded[COMMITS], decoded[GROUPS]
    # Hardly any dump has one.
    if not any(each["timestamp"].null_count() for each in (commits, groups)):
        return {}
    said = pl.col("value").struct.field("commit_timestamp")
    told = pl.concat(
        [
            commits.select(*_PLACE, pl.when(said > 0).then(said).alias("said")),
            groups.select(*_PLACE, pl.lit(None, pl.Int64).alias("said")),
        ]
    )
    at = pl.coalesce(pl.col("timestamp").dt.epoch("ms"), "said")
    ends = (
        told.group_by("topic", "partition")
        .agg(
            pl.col("timestamp").is_null().any().alias("has_timeless"),
            pl.col("offset").filter(at > as_of.timestamp_ms).min().alias("end"),
        )
        .filter(pl.col("has_timeless") & pl.col("end").is_not_null())
    )
    rows = ends.select("topic", "partition", "end").iter_rows()
    return {(topic, partition): end for topic, partition, end in rows}


Decoded = Mapping[str, pl.DataFrame]
"""Decoded tables by name; every one that the schemas declare is there, possibly without rows."""

Ends = Mapping[tuple[str, int], int]
"""An offset by topic and partition."""

_OWN: Final = ("topic", "partition", "offset", "timestamp")
_PREFIX: Final = "_"
PLACE: Final = {_PREFIX + name: name for name in _OWN}
"""Where and when a record was written, where its own columns have such names, too: the columns, and
of which field of a decoded record each is."""


def cut_all(decoded: Decoded, as_of: AsOf, *, timeless: Ends | None = None) -> Decoded:
    """Cut every decoded table.

    A snapshot of the metadata log counts as a whole where all that it stands for counts.

    Args:
        decoded: Tables by name.
        as_of: The instant.
        timeless: Of `timeless_ends`, of whole partitions; None where `decoded` has them.
    """
    if as_of.is_end:
        return decoded
    ends = timeless_ends(decoded, as_of) if timeless is None else timeless
    return {name: _cut(frame, as_of, ends) for name, frame in decoded.items()}


def above_log_starts(decoded: Decoded, log_starts: Ends) -> Decoded:
    """Leave out records that were deleted before the end of the dump (``DeleteRecords``).

    Args:
        decoded: Tables that hold them too.
        log_starts: The log start offset by topic and partition, where it is not the first offset.
    """
    if not log_starts:
        return decoded
    return {name: _above(frame, log_starts) for name, frame in decoded.items()}


def cut(
    records: pl.DataFrame, as_of: AsOf, *, log_starts: Ends, timeless_ends: Ends
) -> pl.DataFrame:
    """Keep the records that count, without `PLACE`.

    Args:
        records: Has `PLACE`; of the metadata log also `segment`.
        as_of: The instant.
        log_starts: Where logs start whose deleted records are there nevertheless.
        timeless_ends: From where on records without a time are later than the instant.
    """
    above = _above(records, log_starts, _PREFIX)
    return _cut(above, as_of, timeless_ends, _PREFIX).drop(list(PLACE))


def _above(records: pl.DataFrame, log_starts: Ends, prefix: str = "") -> pl.DataFrame:
    if not log_starts:
        return records
    start = _looked_up(log_starts, prefix)
    return records.filter(start.is_null() | (pl.col(f"{prefix}offset") >= start))


def _cut(records: pl.DataFrame, as_of: AsOf, timeless: Ends, prefix: str = "") -> pl.DataFrame:
    topic, offset = pl.col(f"{prefix}topic"), pl.col(f"{prefix}offset")
    if as_of.offsets:
        place = offset
        if (
            "segment" in records.columns
            and records.select((topic == CLUSTER_METADATA).any()).item()
        ):
            of_snapshot = pl.when(topic == CLUSTER_METADATA).then(snapshot_end() - 1)
            place = pl.coalesce(of_snapshot, offset)
        records = records.filter(_is_below(as_of.offsets, place, prefix))
    if as_of.timestamp_ms is not None:
        time = pl.col(f"{prefix}timestamp")
        is_in_time = time.dt.epoch("us") <= as_of.timestamp_ms * 1000
        by_time = (
            pl.when(time.is_null()).then(_is_below(timeless, offset, prefix)).otherwise(is_in_time)
        )
        records = records.filter(_is_before_frame_end(records, as_of, by_time, prefix))
    return records


def _is_before_frame_end(
    records: pl.DataFrame, as_of: AsOf, by_time: pl.Expr, prefix: str
) -> pl.Expr:
    """Return which records count: where times go back, those before an offset."""
    if not as_of.frames:
        return by_time
    ends = {key: each.possible_end for key, each in as_of.frames.items()}
    end = _looked_up(ends, prefix)
    if "segment" in records.columns:
        # A snapshot counts by its own time.
        end = pl.when(snapshot_end().is_null()).then(end)
    return pl.when(end.is_null()).then(by_time).otherwise(pl.col(f"{prefix}offset") < end)


def _is_below(ends: Ends, place: pl.Expr, prefix: str) -> pl.Expr:
    if not ends:
        return pl.lit(value=True)
    end = _looked_up(ends, prefix)
    return end.is_null() | (place < end)


def _looked_up(offsets: Ends, prefix: str) -> pl.Expr:
    found = pl.lit(None, pl.Int64)
    for topic in sorted({topic for topic, _ in offsets}):
        of_topic = {partition: at for (name, partition), at in offsets.items() if name == topic}
        here = pl.col(f"{prefix}partition").replace_strict(
            pl.Series(list(of_topic), dtype=pl.Int32),
            pl.Series(list(of_topic.values()), dtype=pl.Int64),
            default=None,
            return_dtype=pl.Int64,
        )
        found = pl.when(pl.col(f"{prefix}topic") == topic).then(here).otherwise(found)
    return found
