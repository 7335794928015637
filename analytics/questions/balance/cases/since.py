"""What history adds to groups at an instant: since when, what moved, what was done meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import polars as pl

from analytics.questions.balance.cases.at_instant import SPAN

_PARTITION = ("group_id", "topic", "partition")
_BOUNDS = ("from_timestamp", "to_timestamp")
_EVER_BEFORE, _EVER_AFTER = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


def with_epoch(cases: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Add when the present epoch began, and what it moved.

    Args:
        cases: `cases_at`.
        epochs: The table `group_epochs` at the same instant.

    Returns:
        The cases with `from_offset`, `from_timestamp` and `moved`; null where history is silent.
    """
    last = (
        epochs.sort("from_offset")
        .group_by("group_id")
        .last()
        .select(
            *("group_id", "epoch", "from_offset", "from_timestamp"),
            pl.col("partitions_moved").alias("moved"),
        )
    )
    return cases.drop("from_offset", "from_timestamp").join(
        last, on=["group_id", "epoch"], how="left"
    )


def with_progress(
    cases: pl.DataFrame, commits: pl.DataFrame, compacted_until: Mapping[int, int]
) -> pl.DataFrame:
    """Add how far commits advanced each partition in the time that a case stands for.

    Args:
        cases: With `from_timestamp` and `to_timestamp`; a null is no bound. And with `from_offset`.
        commits: Rows of `offset_history` with an advance above 0: `group_id`, `topic`, `partition`,
            `advance`, `effective_timestamp`, `coordinator_partition`. Steps back do not count.
        compacted_until: By partition of `__consumer_offsets`, the offset before which compaction
            took records.

    Returns:
        The cases with `progress`: list of `topic`, `partition`, `advance`; null without commits,
        and where compaction may have taken some of that time.
    """
    timed = commits.drop_nulls("effective_timestamp").sort(*_PARTITION, "effective_timestamp")
    so_far = timed.select(
        *_PARTITION,
        pl.col("effective_timestamp").alias("at"),
        pl.col("advance").cum_sum().over(_PARTITION).alias("done"),
    ).sort("at")
    at_any_time = commits.group_by(_PARTITION).agg(pl.col("advance").sum().alias("in_all"))
    spans = cases.select(SPAN, "group_id", *_BOUNDS).join(at_any_time, on="group_id")
    for bound in _BOUNDS:
        spans = _with_done_before(spans, so_far, bound)
    begun, ended = (pl.col(f"done_before_{bound}") for bound in _BOUNDS)
    advance = (
        pl.when(pl.all_horizontal(pl.col(_BOUNDS).is_null()))
        .then("in_all")
        .otherwise(ended - begun)
    )
    advanced = (
        spans.with_columns(advance.alias("advance"))
        .filter(pl.col("advance") > 0)
        .sort("topic", "partition")
        .group_by(SPAN)
        .agg(pl.struct("topic", "partition", "advance").alias("progress"))
    )
    homes = commits.group_by("group_id").agg(pl.col("coordinator_partition").first())
    shown = pl.col("coordinator_partition").replace_strict(
        pl.Series(list(compacted_until), dtype=pl.Int32),
        pl.Series(list(compacted_until.values()), dtype=pl.Int64),
        default=None,
        return_dtype=pl.Int64,
    )
    is_whole = (pl.col("from_offset").fill_null(-1) >= shown).fill_null(value=True)
    whole = cases.select(SPAN, "group_id", "from_offset").join(homes, on="group_id", how="left")
    return cases.join(
        advanced.join(whole.filter(is_whole).select(SPAN), on=SPAN, how="semi"), on=SPAN, how="left"
    )


def _with_done_before(spans: pl.DataFrame, so_far: pl.DataFrame, bound: str) -> pl.DataFrame:
    """Add how far commits had advanced a partition before a bound; all of them before none."""
    nowhere = _EVER_BEFORE if bound == _BOUNDS[0] else _EVER_AFTER
    return (
        spans.with_columns(pl.col(bound).fill_null(nowhere).alias("at"))
        .sort("at")
        .join_asof(
            so_far,
            on="at",
            by=list(_PARTITION),
            allow_exact_matches=False,
            check_sortedness=False,
        )
        .with_columns(pl.col("done").fill_null(0).alias(f"done_before_{bound}"))
        .drop("at", "done")
    )
