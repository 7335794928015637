"""Whether the dump shows all that the broker knew of a group, and what it lacks otherwise.

A lost record can matter to a group only if it lies behind what the group is known from: the record
that is the whole of a classic group, or the end of the life before the present one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.coverage import Coverage
from analytics.replay.log.losses import may_be_superseded, with_missing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NO_GROUP_RECORD = "the group's own record is not in the dump"


def with_completeness(rows: DataFrame, coverage: Coverage) -> DataFrame:
    """Add `complete` and `missing` to groups.

    Args:
        rows: Has `coordinator_partition`, `group_type`, `record_offset` and `known_from`.
        coverage: What the dump holds.
    """
    # The record at `known_from` is there; those behind it may not be.
    lost = may_be_superseded(coverage, F.col("known_from") + 1)
    return with_missing(rows, F.concat_ws("; ", _without_record(), lost))


def _without_record() -> Column:
    unnamed = F.col("record_offset").isNull() & (F.col("group_type") != "simple")
    return F.when(unnamed, NO_GROUP_RECORD)
