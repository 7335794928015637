"""The table `lag`: how far behind every partition is that a group reads, and whether it moves.

All but the last step is of whole groups, some at a time; what they give is put one below the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.questions.lag.burrow import NAMES, NOT_EVALUABLE, status_history
from analytics.questions.lag.movement import KEY, in_order, movement
from analytics.questions.lag.offsets import (
    FROM_START,
    IS_OWNED,
    LACKING,
    NEVER_COMMITTED,
    REMOVED,
    STABLE,
    STALE,
    WHY_HELD_BACK,
    partition_lag,
    read_partitions,
    with_first_commits,
    with_lost_unread,
    with_stable_lags,
)
from analytics.questions.lag.pace import log_ends, with_time_lags, with_trends
from analytics.questions.lag.retention import RETENTION, with_losses
from analytics.replay.log.losses import with_marks_of
from analytics.replayed.end_offsets import SAMPLES
from schemas import table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from analytics.questions.lag.offsets import GroupTables
    from analytics.replay.log.log_times import LogClock
    from schemas.evaluation_rules import LagRules

NO_COMMIT: Final = "no commit is in force"
NO_SAMPLES: Final = "Burrow's rules need end offsets at the times of the commits (--end-offsets)"
UNBELIEVED: Final = "cannot tell Burrow's status: the time of a commit is not believed"
FORGOTTEN: Final = "Burrow forgets a group without a commit for {} s"
MAY_BE_FORGOTTEN: Final = (
    "cannot tell Burrow's status: it forgets a group without a commit for {} s, and the time of "
    "another commit of the group is not believed"
)
SEVERAL_OWNERS: Final = "members own it"
CANNOT_TELL: Final = "cannot_tell"
NO_LOG_START: Final = "where the log starts is not known: retention may have taken what is next"

_NOT_EVALUABLE: Final = NAMES[NOT_EVALUABLE]
_TIME: Final = pl.Datetime("us", "UTC")


_SEGMENTS: Final = pl.Schema(
    {
        "topic": pl.String(),
        "partition": pl.Int32(),
        "base_offset": pl.Int64(),
        "size_bytes": pl.Int64(),
        "largest_timestamp": _TIME,
        "is_largest": pl.Boolean(),
    }
)


def _no_ends() -> pl.DataFrame:
    return log_ends(SAMPLES.empty_table())


@dataclass(frozen=True)
class LagQuestion:
    """What lag is evaluated from that is the same for all groups.

    Attributes:
        topics: The table `topics`.
        ends: `topic`, `partition`, `log_start_offset`, `log_end_offset` at the instant.
        samples: Where logs ended, and when (`pace.log_ends`).
        as_of: The instant.
        rules: How lag is judged.
        written: When records were written, by whatever clock.
        segments: Of the data topics' logs, the table `data_segments`.
        retention: How long topics keep their records (`RETENTION`).
        is_end: The instant is the end of the dump.
        stable: Where logs end for readers of committed records (`STABLE`).
        lacking: Groups whose earlier commits may be missing (`LACKING`).
        clocks: By partition of `__consumer_offsets`, where its clocks were set or wrong.
    """

    topics: pl.DataFrame
    ends: pl.DataFrame
    samples: pl.DataFrame
    as_of: datetime
    rules: LagRules
    written: pl.DataFrame = field(default_factory=_no_ends)
    segments: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_SEGMENTS))
    retention: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RETENTION))
    is_end: bool = True
    stable: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=STABLE))
    lacking: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LACKING))
    clocks: Mapping[int, LogClock] = field(default_factory=dict)

    @property
    def as_of_ms(self) -> int:
        """The instant in epoch milliseconds."""
        return round(self.as_of.timestamp() * 1000)


@dataclass(frozen=True)
class Lag:
    """What was found.

    Attributes:
        rows: The table `lag`, worst verdict first.
        statuses: The table `status_history`.
        moves: The table `offset_moves`.
    """

    rows: pl.DataFrame
    statuses: pl.DataFrame
    moves: pl.DataFrame


WORST_FIRST: Final = ("verdict", "lag", *KEY)
"""What the order of the table `lag` goes by."""


def worst_first(rows: pl.DataFrame, rules: LagRules) -> pl.DataFrame:
    """Return rows of the table `lag` in its order."""
    verdict = pl.col("verdict").cast(pl.Enum(list(rules.verdicts))).to_physical()
    order = [verdict, pl.col("lag"), *map(pl.col, KEY)]
    descending = [False, True, *(False for _ in KEY)]
    return rows.sort(order, descending=descending, nulls_last=True, maintain_order=True)


def evaluate_lag(asked: LagQuestion, groups: GroupTables, history: pl.DataFrame) -> Lag:
    """Return how far behind some groups are at the instant, and how their status came about.

    Args:
        asked: The question.
        groups: Their state at the instant.
        history: Rows of `offset_history` (`HISTORY`) up to the instant, in the order of the log.
    """
    as_of_ms, rules = asked.as_of_ms, asked.rules
    keys, commits = in_order(history)
    since_ms = as_of_ms - round(rules.trend.minutes * 60_000)
    progress, moves = movement(keys, commits, asked.samples, rules.jump, since_ms, asked.clocks)
    statuses = status_history(keys, commits, asked.samples, rules.burrow, as_of_ms)
    rows = partition_lag(read_partitions(groups, asked.topics), asked.ends, asked.topics)
    rows = rows.join(progress, KEY, "left").join(_last(statuses), KEY, "left")
    rows = _judged(rows, asked)
    rows = with_first_commits(rows, progress, asked.lacking)
    rows = with_lost_unread(rows, asked.lacking)
    rows = with_stable_lags(rows, asked.stable)
    rows = with_time_lags(rows, asked.samples, asked.written, as_of_ms)
    rows = with_trends(rows, asked.samples, as_of_ms, rules)
    rows = with_losses(rows, asked.segments, asked.retention, as_of_ms, is_end=asked.is_end)
    unknown = pl.when(LOSS_IS_UNKNOWN).then(pl.lit(NO_LOG_START))
    rows = rows.with_columns(
        pl.coalesce("reason", unknown, WHY_HELD_BACK).alias("reason"),
        verdict(rules, asked.as_of).alias("verdict"),
    )
    # Whether an offset is in force is what its status rests on.
    statuses = with_marks_of(statuses, rows.select(*KEY, "missing"), KEY)
    rows = worst_first(rows.select(_columns("lag")), rules)
    return Lag(rows, statuses.select(_columns("status_history")), moves)


def _columns(name: str) -> list[str]:
    return [each.name for each in table(name).columns]


def _last(statuses: pl.DataFrame) -> pl.DataFrame:
    """Return the status that each partition still has: `status`, `status_since`."""
    still = statuses.filter(pl.col("to_timestamp").is_null())
    return still.select(*KEY, "status", pl.col("from_timestamp").alias("status_since"))


def _judged(rows: pl.DataFrame, asked: LagQuestion) -> pl.DataFrame:
    """Say why Burrow's status cannot be told where it cannot; Burrow asks only for commits."""
    expire = asked.rules.burrow.expire_group
    oldest = pl.lit(asked.as_of - timedelta(seconds=expire), _TIME)
    at = pl.col("last_commit_at")
    is_unbelieved = (at > pl.lit(asked.as_of, _TIME)).fill_null(value=False)
    # When the group committed last, as far as times are believed, and if all are.
    groups = rows.group_by("group_id").agg(
        pl.when(~is_unbelieved).then(at).max().alias("newest"),
        is_unbelieved.any().alias("has_unbelieved"),
    )
    place = ["topic", "partition"]
    first = (pl.col("at_ms").first() * 1000).cast(_TIME).alias("first_sample")
    rows = rows.join(groups, "group_id", "left").join(
        asked.samples.group_by(place).agg(first), place, "left"
    )
    is_older, is_doubted = pl.col("newest") < oldest, pl.col("has_unbelieved")
    is_committed = pl.col("committed_offset").is_not_null() & ~pl.col("is_other_log")
    is_forgotten = is_older.fill_null(value=False) & ~is_doubted
    # A commit whose time is not believed may have been a short while ago.
    may_be = is_older.fill_null(value=True) & is_doubted
    status = (
        pl.when(is_committed & ~is_forgotten & ~may_be)
        .then(pl.col("status").fill_null(_NOT_EVALUABLE))
        .otherwise(pl.lit(_NOT_EVALUABLE))
    )
    is_untold = status == _NOT_EVALUABLE
    why = (
        pl.when(~is_committed)
        .then(pl.lit(NO_COMMIT))
        .when(is_forgotten)
        .then(pl.lit(FORGOTTEN.format(expire)))
        .when(is_unbelieved)
        .then(pl.lit(UNBELIEVED))
        .when(may_be)
        .then(pl.lit(MAY_BE_FORGOTTEN.format(expire)))
        .when(is_untold)
        .then(pl.lit(NO_SAMPLES))
    )
    # Of a partition that several members own none of them is `member_id`.
    count = pl.col("owners").list.len()
    several = pl.when(count > 1).then(pl.format("{} " + SEVERAL_OWNERS, count))
    reason = pl.coalesce("reason", several, why)
    # Its commits are there, and no longer in force.
    is_removed = (reason == FROM_START) & (pl.col("commits") > 0)
    # What the first sample showed may have been so before.
    is_from_first = (pl.col("status_since") <= pl.col("first_sample")).fill_null(value=True)
    return rows.with_columns(
        status.alias("status"),
        pl.when(~(is_untold | is_from_first)).then("status_since").alias("status_since"),
        pl.when(is_removed).then(pl.lit(REMOVED)).otherwise(reason).alias("reason"),
    ).drop("newest", "has_unbelieved", "first_sample")


_IS_BEHIND: Final = pl.col("lag") > 0
_MAY_BE_LOST: Final = _IS_BEHIND | (pl.col("lag").is_null() & (pl.col("kind") == STALE))
LOSS_IS_UNKNOWN: Final = (
    pl.col("log_start_offset").is_null() & pl.col("committed_offset").is_not_null() & _MAY_BE_LOST
).fill_null(value=False)
"""Whether retention may have taken what is next to read, unseen.

Where a log starts is not known then. Nothing can be lost of what is read to its end; where the end
is not known either, only what a group no longer reads would be judged worse.
"""


def verdict(rules: LagRules, as_of: datetime) -> pl.Expr:
    """Return our own verdict, where Burrow's words say too little; they are in `rules/lag.json`.

    Burrow sees commits and ends of logs. It is blind to who owns a partition, to what retention
    took, to a topic that is another one now, and to an offset that nobody reads any more.

    It is of `kind`, `owners`, `complete`, `is_other_log`, `lag`, `log_start_offset`,
    `lost_offsets`, `offsets_below_start`, `offsets_beyond_end`, `committed_offset`, `commits`,
    `last_commit_at`, `last_advance_at`.

    Args:
        rules: After how long without progress a partition is stuck.
        as_of: The instant.
    """
    since = pl.lit(as_of - timedelta(minutes=rules.stuck.minutes), _TIME)
    lag = pl.col("lag")
    is_stuck, is_quiet = (
        ~(pl.col(name) >= since).fill_null(value=False)
        for name in ("last_advance_at", "last_commit_at")
    )
    # One commit may have advanced from anywhere: only a second one shows that nothing moves.
    commits_again = pl.col("commits") > 1
    conditions = {
        CANNOT_TELL: ~pl.col("complete").fill_null(value=True) | LOSS_IS_UNKNOWN,
        "other_topic": pl.col("is_other_log"),
        "lost_records": pl.col("lost_offsets") > 0,
        "below_log_start": pl.col("offsets_below_start") > 0,
        "beyond_end": pl.col("offsets_beyond_end") > 0,
        "stale": pl.col("kind") == STALE,
        "idle": lag.is_null() & is_stuck,
        "moving": lag.is_null(),
        "caught_up": lag == 0,
        "never_committed": pl.col("kind") == NEVER_COMMITTED,
        "unread": ~IS_OWNED,
        "commits_without_progress": is_stuck & commits_again & ~is_quiet,
        "silent": is_stuck & is_quiet,
    }
    # Each word where its condition holds, and none of those before it.
    words = [pl.when(holds).then(pl.lit(word)) for word, holds in conditions.items()]
    return pl.coalesce(*words, pl.lit("behind"))
