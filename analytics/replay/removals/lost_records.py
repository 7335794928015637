"""Whether a lost record may lie at a place in an internal partition, of frames of polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from analytics.dump.files.model import CONSUMER_OFFSETS
from analytics.dump.inspection.losses import Loss, lacks
from analytics.replay.log.coverage import Coverage

HOME: Final = "coordinator_partition"


def of_partition(told: Mapping[int, int], kind: pl.DataType | None = None) -> pl.Expr:
    """Return the number of a row's `coordinator_partition`; null where it has none."""
    return pl.col(HOME).replace_strict(
        list(told), list(told.values()), default=None, return_dtype=kind or pl.Int64()
    )


def what_is_lost(coverage: Coverage) -> pl.Expr:
    """Return in words what a row's partition lacks; null where that is nothing."""
    said = {number: lacks(CONSUMER_OFFSETS, number, losses) for number, losses in _losses(coverage)}
    return pl.col(HOME).replace_strict(
        list(said), list(said.values()), default=None, return_dtype=pl.String()
    )


def lost_between(coverage: Coverage, after: pl.Expr, before: pl.Expr) -> pl.Expr:
    """Return what the partition lacks where a lost record may lie between two offsets, else null.

    Args:
        coverage: What the dump holds; rows have `coordinator_partition`.
        after: Offset of the earlier record; -1 where there is none.
        before: Offset of the later one.
    """
    hits = [
        (pl.col(HOME) == number) & (loss.first < before) & (pl.lit(loss.end, pl.Int64) > after + 1)
        for number, losses in _losses(coverage)
        for loss in losses
    ]
    if not hits:
        return pl.lit(None, pl.String)
    hit = pl.any_horizontal(hits).fill_null(value=False)
    return pl.when(hit).then(what_is_lost(coverage))


def _losses(coverage: Coverage) -> list[tuple[int, Sequence[Loss]]]:
    return list(coverage.losses_of_topic(CONSUMER_OFFSETS).items())
