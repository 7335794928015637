"""Sums over records in parts, and by how much clocks of brokers differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import table_of_frame
from analytics.questions.sums import divided
from analytics.questions.usage.records import CLASSIC_GROUPS, COMMITS
from analytics.replay.log.row_columns import arrow_rows, polars_rows
from analytics.tables.parted_table import Order
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.tables.parted_table import PartedTable

# What `topic_usage` is added up by: of some whole groups, and of all together.

# The order of tables about usage: the largest first.


def ranking(columns: Mapping[str, bool]) -> Order:
    """Return an order in which nulls come last.

    Args:
        columns: By name whether the largest come first.
    """
    sort = partial(_ranked, by=list(columns), descending=list(columns.values()))
    return Order(list(columns), sort)


def _ranked(rows: pl.DataFrame, by: list[str], descending: list[bool]) -> pl.DataFrame:
    return rows.sort(by, descending=descending, nulls_last=True, maintain_order=True)


GROUP: Final = "group"
BY: Final = {
    "record-type": ("topic", "record_type"),
    GROUP: ("group_id",),
    "partition": ("topic", "partition"),
    "topic": ("topic",),
}
"""What `topic_usage` is added up by, and the columns that tell the sums apart."""
_SUMS: Final = (
    *("records", "bytes", "live_records", "live_bytes", "superseded_records", "superseded_bytes"),
    *("tombstoned_records", "tombstoned_bytes", "standing_tombstones", "standing_tombstone_bytes"),
    *("expired_records", "aborted_records", "aborted_bytes", "open_records", "open_bytes"),
    "unchanged_commits",
)


def most_first(by: str) -> Order:
    """Return the order of sums."""
    return ranking({"bytes": True, "records": True} | dict.fromkeys(BY[by], False))


def sums_of(usage: pl.DataFrame, by: str) -> pl.DataFrame:
    """Add up rows of `topic_usage` of whole groups.

    Args:
        usage: Rows of the table `topic_usage`.
        by: A key of `BY`.

    Returns:
        The columns of `BY`, the sums, and `groups`. Sums are null where no row has a number.
    """
    groups = pl.col("group_id").drop_nulls().n_unique().cast(pl.Int64)
    return usage.group_by(BY[by]).agg(*_added(), groups.alias("groups"))


def together(sums: Sequence[pl.DataFrame], by: str) -> pl.DataFrame:
    """Return sums of parts that share no group as one, with what is dead, the most bytes first.

    Returns:
        The columns of `sums_of`, `dead_records` and `dead_bytes`: superseded, tombstoned or
        aborted.
    """
    found = pl.concat(sums).group_by(BY[by]).agg(*_added(), pl.col("groups").sum())
    dead = [
        (
            pl.col(f"superseded_{unit}") + pl.col(f"tombstoned_{unit}") + pl.col(f"aborted_{unit}")
        ).alias(f"dead_{unit}")
        for unit in ("records", "bytes")
    ]
    return most_first(by).sort(found.with_columns(dead))


def _added() -> list[pl.Expr]:
    return [pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()) for name in _SUMS]


@dataclass(frozen=True)
class UsageSums:
    """Sums of `topic_usage` with the `share` of all bytes that each has; of any size.

    Attributes:
        sums: Of `together`.
        all_bytes: What all of them come to.
    """

    sums: PartedTable
    all_bytes: int

    @property
    def num_rows(self) -> int:
        """How many there are."""
        return self.sums.num_rows

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield them in order, some at a time; at least once."""
        for piece in self.sums.pieces():
            rows = self._with_share(piece)
            yield rows if columns is None else rows.select(columns)

    def first(self, most: int) -> pa.Table:
        """Return the first ones."""
        return self._with_share(self.sums.first(most))

    def whole(self) -> pa.Table:
        """Return all of them."""
        return self._with_share(self.sums.whole())

    def _with_share(self, rows: pa.Table) -> pa.Table:
        share = divided(pl.col("bytes").cast(pl.Float64), max(float(self.all_bytes), 1))
        return arrow_rows(polars_rows(rows).with_columns(share=share))


# The table `clock_differences`: records whose times contradict each other.
#
# A coordinator stores a commit with the time at which it was made, and a classic group with the
# time at which it entered its state; the record has the time at which it was appended. All three
# are of the same broker within less than a second, unless a client gave the time of its commit
# (OffsetCommit up to version 1), a clock was set, or clocks of two leaders differ. Offsets expire
# by these times (``OffsetExpirationConditionImpl``).

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
    """

    limit_ms: int
    _found: list[pl.DataFrame] = field(default_factory=list)
    _latest: pl.DataFrame = field(
        default_factory=pl.Schema({"partition": pl.Int32(), "latest": pl.Int64()}).to_frame
    )

    def add(self, records: pl.DataFrame) -> None:
        """Take records in the order of the log: `RECORD`."""
        is_timed = (pl.col("table") == COMMITS) & pl.col("time_ms").is_not_null()
        rows = records.filter(is_timed).join(self._latest, "partition", "left")
        if not len(rows):
            return
        so_far = pl.max_horizontal("latest", pl.col("time_ms").cum_max().over("partition"))
        rows = rows.with_columns(latest=so_far)
        behind = pl.col("time_ms") - pl.col("latest")
        apart = rows.filter(behind < -self.limit_ms)
        if len(apart):
            self._found.append(_apart(apart, pl.lit(APPEND_TIME), pl.lit(None), behind))
        latest = pl.concat([self._latest, rows.select("partition", "latest")])
        self._latest = latest.group_by("partition").agg(pl.col("latest").max())

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
