"""Samples of where logs end, as numbers that a fold can walk along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
        runs = rows.group_by(["topic", "partition"], use_threads=False).aggregate(
            [("timestamp", "count")]
        )
        places: dict[tuple[str, int], tuple[int, int]] = {}
        first = 0
        for topic, partition, count in zip(
            *(runs[name].to_pylist() for name in ("topic", "partition", "timestamp_count")),
            strict=True,
        ):
            places[topic, partition] = first, first + count
            first += count
        return cls(milliseconds(rows["timestamp"]), _numbers(rows["log_end_offset"]), places)

    def first_times(self, rows: pa.Table) -> pa.Array:
        """Return when the partition of each row was sampled first; null where it never was."""
        millis = [
            int(self.times[self.places[place][0]]) if place in self.places else None
            for place in zip(
                *(rows[name].to_pylist() for name in ("topic", "partition")), strict=True
            )
        ]
        return pc.cast(pa.array(millis, pa.timestamp("ms", tz="UTC")), pa.timestamp("us", tz="UTC"))


def milliseconds(times: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return instants as epoch milliseconds, rounded down."""
    micros = _numbers(pc.cast(times, pa.int64()))
    whole: NDArray[np.int64] = micros // 1000
    return whole


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return np.ascontiguousarray(numbers)
