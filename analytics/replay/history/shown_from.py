"""From where on a dump shows every record that was ever written to an internal partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.coverage import Coverage

if TYPE_CHECKING:
    from pyspark.sql import Column

OFFSETS = "__consumer_offsets"
NEVER = 2**63 - 1


def shown_from(coverage: Coverage, topic: str = OFFSETS) -> Column:
    """Return the first offset behind all that compaction or a loss took; 0 where nothing is gone.

    Args:
        coverage: What the dump holds.
        topic: The internal topic; rows have its partition as `coordinator_partition`.
    """
    return _start(coverage.shown_from, topic)


def lost_until(coverage: Coverage, topic: str = OFFSETS) -> Column:
    """Return the first offset behind all losses; 0 where nothing was lost. Compaction is no loss.

    Args:
        coverage: What the dump holds.
        topic: The internal topic; rows have its partition as `coordinator_partition`.
    """
    return _start(coverage.complete_from, topic)


def born_from(coverage: Coverage, topic: str = OFFSETS) -> Column:
    """Return the offset from which on what has no earlier record had none; 0 where none is gone.

    The cleaner leaves the last record of every key. Where anything else took records, or nothing
    tells how far the cleaner has been, no first record is sure to be the first: `NEVER`.

    Args:
        coverage: What the dump holds.
        topic: The internal topic; rows have its partition as `coordinator_partition`.
    """
    told = {key: coverage.cleaned_until.get(key, NEVER) for key in coverage.shown_from}
    return _start(told, topic)


def _start(offsets: Mapping[tuple[str, int], int], topic: str) -> Column:
    starts = {partition: start for (name, partition), start in offsets.items() if name == topic}
    if not starts:
        return F.lit(0).cast("bigint")
    listed = F.array(*(F.lit(starts.get(each)) for each in range(max(starts) + 1)))
    start = F.get(listed.cast("array<bigint>"), F.col("coordinator_partition"))
    return F.coalesce(start, F.lit(0).cast("bigint"))
