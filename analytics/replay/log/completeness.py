"""Whether the dump shows all that the broker knew of a group, and what it lacks otherwise.

A lost record can matter to a group only if it lies behind what the group is known from: the record
that is the whole of a classic group, or the end of the life before the present one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.log.losses import may_be_elsewhere, may_be_superseded, with_missing

if TYPE_CHECKING:
    from analytics.replay.log.coverage import Coverage

NO_GROUP_RECORD = "the group's own record is not in the dump"


def with_completeness(rows: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Add `complete` and `missing` to groups.

    Args:
        rows: Has `coordinator_partition`, `group_type`, `record_offset`, `known_from` and
            `between_cuts`: why records of the group may not count, null where they do.
        coverage: What the dump holds.
    """
    unnamed = pl.col("record_offset").is_null() & (pl.col("group_type") != "simple")
    without_record = pl.when(unnamed).then(pl.lit(NO_GROUP_RECORD))
    # The record at `known_from` is there; those behind it may not be.
    lost = may_be_superseded(coverage, pl.col("known_from") + 1)
    why = (without_record, lost, may_be_elsewhere(coverage), "between_cuts")
    missing = pl.concat_str(why, separator="; ", ignore_nulls=True)
    return with_missing(rows, missing)
