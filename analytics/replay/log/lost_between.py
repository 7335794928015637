"""Whether a lost record may lie between two places of an internal partition, in polars."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import polars as pl

from analytics.dump.files.model import CONSUMER_OFFSETS
from analytics.dump.inspection.losses import Loss, lacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.replay.log.coverage import Coverage

HOME = "coordinator_partition"
_MOST_RANGES = 32
"""So many losses of a partition are looked at one by one; more are taken together."""


def lost_between(coverage: Coverage, after: pl.Expr, before: pl.Expr) -> pl.Expr:
    """Return what the partition lacks where a lost record may lie between two offsets, else null.

    Args:
        coverage: What the dump holds; rows have `coordinator_partition`.
        after: Offset of the earlier record; -1 where there is none.
        before: Offset of the later one.
    """
    said = pl.lit(None, pl.String)
    for number, losses in coverage.losses_of_topic(CONSUMER_OFFSETS).items():
        hits = [(first < before) & (end > after + 1) for first, end in _ranges(losses)]
        here = (pl.col(HOME) == number) & reduce(or_, hits)
        said = pl.when(here).then(pl.lit(lacks(CONSUMER_OFFSETS, number, losses))).otherwise(said)
    return said


def _ranges(losses: Sequence[Loss]) -> list[tuple[int, int]]:
    ranges = [(each.first, each.end) for each in losses]
    if len(ranges) <= _MOST_RANGES:
        return ranges
    return [*ranges[: _MOST_RANGES - 1], (ranges[_MOST_RANGES - 1][0], ranges[-1][1])]
