"""From where on a dump shows all records of an internal partition, as a column of Spark.

`analytics.replay.history.uncompacted_from` tells the same, and more, without Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.coverage import Coverage

if TYPE_CHECKING:
    from pyspark.sql import Column

OFFSETS = "__consumer_offsets"


def shown_from(coverage: Coverage, topic: str = OFFSETS) -> Column:
    """Return the first offset behind all that compaction or a loss took; 0 where nothing is gone.

    Args:
        coverage: What the dump holds.
        topic: The internal topic; rows have its partition as `coordinator_partition`.
    """
    return _start(coverage.shown_from, topic)


def _start(offsets: Mapping[tuple[str, int], int], topic: str) -> Column:
    starts = {partition: start for (name, partition), start in offsets.items() if name == topic}
    if not starts:
        return F.lit(0).cast("bigint")
    listed = F.array(*(F.lit(starts.get(each)) for each in range(max(starts) + 1)))
    start = F.get(listed.cast("array<bigint>"), F.col("coordinator_partition"))
    return F.coalesce(start, F.lit(0).cast("bigint"))
