"""The table `group_churn`: how often each group rebalanced, and who came and went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.questions.quotients import divided
from analytics.questions.rebalances.storms import CHURN, missing_since_first, top_clients
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import lost_between

if TYPE_CHECKING:
    from datetime import datetime

_HOUR = 3600.0
_SHORTEST = 60.0
"""Seconds: a rate over less says nothing."""
_NEVER = 2**63 - 1


def group_churn(
    rebalances: pl.DataFrame,
    changes: pl.DataFrame,
    storms: pl.DataFrame,
    until: datetime | None,
    coverage: Coverage = WHOLE,
) -> pl.DataFrame:
    """Return the table `group_churn`.

    Args:
        rebalances: The table, as far as the time asked about goes.
        changes: The table `membership_changes`, likewise.
        storms: The table `rebalance_storms`, likewise.
        until: The end of that time; None: when the last epoch of all began.
        coverage: What the dump holds.
    """
    told = changes.filter(pl.col("change").is_in(CHURN))
    rows = (
        _counted(rebalances, coverage)
        .join(_comings_and_goings(told), on="group_id", how="left")
        .join(top_clients(told, ("group_id",)), on="group_id", how="left")
        .join(storms.group_by("group_id").agg(pl.len().alias("storms")), on="group_id", how="left")
    )
    end = pl.col("to_timestamp") if until is None else pl.lit(until)
    seconds = divided((end - pl.col("from_timestamp")).dt.total_microseconds(), 1e6)
    # Those before the first epoch began at a time that nobody knows: they have no part in the rate.
    rate = (pl.col("epochs") + pl.col("missing_since")) / divided(seconds, _HOUR)
    return rows.with_columns(
        divided(pl.col("median_ms"), 1000).alias("median_seconds_between"),
        *(
            pl.when((pl.col(each) > 0) | ~pl.col(f"{each}_not_known"))
            .then(pl.col(each).fill_null(0))
            .alias(each)
            for each in CHURN
        ),
        pl.col("storms").fill_null(0),
        pl.when(seconds >= _SHORTEST).then(rate).alias("per_hour"),
        pl.col("incomplete_because").is_null().alias("complete"),
    )


def _counted(rebalances: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    anything = lost_between(coverage, pl.lit(-1), pl.lit(_NEVER))
    last_type = pl.col("group_type").sort_by("life", "from_offset").last()
    return (
        rebalances.with_columns(
            pl.col("missing_before").fill_null(0).alias("missing"), anything.alias("anything")
        )
        .sort("at", "from_offset")
        .group_by("group_id")
        .agg(
            pl.col("anything").max().alias("incomplete_because"),
            last_type,
            pl.len().alias("epochs"),
            pl.col("missing").sum(),
            missing_since_first().alias("missing_since"),
            _may_lack_changes().sum().alias("compacted"),
            *(pl.col(each).has_nulls().alias(f"{each}_not_known") for each in CHURN),
            pl.col("at").min().alias("from_timestamp"),
            pl.col("at").max().alias("to_timestamp"),
            pl.col("since_previous_ms").median().alias("median_ms"),
            pl.col("stored_again").sum(),
            pl.col("coordinator_change").count().alias("coordinator_changes"),
        )
    )


def _may_lack_changes() -> pl.Expr:
    """Return in which epochs, or before which, compaction may have taken what tells of a change."""
    is_untold = pl.any_horizontal(pl.col(each).is_null() for each in CHURN)
    return pl.col("missing_is_compacted") | is_untold


def _comings_and_goings(changes: pl.DataFrame) -> pl.DataFrame:
    return changes.group_by("group_id").agg(
        (pl.col("change") == word).sum().alias(word) for word in CHURN
    )
