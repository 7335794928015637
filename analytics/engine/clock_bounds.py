"""Between which instants records were written whose leader's clock was wrong.

The metadata log bounds them: they were appended after their leader was elected and before the next
one was. A clock that is ahead says when they had been written at the latest, one that is behind
when they had been at the earliest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

KEY: Final = ("topic", "partition", "leader_epoch")
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


def clock_bounds(manifest: Mapping[str, Any]) -> pl.DataFrame:
    """Return `KEY`, `from_ms`, `to_ms` (epoch milliseconds, null where not known) and `is_ahead`.

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
        .group_by(KEY)
        .agg(
            pl.col("from_ms", "to_ms").first(),
            pl.when(is_both).then(None).otherwise(pl.col("is_ahead").first()).alias("is_ahead"),
        )
    )


def with_bounds(times: pl.DataFrame, bounds: pl.DataFrame) -> pl.DataFrame:
    """Add `earliest_ms` and `latest_ms` (epoch milliseconds), and `is_bounded`.

    Both are the record's own time but where its leader's clock was wrong.

    Args:
        times: `KEY` and `timestamp` of records.
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
        .join(bounds.with_columns(is_named=pl.lit(value=True)), on=KEY, how="left")
        .with_columns(pl.col("is_named").fill_null(value=False))
        .with_columns(
            pl.when(is_bounded).then(earliest).otherwise(own).alias("earliest_ms"),
            pl.when(is_bounded).then(latest).otherwise(own).alias("latest_ms"),
            is_bounded.alias("is_bounded"),
        )
        .drop("is_named", "from_ms", "to_ms", "is_ahead")
    )


_NEVER: Final = 2**62
