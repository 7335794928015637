"""The table `clock_differences`: records whose times contradict each other.

A coordinator stores a commit with the time at which it was made, and a classic group with the time
at which it entered its state; the record has the time at which it was appended. All three are of
the same broker within less than a second, unless a client gave the time of its commit
(OffsetCommit up to version 1), a clock was set, or clocks of two leaders differ. Offsets expire by
these times (``OffsetExpirationConditionImpl``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import table_of_frame
from analytics.questions.usage.records import CLASSIC_GROUPS, COMMITS
from analytics.questions.usage.sums import ranking
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    import pyarrow as pa


COMMIT_TIME, STATE_TIME, APPEND_TIME = "commit_time", "state_time", "append_time"
_SAME: Final = ("partition", "clock", "group_id")
_APART: Final = pl.Schema(
    {
        "partition": pl.Int32(),
        "clock": pl.String(),
        "group_id": pl.String(),
        "first_offset": pl.Int64(),
        "first_at": pl.Int64(),
        "least": pl.Int64(),
        "most": pl.Int64(),
        "records": pl.Int64(),
    }
)
LATEST: Final = pl.Schema({"partition": pl.Int32(), "latest": pl.Int64()})


def stated_times(records: pl.DataFrame, limit_ms: int) -> pl.DataFrame:
    """Return where records state other times than those at which they were appended.

    A group that is stored anew stays in the state that it entered long ago; it cannot have entered
    one after its record was appended.

    Args:
        records: `RECORD`.
        limit_ms: Up to so many milliseconds are none; whole ones, as times may be any number of 64
            bits, which a fraction is not compared with.

    Returns:
        By `partition`, `clock` and `group_id` how far they are ahead, in milliseconds (`least`,
        `most`), in how many `records`, their `first_offset` and the first time, `first_at` (ms).
    """
    ahead = pl.col("stated_ms") - pl.col("time_ms")
    is_commit, is_state = (pl.col("table") == each for each in (COMMITS, CLASSIC_GROUPS))
    is_apart = (is_commit & (ahead.abs() > limit_ms)) | (is_state & (ahead > limit_ms))
    clock = pl.when(is_commit).then(pl.lit(COMMIT_TIME)).otherwise(pl.lit(STATE_TIME))
    return _apart(records.filter(is_apart), clock, pl.col("group_id"), ahead)


@dataclass
class AppendTimes:
    """Commits that were appended before an earlier one of their log, by their times.

    Attributes:
        limit_ms: Up to so many milliseconds are none.
        latest: By `partition` the `latest` time (ms) of the commits before.
    """

    limit_ms: int
    latest: pl.DataFrame = field(default_factory=LATEST.to_frame)
    _found: list[pl.DataFrame] = field(default_factory=list)

    def add(self, records: pl.DataFrame) -> None:
        """Take records in the order of the log: `RECORD`."""
        is_timed = (pl.col("table") == COMMITS) & pl.col("time_ms").is_not_null()
        rows = records.filter(is_timed).join(self.latest, "partition", "left")
        if not len(rows):
            return
        so_far = pl.max_horizontal("latest", pl.col("time_ms").cum_max().over("partition"))
        rows = rows.with_columns(latest=so_far)
        behind = pl.col("time_ms") - pl.col("latest")
        apart = rows.filter(behind < -self.limit_ms)
        if len(apart):
            self._found.append(_apart(apart, pl.lit(APPEND_TIME), pl.lit(None), behind))
        latest = pl.concat([self.latest, rows.select("partition", "latest")])
        self.latest = latest.group_by("partition").agg(pl.col("latest").max())

    def add_found(self, rows: pl.DataFrame) -> None:
        """Take what was found in a later piece of the log."""
        self._found.append(rows)

    @property
    def rows(self) -> pl.DataFrame:
        """What was found, as `stated_times` returns it."""
        return pl.concat([_APART.to_frame(), *self._found])


def clock_differences(made: pl.DataFrame) -> pa.Table:
    """Return the table `clock_differences`, the largest first.

    Args:
        made: What `stated_times` returned of all buckets, and the rows of `AppendTimes`.
    """
    found = (
        made.group_by(_SAME)
        .agg(
            pl.col("first_offset", "first_at", "least").min(),
            pl.col("most").max(),
            pl.col("records").sum(),
        )
        .with_columns(
            topic=pl.lit(CONSUMER_OFFSETS),
            most_ahead_ms=pl.when(pl.col("most") > 0).then("most"),
            most_behind_ms=pl.when(pl.col("least") < 0).then(-pl.col("least")),
            most_ms=pl.max_horizontal("most", -pl.col("least")),
            first_at=pl.from_epoch("first_at", "ms").dt.replace_time_zone("UTC"),
        )
    )
    return table_of_frame("clock_differences", MOST_APART.sort(found))


MOST_APART: Final = ranking(
    {"most_ms": True, "partition": False, "clock": False, "group_id": False}
)
"""The order of `clock_differences`."""


def _apart(rows: pl.DataFrame, clock: pl.Expr, group: pl.Expr, ahead: pl.Expr) -> pl.DataFrame:
    return (
        rows.select(
            "partition",
            clock.alias("clock"),
            group.cast(pl.String).alias("group_id"),
            "offset",
            "time_ms",
            ahead.alias("ahead"),
        )
        .group_by(_SAME)
        .agg(
            pl.col("offset").min().alias("first_offset"),
            pl.col("time_ms").min().alias("first_at"),
            pl.col("ahead").min().alias("least"),
            pl.col("ahead").max().alias("most"),
            pl.len().cast(pl.Int64).alias("records"),
        )
    )
