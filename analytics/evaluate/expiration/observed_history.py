"""From where on the log shows all that happened to the offsets of a group.

A what-if speaks for the time observed: from then on, up to the instant. Compaction, losses and the
group's own beginning bound it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.dump.files.model import CONSUMER_OFFSETS
from analytics.evaluate.expiration.retention import of_partition
from analytics.replay.log.coverage import WHOLE, Coverage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from analytics.replay.log.as_of import Decoded

COMPACTED = "history before that was compacted"
LOST = "records before that are lost"


@dataclass(frozen=True)
class ObservedHistory:
    """What bounds the history of each partition of `__consumer_offsets`.

    Attributes:
        as_of_ms: The instant, in epoch milliseconds.
        instants: That of partitions that have another one.
        compacted_until: By partition, the offset before which compaction took records.
        coverage: Where records are lost.
    """

    as_of_ms: int
    instants: Mapping[int, int] = field(default_factory=dict)
    compacted_until: Mapping[int, int] = field(default_factory=dict)
    coverage: Coverage = WHOLE

    @property
    def now_ms(self) -> Column:
        """The instant of a row's `coordinator_partition`."""
        return F.coalesce(of_partition(self.instants), F.lit(self.as_of_ms))

    @property
    def lost_until(self) -> dict[int, int]:
        """By partition, the offset after its last loss."""
        losses = self.coverage.losses_of_topic(CONSUMER_OFFSETS)
        return {number: max(each.end for each in found) for number, found in losses.items()}

    def is_known(self) -> Column:
        """Return whether all of a stretch is known that `exposures` tells of.

        What compaction left before its end is the last commit of each key; of what lies before a
        loss nobody knows whether it was.
        """
        shown = F.coalesce(of_partition(self.compacted_until), F.lit(0))
        whole = F.coalesce(of_partition(self.lost_until), F.lit(0))
        return (F.col("to_offset") > shown) & (F.col("commit_position") >= whole)

    def periods(self, decoded: Decoded) -> DataFrame:
        """Return the time observed of each group that ever committed.

        Returns:
            `coordinator_partition`, `group_id`, `observed_from_ms` and `observed_to_ms` (bigint),
            and `bound` (what bounds it: `COMPACTED` or `LOST`, null where the group began then).
        """
        commits = decoded["offset_commit"].select(
            F.col("partition").alias("coordinator_partition"),
            F.col("key.group").alias("group_id"),
            "offset",
            F.coalesce(F.unix_millis("timestamp"), F.col("value.commit_timestamp")).alias("at_ms"),
        )
        shown = F.coalesce(of_partition(self.compacted_until), F.lit(0))
        whole = F.coalesce(of_partition(self.lost_until), F.lit(0))
        is_shown = F.col("offset") >= F.greatest(shown, whole)
        by_group = commits.groupBy("coordinator_partition", "group_id").agg(
            F.min("at_ms").alias("first_ms"),
            F.min(F.when(is_shown, F.col("at_ms"))).alias("shown_ms"),
        )
        of_partitions = by_group.groupBy("coordinator_partition").agg(
            F.min("shown_ms").alias("since_ms")
        )
        since = F.when(F.greatest(shown, whole) > 0, F.coalesce("since_ms", self.now_ms))
        begins_later = since.isNull() | (F.col("first_ms") >= since)
        return (
            by_group.join(F.broadcast(of_partitions), "coordinator_partition")
            .withColumn(
                "bound", F.when(~begins_later, F.when(whole >= shown, LOST).otherwise(COMPACTED))
            )
            .withColumn("observed_to_ms", self.now_ms)
            .withColumn(
                "observed_from_ms",
                F.least(F.greatest("first_ms", since), F.col("observed_to_ms")),
            )
            .select(
                "coordinator_partition", "group_id", "observed_from_ms", "observed_to_ms", "bound"
            )
        )
