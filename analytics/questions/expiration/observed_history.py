"""From where on the log shows all that happened to the offsets of a group.

A what-if speaks for the time observed: from then on, up to the instant. Compaction, losses and the
group's own beginning bound it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.log_clocks import clocks_of_topic
from analytics.replay.log.losses import of_partition
from analytics.replay.offsets.commit_rows import GROUP
from schemas import CONSUMER_OFFSETS

COMPACTED = "history before that was compacted"
LOST = "records before that are lost"
CLOCK_SET_BACK = "a clock was set back in the period: how long offsets were idle cannot be told"


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
    def now_ms(self) -> pl.Expr:
        """The instant of a row's `coordinator_partition`."""
        return pl.coalesce(of_partition(self.instants), pl.lit(self.as_of_ms, pl.Int64))

    @cached_property
    def lost_until(self) -> dict[int, int]:
        """By partition, the offset after its last loss."""
        losses = self.coverage.losses_of_topic(CONSUMER_OFFSETS)
        return {number: max(each.end for each in found) for number, found in losses.items()}

    @property
    def _compacted_until(self) -> pl.Expr:
        return of_partition(self.compacted_until).fill_null(0)

    @property
    def _whole(self) -> pl.Expr:
        return of_partition(self.lost_until).fill_null(0)

    @property
    def _is_set_back(self) -> pl.Expr:
        clocks = clocks_of_topic(self.coverage.clocks, CONSUMER_OFFSETS)
        return of_partition(dict.fromkeys(clocks, 1)).is_not_null()

    def is_known(self) -> pl.Expr:
        """Return whether all of a stretch is known that `exposures` tells of.

        What compaction left before its end is the last commit of each key; of what lies before a
        loss nobody knows whether it was.
        """
        return (pl.col("to_offset") > self._compacted_until) & (
            pl.col("commit_position") >= self._whole
        )

    def group_times(self, commits: pl.DataFrame) -> pl.DataFrame:
        """Return when each group committed first, and first where history is whole.

        Args:
            commits: Of `places_and_names`: of whole groups.

        Returns:
            `GROUP_KEY`, `first_ms` and `shown_ms` (bigint; null where it never did), and
            `is_set_back` (boolean: a clock was set back in its partition).
        """
        at_ms = pl.coalesce(pl.col("committed_at").dt.epoch("ms"), "commit_ms")
        is_shown = pl.col("record_offset") >= self._whole_from
        told = commits.select(
            GROUP, *GROUP_KEY, at_ms.alias("first_ms"), is_shown.alias("is_shown")
        )
        shown = pl.when("is_shown").then("first_ms").alias("shown_ms")
        return (
            told.with_columns(shown)
            .group_by(GROUP)
            .agg(pl.col(GROUP_KEY).first(), pl.col("first_ms", "shown_ms").min())
            .drop(GROUP)
            .with_columns(self._is_set_back.alias("is_set_back"))
        )

    def periods(self, times: pl.DataFrame, since: pl.DataFrame) -> pl.DataFrame:
        """Return the time observed of each group that ever committed.

        Args:
            times: Of `group_times`.
            since: Of `shown_since`, of all groups of the partitions that `times` has rows of.

        Returns:
            `GROUP_KEY`, `observed_from_ms` and `observed_to_ms` (bigint), and `bound` (what bounds
            it: `COMPACTED` or `LOST`, null where nothing was taken). A group that has its first
            commit behind what was compacted may have had others before, and their tombstones.
            `unmeasured`: why times do not tell how long offsets were idle; null where they do.
        """
        began = pl.when(self._whole_from > 0).then(pl.coalesce("began_ms", self.now_ms))
        lacks = (
            pl.when(self._whole >= self._compacted_until)
            .then(pl.lit(LOST))
            .otherwise(pl.lit(COMPACTED))
        )
        observed_from = pl.max_horizontal("first_ms", "since_ms")
        told = times.join(since, on="coordinator_partition", how="left", maintain_order="left")
        return told.with_columns(began.alias("since_ms")).select(
            *GROUP_KEY,
            pl.min_horizontal(observed_from, self.now_ms).alias("observed_from_ms"),
            self.now_ms.alias("observed_to_ms"),
            pl.when(pl.col("since_ms").is_not_null()).then(lacks).alias("bound"),
            pl.when("is_set_back").then(pl.lit(CLOCK_SET_BACK)).alias("unmeasured"),
        )

    @property
    def _whole_from(self) -> pl.Expr:
        return pl.max_horizontal(self._compacted_until, self._whole)


def shown_since(times: pl.DataFrame) -> pl.DataFrame:
    """Return `coordinator_partition` and `began_ms`, when a group committed first in what is whole.

    Args:
        times: Of `ObservedHistory.group_times`.
    """
    return times.group_by("coordinator_partition").agg(pl.col("shown_ms").min().alias("began_ms"))


def shown_since_in_all(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the same of all groups, of what it is of some."""
    return pl.concat(parts).group_by("coordinator_partition").agg(pl.col("began_ms").min())


def instants_of(times: pl.DataFrame, as_of_ms: int) -> dict[int, int]:
    """Return the instant of partitions that are cut at an offset, in epoch milliseconds.

    There it is the time of the last record before that.

    Args:
        times: `coordinator_partition` and `at` (timestamp) of the records that count.
        as_of_ms: No instant is later.
    """
    last = (
        times.group_by("coordinator_partition").agg(pl.col("at").max().dt.epoch("ms")).drop_nulls()
    )
    return {number: min(at, as_of_ms) for number, at in last.iter_rows()}
