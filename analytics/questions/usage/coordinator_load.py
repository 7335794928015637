"""The table `coordinator_load`: what partitions cost the broker that leads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from analytics.contracts import table_of_frame
from analytics.questions.quotients import divided
from analytics.replay.log.arrow_rows import polars_rows
from analytics.replay.log.internal_partitions import hash_places
from schemas import CONSUMER_OFFSETS, COORDINATOR_TOPICS

if TYPE_CHECKING:
    import pyarrow as pa

    from schemas.usage_rules import UsageRules

_MOST_PARTITIONS: Final = 1000
_LEAST_GROUPS: Final = 5
"""So many groups at least must agree on a number of partitions that nobody names."""
_FEW: Final = 1000
_LOG: Final = ("topic", "partition")


@dataclass(frozen=True)
class Placed:
    """How groups lie on the partitions of `__consumer_offsets`.

    Attributes:
        partitions: How many it has; None where nothing says.
        misplaced: Groups in a partition that their hash does not belong to, and that one.
        fits: Another number of partitions with which all of them would be where they belong.
    """

    partitions: int | None
    misplaced: tuple[tuple[str, int, int], ...]
    fits: int | None


def placed(groups: pl.DataFrame, partitions: int | None) -> Placed:
    """Hold groups against their hashes (``Utils.abs(hashCode) % partitions``).

    Args:
        groups: `group_id` and `partition` of groups with commits or records of their own.
        partitions: How many partitions the topic has; None where nothing says.
    """
    if groups.is_empty():
        return Placed(partitions, (), None)
    hashes, here = hash_places(groups["group_id"]), groups["partition"].cast(pl.Int64).to_numpy()
    homes = hashes % (partitions or 1)
    wrong = np.flatnonzero(homes != here) if partitions else np.zeros(0, np.int64)
    fits = None
    if (wrong.size or not partitions) and groups.n_unique() >= _LEAST_GROUPS:
        numbers = np.arange(int(here.max()) + 1, _MOST_PARTITIONS + 1)
        # Many numbers fit few groups: the first ones leave hardly any.
        for some in (slice(_FEW), slice(_FEW, None)):
            are_home = hashes[some] % numbers[:, None] == here[some]
            numbers = numbers[are_home.all(axis=1)]
        fits = int(numbers[0]) if numbers.size == 1 else None
    found = groups.with_columns(pl.Series("home", homes))[wrong]
    return Placed(partitions, tuple(found.select("group_id", "partition", "home").rows()), fits)


def groups_placed(usage: pa.Table) -> pl.DataFrame:
    """Return each `group_id` of `topic_usage` with its `partition` of `__consumer_offsets`."""
    rows = polars_rows(usage).filter(pl.col("topic") == CONSUMER_OFFSETS)
    pairs = rows.select("group_id", "partition").drop_nulls("group_id").unique()
    return pairs.sort("group_id", "partition")


def coordinator_load(
    usage: pa.Table,
    partitions: pa.Table,
    leaders: pa.Table,
    found: Placed,
    rules: UsageRules,
) -> pa.Table:
    """Return what each partition costs, the largest first.

    Args:
        usage: The table `topic_usage`.
        partitions: The table `partition_usage`.
        leaders: The table `partition_leaders`, as far as known.
        found: How groups lie.
        rules: What is hot, and how fast a coordinator reads.
    """
    count = pl.col("group_id").drop_nulls().n_unique().cast(pl.Int64)
    live = pl.col("live_records")
    sums = (
        polars_rows(usage)
        .group_by(_LOG)
        .agg(
            count.alias("groups"),
            pl.col("records").sum(),
            pl.when(live.is_not_null().any()).then(live.sum()),
        )
    )
    wrong = pl.DataFrame(
        [(CONSUMER_OFFSETS, partition) for _, partition, _ in found.misplaced],
        {"topic": pl.String, "partition": pl.Int32},
        orient="row",
    )
    wrong = wrong.group_by(_LOG).agg(pl.len().cast(pl.Int64).alias("misplaced_groups"))
    led = polars_rows(leaders.select([*_LOG, "leader"])).cast(
        {"topic": pl.String, "partition": pl.Int32, "leader": pl.Int32}
    )
    size = pl.col("file_bytes")
    mean = size.mean().over("topic")
    is_told = (pl.col("topic") == CONSUMER_OFFSETS) & pl.lit(found.partitions is not None)
    rows = (
        polars_rows(partitions)
        .filter(pl.col("is_leading") & pl.col("topic").is_in(COORDINATOR_TOPICS))
        .select(*_LOG, "file_bytes")
        .join(sums, _LOG, "left")
        .join(wrong, _LOG, "left")
        .join(led, _LOG, "left")
        .with_columns(times_mean=pl.when(mean > 0).then(size / mean))
        .with_columns(
            pl.col("groups", "records").fill_null(0),
            is_hot=((pl.col("times_mean") > rules.hot_times) & (size > rules.hot_bytes)).fill_null(
                value=False
            ),
            load_ms=divided(size * 1000, rules.load_bytes_per_second).round().cast(pl.Int64),
            misplaced_groups=pl.when(is_told).then(pl.col("misplaced_groups").fill_null(0)),
        )
    )
    order = ["file_bytes", *_LOG]
    return table_of_frame(
        "coordinator_load", rows.sort(order, descending=[True, False, False], nulls_last=True)
    )
