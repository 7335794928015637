"""The table `log_end_samples`: where logs ended, and when, so that lags can be drawn over time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_schema
from analytics.replayed.cluster_answers import snapshot_at

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

SAMPLES: Final = "log_end_samples"
MOST: Final = 40
"""So many of a partition: the first, the last, and others as far apart as there are."""
_PLACE: Final = ("topic", "partition")


def end_samples(samples: pl.DataFrame, state: ReplayedWorkspace, as_of_ms: int) -> pl.DataFrame:
    """Return the table.

    Args:
        samples: Where logs ended, and when (`pace.log_ends`).
        state: A replayed workspace: where logs ended when a snapshot began is known, too.
        as_of_ms: The instant; later samples do not count.
    """
    known = pl.concat([samples, _first_answers(state).cast(samples.schema)])
    ends = (
        known.filter(pl.col("at_ms") <= as_of_ms)
        .group_by(*_PLACE, "at_ms")
        .agg(pl.col("end").max())
        .sort(*_PLACE, "at_ms")
    )
    number, count = pl.int_range(pl.len()).over(_PLACE), pl.len().over(_PLACE)
    step = (count - 1) / (MOST - 1)
    # Of forty places the row that each comes to first.
    place = (number / step).floor()
    is_first_there = place != ((number - 1) / step).floor()
    is_kept = (count <= MOST) | (number == 0) | (number == count - 1) | is_first_there
    return (
        ends.filter(is_kept)
        .select(
            *_PLACE,
            (pl.col("at_ms") * 1000).cast(pl.Datetime("us", "UTC")).alias("at"),
            pl.col("end").alias("log_end_offset"),
        )
        .cast(contract_schema(SAMPLES))
    )


def _first_answers(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return where logs ended when a snapshot began: `topic`, `partition`, `at_ms`, `end`."""
    snapshot = snapshot_at(state)
    rows = (
        []
        if snapshot is None
        else [
            (topic["topic"], number, _milliseconds(snapshot["taken_at"]), end)
            for topic in snapshot["topics"]
            for number, _, _, end, _ in topic["partitions"]
            if end is not None
        ]
    )
    kinds = {"topic": pl.String, "partition": pl.Int32, "at_ms": pl.Int64, "end": pl.Int64}
    return pl.DataFrame(rows, kinds, orient="row")


def _milliseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000)
