"""Samples of where logs end, as numbers that a fold can walk along."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.time_columns import times_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

SAMPLES = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("log_start_offset", pa.int64()),
        ("log_end_offset", pa.int64()),
    ]
)
"""Where a log started and ended, and when."""


@dataclass(frozen=True)
class EndOffsetSamples:
    """Samples in order of partition and time.

    Attributes:
        times: When each was taken, in epoch milliseconds.
        ends: The end offset then.
        places: By topic and partition, the first of its samples and the one after its last.
    """

    times: NDArray[np.int64]
    ends: NDArray[np.int64]
    places: Mapping[tuple[str, int], tuple[int, int]]

    @classmethod
    def of(cls, samples: pa.Table) -> EndOffsetSamples:
        """Take rows of `SAMPLES`; those without a time or an end are left out."""
        known = pc.and_(pc.is_valid(samples["timestamp"]), pc.is_valid(samples["log_end_offset"]))
        rows = samples.filter(known).sort_by(
            [("topic", "ascending"), ("partition", "ascending"), ("timestamp", "ascending")]
        )
        # Sorted, a partition is a run of rows; grouped rows would come in an order of their own.
        topic = pc.dictionary_encode(rows["topic"].combine_chunks()).indices.to_numpy()
        partition = rows["partition"].to_numpy()
        is_new = np.r_[True, (np.diff(topic) != 0) | (np.diff(partition) != 0)][: rows.num_rows]
        first = np.flatnonzero(is_new)
        ends = np.r_[first[1:], rows.num_rows].tolist()
        named = rows.select(["topic", "partition"]).take(pa.array(first))
        keys = zip(named["topic"].to_pylist(), named["partition"].to_pylist(), strict=True)
        places = dict(zip(keys, zip(first.tolist(), ends[: len(first)], strict=True), strict=True))
        return cls(milliseconds(rows["timestamp"]), _numbers(rows["log_end_offset"]), places)

    @classmethod
    def none(cls) -> EndOffsetSamples:
        """Return no samples."""
        return cls.of(SAMPLES.empty_table())

    def of_keys(self, keys: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the samples of partitions (`topic`, `partition`) begin and end."""
        topics, numbers, bounds, width = self._numbered
        if not len(numbers):
            return np.zeros(keys.num_rows, np.int64), np.zeros(keys.num_rows, np.int64)
        topic = pc.fill_null(pc.index_in(keys["topic"], value_set=topics), -1).to_numpy()
        partition = keys["partition"].to_numpy().astype(np.int64)
        wanted = topic.astype(np.int64) * width + partition
        place = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        is_there = (topic >= 0) & (partition < width) & (numbers[place] == wanted)
        found = np.where(is_there[:, None], bounds[place], 0)
        return found[:, 0], found[:, 1]

    @cached_property
    def _numbered(self) -> tuple[pa.Array, NDArray[np.int64], NDArray[np.int64], int]:
        """Topics, partitions as ascending numbers, where samples are, and numbers a topic."""
        topics = list(dict.fromkeys(topic for topic, _ in self.places))
        rank = {topic: number for number, topic in enumerate(topics)}
        width = 1 + max((partition for _, partition in self.places), default=0)
        numbers = [rank[topic] * width + partition for topic, partition in self.places]
        bounds = np.array(list(self.places.values()), np.int64).reshape(-1, 2)
        return pa.array(topics, pa.string()), np.array(numbers, np.int64), bounds, width

    def ends_at(self, rows: pa.Table, at_ms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where the log of each row's partition ended at a time.

        On the line between the sample before and the one after; NaN where the time is not between
        two, or the log was made anew between them.
        """
        found = np.full(rows.num_rows, np.nan)
        if not len(self.times):
            return found
        first, end = self.of_keys(rows)
        start = int(self.times.min())
        # One number that ascends through all partitions, so that one search serves all rows.
        width = int(self.times.max()) - start + 2
        sampled = np.repeat(np.arange(len(self.places)), [b - a for a, b in self.places.values()])
        place = np.where(end > first, sampled[np.minimum(first, len(sampled) - 1)], 0)
        within = np.clip(np.nan_to_num(at_ms, nan=0.0) - start, -1, width - 1).astype(np.int64)
        ascending = sampled * width + (self.times - start)
        after = np.searchsorted(ascending, place * width + within, side="right")
        after = np.minimum(after, end)
        is_there = np.isfinite(at_ms) & (after > first) & (end > first)
        before = np.maximum(after - 1, 0)
        is_exact = is_there & (self.times[before] == at_ms)
        is_between = is_there & ~is_exact & (after < end)
        after = np.minimum(after, len(self.times) - 1)
        took = np.maximum(self.times[after] - self.times[before], 1)
        grown = self.ends[after] - self.ends[before]
        share = (np.nan_to_num(at_ms) - self.times[before]) / took
        line = self.ends[before] + grown * share
        found[is_exact] = self.ends[before][is_exact]
        is_line = is_between & (grown >= 0)
        found[is_line] = line[is_line]
        return found

    def first_times(self, rows: pa.Table) -> pa.Array:
        """Return when the partition of each row was sampled first; null where it never was."""
        first, end = self.of_keys(rows)
        is_sampled = end > first
        times = np.append(self.times, 0)[np.where(is_sampled, first, len(self.times))]
        return times_of(times, ~is_sampled)


def milliseconds(times: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return instants as epoch milliseconds, rounded down."""
    micros = _numbers(pc.cast(times, pa.int64()))
    whole: NDArray[np.int64] = micros // 1000
    return whole


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return np.ascontiguousarray(numbers)
