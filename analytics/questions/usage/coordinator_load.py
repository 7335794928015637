"""The table `coordinator_load`: what partitions cost the broker that leads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from analytics.contracts import table_of_frame
from analytics.questions.sums import divided
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
_MOST_NAMED: Final = 5
_LOG: Final = ("topic", "partition")


@dataclass(frozen=True)
class Placed:
    """How groups lie on the partitions of `__consumer_offsets`.

    Attributes:
        partitions: How many it has; None where nothing says.
        misplaced: The first groups in a partition that their hash does not belong to, and that one.
        fits: Another number of partitions with which all of them would be where they belong.
        misplaced_in: By partition, how many groups do not belong there.
    """

    partitions: int | None
    misplaced: tuple[tuple[str, int, int], ...]
    fits: int | None
    misplaced_in: Mapping[int, int] = field(default_factory=dict)

    @property
    def misplaced_groups(self) -> int:
        """How many groups lie where no broker looks for them."""
        return sum(self.misplaced_in.values())


class PlacedPart(NamedTuple):
    """How some of the groups lie.

    Attributes:
        groups: How many, with each partition that has one of them.
        misplaced: As `Placed` has them.
        misplaced_in: Likewise.
        numbers: With which numbers of partitions all of them would be where they belong.
    """

    groups: int
    misplaced: Sequence[tuple[str, int, int]]
    misplaced_in: Mapping[int, int]
    numbers: frozenset[int]


def placed(groups: pl.DataFrame, partitions: int | None) -> Placed:
    """Hold groups against their hashes (``Utils.abs(hashCode) % partitions``).

    Args:
        groups: `group_id` and `partition` of groups with commits or records of their own.
        partitions: How many partitions the topic has; None where nothing says.
    """
    return placed_together([placed_part(groups, partitions)], partitions)


def placed_part(groups: pl.DataFrame, partitions: int | None) -> PlacedPart:
    """Hold some of the groups against their hashes; see `placed`."""
    numbers = np.arange(1, _MOST_PARTITIONS + 1)
    if groups.is_empty():
        return PlacedPart(0, (), {}, frozenset(numbers.tolist()))
    hashes, here = hash_places(groups["group_id"]), groups["partition"].cast(pl.Int64).to_numpy()
    homes = hashes % (partitions or 1)
    wrong = np.flatnonzero(homes != here) if partitions else np.zeros(0, np.int64)
    # Many numbers fit few groups: the first ones leave hardly any.
    for some in (slice(_FEW), slice(_FEW, None)):
        are_home = hashes[some] % numbers[:, None] == here[some]
        numbers = numbers[are_home.all(axis=1)]
    found = groups.with_columns(pl.Series("home", homes))[wrong]
    counts = found.group_by("partition").len()
    return PlacedPart(
        groups.n_unique(),
        found.select("group_id", "partition", "home").sort(pl.all()).head(_MOST_NAMED).rows(),
        dict(counts.iter_rows()),
        frozenset(numbers.tolist()),
    )


def placed_together(parts: Sequence[PlacedPart], partitions: int | None) -> Placed:
    """Return how all groups lie; each of them is in one part."""
    misplaced = sorted(each for part in parts for each in part.misplaced)[:_MOST_NAMED]
    counts: Counter[int] = Counter()
    for part in parts:
        counts.update(part.misplaced_in)
    groups = sum(part.groups for part in parts)
    fits = None
    if (counts or not partitions) and groups >= _LEAST_GROUPS:
        numbers = frozenset.intersection(*(part.numbers for part in parts))
        fits = min(numbers) if len(numbers) == 1 else None
    return Placed(partitions, tuple(misplaced), fits, dict(sorted(counts.items())))


def groups_placed(usage: pa.Table) -> pl.DataFrame:
    """Return each `group_id` of `topic_usage` with its `partition` of `__consumer_offsets`."""
    rows = polars_rows(usage).filter(pl.col("topic") == CONSUMER_OFFSETS)
    pairs = rows.select("group_id", "partition").drop_nulls("group_id").unique()
    return pairs.sort("group_id", "partition")


def log_sums(usage: pl.DataFrame) -> pl.DataFrame:
    """Add up rows of `topic_usage` of whole groups by partition: `topic`, `partition`.

    Returns:
        How many `groups`, `records`, `bytes`, `standing_tombstones` and `live_records` each has;
        the last is null where no row has a number.
    """
    count = pl.col("group_id").drop_nulls().n_unique().cast(pl.Int64)
    return usage.group_by(_LOG).agg(count.alias("groups"), *_added())


def log_sums_together(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the `log_sums` of parts that share no group as one."""
    return pl.concat(parts).group_by(_LOG).agg(pl.col("groups").sum(), *_added())


def _added() -> list[pl.Expr]:
    live = pl.col("live_records")
    return [
        pl.col("records", "bytes", "standing_tombstones").sum(),
        pl.when(live.is_not_null().any()).then(live.sum()),
    ]


def coordinator_load(
    sums: pl.DataFrame,
    partitions: pa.Table,
    leaders: pa.Table,
    found: Placed,
    rules: UsageRules,
) -> pa.Table:
    """Return what each partition costs, the largest first.

    Args:
        sums: Of `log_sums`.
        partitions: The table `partition_usage`.
        leaders: The table `partition_leaders`, as far as known.
        found: How groups lie.
        rules: What is hot, and how fast a coordinator reads.
    """
    of_logs = sums.select(*_LOG, "groups", "records", "live_records")
    wrong = pl.DataFrame(
        [(CONSUMER_OFFSETS, *each) for each in found.misplaced_in.items()],
        {"topic": pl.String, "partition": pl.Int32, "misplaced_groups": pl.Int64},
        orient="row",
    )
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
        .join(of_logs, _LOG, "left")
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
