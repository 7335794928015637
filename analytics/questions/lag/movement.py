"""How groups move: what their commits advanced, when last, how often they changed nothing.

Commits are looked at partition by partition of each group, in the order of the log. Of each of them
a row is told, and one of each step back and each step forward that is far longer than those before.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame
from analytics.replay.log.log_times import doubtful_times
from analytics.replay.offsets.offset_history import TOPIC_RECREATED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.replay.log.log_times import LogClock
    from schemas.evaluation_rules import JumpRules

KEY: Final = ("group_id", "topic", "partition")
HISTORY: Final = (
    *(*KEY, "event", "committed_offset", "previous_offset", "advance"),
    *("commit_timestamp", "effective_timestamp", "epoch", "member_id", "origin"),
    *("topic_id", "cause", "complete", "coordinator_partition", "effective_offset"),
)
"""The columns of `offset_history` that are read."""

_ALL_RIGHT: Final[Mapping[int, LogClock]] = MappingProxyType({})
_COMMITTED: Final = ("commit", "transaction_commit")
_MOST: Final = (1 << 63) - 1
_PLACES: Final = 1 << 64
"""More than there are numbers of 64 bits."""


def in_order(history: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Put together what is of one partition of one group.

    Args:
        history: Rows of `offset_history` (`HISTORY`) of whole groups, in the order of the log.

    Returns:
        `KEY` and `key`, a number, in the order in which partitions are seen first. And the history
        by `key`, each partition's in the order of the log, with `row`, its place in that.
    """
    keys = history.select(KEY).unique(maintain_order=True).with_row_index("key")
    rows = history.with_row_index("row").join(keys, KEY, "left", maintain_order="left")
    return keys, rows.drop(KEY).sort("key", maintain_order=True)


def movement(
    keys: pl.DataFrame,
    commits: pl.DataFrame,
    samples: pl.DataFrame,
    rules: JumpRules,
    since_ms: int,
    clocks: Mapping[int, LogClock] = _ALL_RIGHT,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what was seen of each partition of each group, and how far it was moved at once.

    Args:
        keys: As `in_order` returns them.
        commits: Likewise.
        samples: Where logs ended, and when (`pace.log_ends`): no trend begins before the first.
        rules: What a jump forward is.
        since_ms: When the trend begins: the offset in force then is told.
        clocks: By partition of `__consumer_offsets`, where its clocks were set or wrong.

    Returns:
        `KEY`; `commits`, `unchanged_commits` (of the offset that was in force already), `rewinds`,
        `jumps`, `advanced` (records forward, steps back left out; null where commits between others
        may be missing); `timed_commits` and `timed_advanced`: those that have a time, and what they
        advanced by behind the first of them; `first_commit_at`, `last_commit_at`,
        `last_advance_at` (null where none advanced); `since_at` and `since_offset`: the offset in
        force when the trend begins; `highest_committed` for the topic of the last commit's id;
        `first_committed` for it and its `first_epoch`; `has_gaps`, whether commits may be missing
        before any of them, and `has_later_gaps`, before any but the first that has a time;
        `is_undated`, whether the times of some measure nothing. And the table `offset_moves`, in
        the order of the log.
    """
    begun = _since(keys, samples, since_ms)
    rows = commits.with_columns(**_known())
    rows = rows.with_columns(
        _before(_so_far(pl.col("is_timed"))).fill_null(0).alias("timed_before")
    )
    made = _jumps(rows.filter("is_made"), rules)
    made = _reached(_timed(made, begun))
    found = made.group_by("key", maintain_order=True).agg(_SUMMED)
    later = pl.col("has_gap") & (pl.col("timed_before") > 0)
    undated = pl.struct("coordinator_partition", "effective_offset").map_batches(
        lambda places: _are_doubtful(clocks, places), return_dtype=pl.Boolean
    )
    rows = rows.with_columns(
        later.alias("has_later_gap"), (undated & pl.col("is_made")).alias("is_undated")
    )
    gaps = rows.group_by("key", maintain_order=True).agg(
        pl.col("has_gap").any().alias("has_gaps"),
        pl.col("has_later_gap").any().alias("has_later_gaps"),
        pl.col("is_undated").any(),
    )
    found = keys.join(found, "key", maintain_order="left").join(
        gaps, "key", "left", maintain_order="left"
    )
    advanced = pl.when(~pl.col("has_later_gaps")).then("advanced")
    since = made["committed_offset"].gather(found["since_row"])
    found = found.with_columns(advanced.alias("advanced"), since.alias("since_offset"))
    return found.drop("key", "since_row"), _moves(made, keys)


def _are_doubtful(clocks: Mapping[int, LogClock], places: pl.Series) -> pl.Series:
    partitions, offsets = (
        places.struct.field(name).fill_null(-1).cast(pl.Int64).to_numpy()
        for name in ("coordinator_partition", "effective_offset")
    )
    return pl.Series(doubtful_times(clocks, partitions, offsets))


def _known() -> dict[str, pl.Expr]:
    # A commit of an offset below 0 commits none.
    is_made = pl.col("event").is_in(_COMMITTED) & pl.col("committed_offset").is_not_null()
    return {
        "is_made": is_made,
        # Records of the oldest message format have no time.
        "is_timed": is_made & pl.col("effective_timestamp").is_not_null(),
        "has_gap": ~pl.col("complete"),
    }


_IS_FIRST: Final = pl.col("key").ne_missing(pl.col("key").shift(1))
_IS_LAST: Final = pl.col("key").ne_missing(pl.col("key").shift(-1))
"""Of rows in the order of `key`. What is asked of each partition's is asked of all rows in one go:
there may be as many partitions as rows, and to go through each of them takes its time."""


def _before(column: pl.Expr) -> pl.Expr:
    """Return what the row before of the same partition has."""
    return pl.when(~_IS_FIRST).then(column.shift(1))


def _so_far(column: pl.Expr) -> pl.Expr:
    """Return the sum of a partition's rows up to each."""
    number = column.cast(pl.Int128)
    whole = number.cum_sum()
    return whole - pl.when(_IS_FIRST).then(whole - number).forward_fill()


def _latest(column: pl.Expr) -> pl.Expr:
    """Return the highest number of a partition's rows up to each; null where none has any."""
    base = pl.col("key").cast(pl.Int128) * _PLACES
    least = -_MOST - 1
    highest = (base + column.cast(pl.Int64).fill_null(least)).cum_max() - base
    return pl.when(highest > least).then(highest).cast(pl.Int64)


def _since(keys: pl.DataFrame, samples: pl.DataFrame, since_ms: int) -> pl.Series:
    """Return of each partition from when on a trend can be told."""
    place = ["topic", "partition"]
    first = samples.group_by(place).agg(pl.col("at_ms").first())
    at = pl.max_horizontal("at_ms", pl.lit(since_ms, pl.Int64)) * 1000
    found = keys.join(first, place, "left", maintain_order="left")
    return found.select(at.cast(pl.Datetime("us", "UTC"))).to_series()


def _jumps(made: pl.DataFrame, rules: JumpRules) -> pl.DataFrame:
    """Add what each commit changed, and who committed before it."""
    is_forward = (pl.col("advance") > 0).fill_null(value=False)
    made = made.with_columns(
        is_forward.alias("is_forward"),
        (pl.col("advance") == 0).alias("is_unchanged"),
        (pl.col("advance") < 0).fill_null(value=False).alias("is_back"),
        pl.when(is_forward).then("advance").otherwise(0).cast(pl.Int128).alias("step"),
    )
    made = made.with_columns(
        _before(_so_far(pl.col("is_forward"))).alias("steps"),
        # A commit may be of any offset: a sum never grows beyond what a number holds.
        _before(_so_far(pl.col("step")).clip(upper_bound=_MOST)).alias("advanced_before"),
        *(_before(pl.col(name)).alias(f"previous_{name}") for name in ("epoch", "member_id")),
        _before(_latest(pl.col("effective_timestamp"))).alias("previous_at"),
    )
    # Without a fraction: the mean of the steps before is what they add up to, shared out.
    is_far = pl.col("advance") // rules.times >= pl.col("advanced_before") // pl.col("steps")
    is_long = (pl.col("advance") >= rules.records) & (pl.col("steps") >= rules.after) & is_far
    return made.with_columns(
        (pl.col("is_forward") & is_long).fill_null(value=False).alias("is_jump"),
        pl.col("previous_at").cast(pl.Datetime("us", "UTC")),
    )


def _timed(made: pl.DataFrame, begun: pl.Series) -> pl.DataFrame:
    """Add when the trend begins, and which commits are not later; and what timed ones advanced."""
    since = pl.max_horizontal(begun.gather(made["key"]), "effective_timestamp")
    is_begun = pl.col("is_timed") & (pl.col("timed_before") == 0)
    made = made.with_columns(pl.when(is_begun).then(since).alias("since_at"))
    is_until = pl.col("effective_timestamp") <= pl.col("since_at").forward_fill()
    is_later = pl.col("is_timed") & (pl.col("timed_before") > 0)
    return made.with_columns(
        pl.when(is_until).then(pl.int_range(pl.len())).alias("since_row"),
        pl.when(is_later).then("step").otherwise(0).alias("timed_step"),
        pl.when("is_forward").then("effective_timestamp").alias("advance_at"),
    )


def _reached(made: pl.DataFrame) -> pl.DataFrame:
    """Add what commits for the present topic of that name have reached, and the first of them."""
    whose = pl.when(pl.col("topic_id").is_not_null()).then("key").forward_fill().shift(1)
    before = pl.when(whose == pl.col("key")).then(pl.col("topic_id").forward_fill().shift(1))
    is_other = (pl.col("topic_id") != before) | (pl.col("cause") == TOPIC_RECREATED)
    made = made.with_columns(is_other.fill_null(value=False).cum_sum().alias("life"))
    last = pl.when(_IS_LAST).then("life").backward_fill()
    is_begun = _IS_FIRST | (pl.col("life") != pl.col("life").shift(1))
    made = made.with_columns((pl.col("life") == last).alias("is_there"))
    first = pl.col("is_there") & is_begun
    return made.with_columns(
        pl.when("is_there").then("committed_offset").alias("reached"),
        pl.when(first).then("committed_offset").alias("first_committed"),
        pl.when(first).then("epoch").alias("first_epoch"),
    )


def _counted(flag: str) -> pl.Expr:
    return pl.col(flag).sum().cast(pl.Int64)


def _added(column: str) -> pl.Expr:
    return pl.col(column).sum().clip(upper_bound=_MOST).cast(pl.Int64)


_SUMMED: Final = (
    pl.len().cast(pl.Int64).alias("commits"),
    _counted("is_unchanged").alias("unchanged_commits"),
    _counted("is_back").alias("rewinds"),
    _counted("is_jump").alias("jumps"),
    _added("step").alias("advanced"),
    _counted("is_timed").alias("timed_commits"),
    _added("timed_step").alias("timed_advanced"),
    pl.col("effective_timestamp").min().alias("first_commit_at"),
    pl.col("effective_timestamp").max().alias("last_commit_at"),
    pl.col("advance_at").max().alias("last_advance_at"),
    pl.col("since_at").max(),
    pl.col("since_row").max(),
    pl.col("reached").max().alias("highest_committed"),
    pl.col("first_committed").max(),
    pl.col("first_epoch").max(),
)


def _moves(made: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the table `offset_moves`: when a move was that has no time is not known."""
    is_moved = (pl.col("is_back") | pl.col("is_jump")) & pl.col("is_timed")
    moved = made.filter(is_moved).sort("row").join(keys, "key", "left", maintain_order="left")
    kind = pl.when(pl.col("advance") > 0).then(pl.lit("jump")).otherwise(pl.lit("rewind"))
    return contract_frame(moved.with_columns(kind.alias("kind")), "offset_moves")
