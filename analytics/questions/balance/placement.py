"""How groups lie on the partitions of `__consumer_offsets` (``Utils.abs(hashCode)`` mod N)."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from analytics.replay.log.internal_partitions import internal_partition
from schemas.evaluation_rules import RebalanceRules


@dataclass(frozen=True)
class Placement:
    """Groups over the partitions of the topic.

    Attributes:
        partitions: How many partitions the topic has; None: not known.
        groups: How many groups there are.
        used: Partitions that hold a group.
        most: Groups in the fullest partition, and
        fullest: which that is; None without groups.
        overloaded: Partitions with too many groups, ascending.
        misplaced: Groups that lie elsewhere than their hash says, with where they are and where
            they should be. No broker finds these.
    """

    partitions: int | None
    groups: int
    used: int
    most: int
    fullest: int | None
    overloaded: tuple[int, ...]
    misplaced: tuple[tuple[str, int, int], ...]


def placement(
    groups: pl.DataFrame,
    partitions: int | None,
    rules: RebalanceRules,
    present: int | None = None,
) -> Placement:
    """Verify where groups are, and find partitions that hold too many of them.

    Args:
        groups: `group_id` with the `coordinator_partition` its records are in.
        partitions: How many partitions the topic has; None where that is not known.
        rules: From when on a partition is overloaded.
        present: How many of the partitions the dump has; None: all. The others are not empty.
    """
    place = "coordinator_partition"
    loads = groups.group_by(place).len().sort(["len", place], descending=[True, False])
    fullest, most = loads.row(0) if loads.height else (None, 0)
    mean = groups.height / (present or partitions) if partitions else 0.0
    limit = max(mean * rules.skew.times, mean + rules.skew.groups_above)
    overloaded = loads.filter(pl.col("len") > limit)[place].sort().to_list() if partitions else []
    return Placement(
        partitions=partitions,
        groups=groups.height,
        used=loads.height,
        most=most,
        fullest=fullest,
        overloaded=tuple(overloaded),
        misplaced=tuple(_misplaced(groups, partitions) if partitions else ()),
    )


def _misplaced(groups: pl.DataFrame, partitions: int) -> list[tuple[str, int, int]]:
    home = internal_partition(pl.col("group_id"), partitions)
    placed = groups.select("group_id", "coordinator_partition", home.alias("home"))
    elsewhere = pl.col("home") != pl.col("coordinator_partition")
    return list(placed.filter(elsewhere).sort(placed.columns).iter_rows())
