"""When offsets were removed whose tombstones carry no time: what commits around them say.

Records of message format 0 carry none. A partition's log is in order, so what any of its groups did
before and behind a tombstone bounds its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.offsets.effective_commits import REMOVED

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLACE: Final = ["coordinator_partition", "position"]
SAID_TIMES: Final = pl.Schema(
    {
        "group_id": pl.String(),
        "coordinator_partition": pl.Int32(),
        "position": pl.Int64(),
        "said_ms": pl.Int64(),
    }
)
"""When something happened at a place, as far as it says; `group_id` where that is the removal of an
offset without a time."""
TIME_BOUNDS: Final = pl.Schema(
    {
        **{name: SAID_TIMES[name] for name in ("group_id", *_PLACE)},
        "after_ms": pl.Int64(),
        "before_ms": pl.Int64(),
    }
)
"""Between which times the offset at a place was removed, null where nothing shows one of them."""


def timeless_partitions(tombstones: pl.DataFrame) -> list[int]:
    """Return the coordinators' partitions with tombstones that carry no time."""
    timeless = tombstones.filter(pl.col("at").is_null())["coordinator_partition"]
    found: list[int] = timeless.unique().sort().to_list()
    return found


def said_times(events: pl.DataFrame, partitions: Sequence[int]) -> pl.DataFrame:
    """Return when something happened in some partitions, as far as it says: `SAID_TIMES`."""
    own = pl.col("at").dt.epoch("ms")
    said = pl.coalesce(own, pl.when(pl.col("commit_ms") > 0).then("commit_ms"))
    is_bounded = (pl.col("event") == REMOVED) & pl.col("at").is_null()
    here = events.filter(pl.col("coordinator_partition").is_in(partitions))
    # Where names are values of an `Enum`, each lot of groups has one of its own.
    name = pl.col("group_id").cast(pl.String)
    return here.select(
        pl.when(is_bounded).then(name).alias("group_id"), *_PLACE, said.alias("said_ms")
    )


def time_bounds(times: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return between which times tombstones that carry none were written: `TIME_BOUNDS`.

    Args:
        times: Of `said_times`: of all groups of some partitions.
    """
    home, said = "coordinator_partition", pl.concat([SAID_TIMES.to_frame(), *times])
    bounds = (
        said.group_by(_PLACE)
        .agg(pl.col("said_ms").max())
        .sort(_PLACE)
        .select(
            *_PLACE,
            pl.col("said_ms").cum_max().forward_fill().over(home).alias("after_ms"),
            pl.col("said_ms").cum_min(reverse=True).backward_fill().over(home).alias("before_ms"),
        )
    )
    bounded = said.filter(pl.col("group_id").is_not_null()).select("group_id", *_PLACE).unique()
    return bounded.join(bounds, on=_PLACE).select(TIME_BOUNDS.names())


def with_bounds(tombstones: pl.DataFrame, bounds: pl.DataFrame) -> pl.DataFrame:
    """Bound the time of tombstones that carry none by what commits around them say.

    Args:
        tombstones: Of `removed_of_groups`.
        bounds: Of `time_bounds`, of these tombstones at least.
    """
    own = pl.col("at").dt.epoch("ms")
    return (
        tombstones.join(bounds.drop("group_id"), on=_PLACE, how="left")
        .with_columns(
            pl.coalesce(own, "after_ms").alias("not_before_ms"),
            pl.coalesce(own, "before_ms").alias("not_after_ms"),
        )
        .drop("after_ms", "before_ms")
    )
