"""Samples of where logs end, as numbers."""

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


def milliseconds(times: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return instants as epoch milliseconds, rounded down."""
    micros = _numbers(pc.cast(times, pa.int64()))
    whole: NDArray[np.int64] = micros // 1000
    return whole


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return np.ascontiguousarray(numbers)
