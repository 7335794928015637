"""How old a lag is, whether it grows, and when it would be gone: by samples of where logs ended.

The first unread record was appended when the end of the log went beyond the committed offset.
Between two samples of the end that instant is interpolated, and is off by less than what lies
between them; before the first sample it is only known to be earlier. Nothing is extrapolated. What
producers' clocks say of records that are left to read is a bound.

The lag at the beginning of a stretch of time is where the log ended then, on the line between two
samples, minus the offset that was in force; how it changed until the instant is the trend. Rates
are of the history that is there. When a lag would be gone rests on these staying as they are.

The table `log_end_samples`: where logs ended, and when, so that lags can be drawn over time.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_schema
from analytics.questions.sums import divided
from analytics.replayed.end_offsets import snapshot_at

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.evaluation_rules import LagRules


GROWING, SHRINKING, STEADY = "growing", "shrinking", "steady"
EXACT, ESTIMATED, AT_LEAST, NEVER, UNKNOWN = "exact", "estimated", "at_least", "never", "unknown"

_PLACE: Final = ["topic", "partition"]
_SECOND_MS: Final = 1000.0
_SECOND_US: Final = 1e6
_LONGEST_MS: Final = float(1 << 53)
_DIGITS: Final = 1e6
"""Of a millisecond: a quotient of floats may be a little above a whole number that is meant."""


def log_ends(samples: pa.Table) -> pl.DataFrame:
    """Return where logs ended, and when, in the order of partition and time.

    Args:
        samples: Rows of `SAMPLES`; those without a time or an end are left out.

    Returns:
        `topic`, `partition`, `at_ms` in epoch milliseconds, `end`.
    """
    rows = pl.DataFrame(samples).filter(
        pl.col("timestamp").is_not_null() & pl.col("log_end_offset").is_not_null()
    )
    return rows.sort(*_PLACE, "timestamp", maintain_order=True).select(
        *_PLACE,
        (pl.col("timestamp").to_physical() // 1000).alias("at_ms"),
        pl.col("log_end_offset").alias("end"),
    )


def with_time_lags(
    rows: pl.DataFrame, samples: pl.DataFrame, written: pl.DataFrame, as_of_ms: int
) -> pl.DataFrame:
    """Add `time_lag_ms`, `time_lag_bound` and `time_lag_within_ms`.

    Where the committed offset is beyond the end, `auto.offset.reset` decides which record is read
    next: its age is not known.

    Args:
        rows: `topic`, `partition`, `committed_offset`, `lag`.
        samples: Where logs ended, and when (`log_ends`).
        written: When records were written, by clocks that may not ascend: at such a time, the
            offset after such a record.
        as_of_ms: The instant; later samples do not count.
    """
    rows = rows.with_row_index("row")
    is_known = pl.col("committed_offset").is_not_null() & pl.col("lag").is_not_null()
    behind = rows.filter(is_known & (pl.col("lag") > 0))
    behind = behind.select("row", *_PLACE, "committed_offset").sort("committed_offset")
    passed = _passed(behind, samples.filter(pl.col("at_ms") <= as_of_ms), as_of_ms)
    left = _oldest_left(behind, written, as_of_ms)
    rows = rows.join(passed, "row", "left", maintain_order="left")
    rows = rows.join(left, "row", "left", maintain_order="left")
    is_caught_up = is_known & (pl.col("lag") == 0)
    is_exact = pl.col("within").is_not_null()
    age = pl.when(is_exact).then("age").otherwise(pl.max_horizontal("age", "left_age"))
    bound = (
        pl.when(is_caught_up | is_exact)
        .then(pl.lit(EXACT))
        .when(age > 0)
        .then(pl.lit(AT_LEAST))
        .otherwise(pl.lit(UNKNOWN))
    )
    rows = rows.with_columns(
        pl.when(is_caught_up).then(0).when(is_exact | (age > 0)).then(age).alias("time_lag_ms"),
        bound.alias("time_lag_bound"),
        pl.when(is_caught_up).then(0).otherwise("within").alias("time_lag_within_ms"),
    )
    return rows.drop("row", "age", "within", "left_age")


def _passed(behind: pl.DataFrame, samples: pl.DataFrame, as_of_ms: int) -> pl.DataFrame:
    """Return since when ends are beyond offsets (`age`), and how far that may be off (`within`).

    Where it was so at the first sample already, it is so at least since then, and the second is not
    known.
    """
    samples = samples.with_columns(
        # An end may go back where a topic was made anew: the stretch that counts is the last one.
        pl.col("end").reverse().cum_min().reverse().over(_PLACE).alias("lowest"),
        pl.col("at_ms").first().over(_PLACE).alias("first_ms"),
        *(pl.col(name).shift(1).over(_PLACE).alias(f"{name}_before") for name in ("at_ms", "end")),
    )
    first = samples.unique([*_PLACE, "lowest"], keep="first", maintain_order=True)
    found = _met(behind, first.rename({"lowest": "reached"}))
    # On the line between two samples.
    grown = pl.max_horizontal(pl.col("end") - pl.col("end_before"), 1)
    took = pl.col("at_ms") - pl.col("at_ms_before")
    way = (pl.col("committed_offset") - pl.col("end_before")) / grown * took
    at = (pl.col("at_ms_before") + way.round(0)).cast(pl.Int64)
    age = as_of_ms - pl.when(took.is_not_null()).then(at).otherwise("first_ms")
    return found.select("row", age.clip(0).alias("age"), took.alias("within"))


def _oldest_left(behind: pl.DataFrame, written: pl.DataFrame, as_of_ms: int) -> pl.DataFrame:
    """Return the age of the oldest record that is left to read, of those whose time is known.

    One that is older may be left, too: this is a lower bound, however clocks differ.
    """
    oldest = pl.col("at_ms").reverse().cum_min().reverse().over(_PLACE)
    records = written.group_by(*_PLACE, "end").agg(pl.col("at_ms").min()).sort(*_PLACE, "end")
    records = records.select(*_PLACE, pl.col("end").alias("reached"), oldest.alias("at_ms"))
    age = (as_of_ms - pl.col("at_ms")).clip(0)
    return _met(behind, records).select("row", age.alias("left_age"))


def _met(behind: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the first end of their log that is beyond their offset."""
    found = behind.join_asof(
        ends.sort("reached"),
        left_on="committed_offset",
        right_on="reached",
        by=_PLACE,
        strategy="forward",
        allow_exact_matches=False,
        check_sortedness=False,
    )
    return found.filter(pl.col("at_ms").is_not_null())


def with_trends(
    rows: pl.DataFrame, samples: pl.DataFrame, as_of_ms: int, rules: LagRules
) -> pl.DataFrame:
    """Add how fast groups commit and read, and whether their lag grows.

    Args:
        rows: `topic`, `partition`, `lag`; `commits`, `unchanged_commits`, `timed_commits`,
            `timed_advanced`, `first_commit_at`, `last_commit_at`, `last_advance_at`, `since_at`,
            `since_offset`, `has_later_gaps`, `is_undated`, `complete`.
        samples: Where logs ended, and when (`log_ends`).
        as_of_ms: The instant.
        rules: What change is none, and after how long without an advance a group stands still.

    Returns:
        `unchanged_share`: of commits, those of the offset that was in force already.
        `commits_per_second`, `records_per_second`: from the first commit that has a time to the
        last; null where there are not two, where commits between them or behind them may be lost,
        and where a clock was set or wrong. `trend`: growing, shrinking, steady, or null where the
        end of the log or the offset in force is not known for a time before the instant.
        `trend_since`: that time.
        `lag_per_second`: how the lag changed since. `drain_ms`: until nothing is left to read;
        `drain_bound`: exact where nothing is, estimated where the trend goes on, at_least where the
        log's growth is not known, never where the lag does not shrink, else unknown: a single
        commit shows neither.
    """
    now_us = as_of_ms * _SECOND_MS
    # An offset may be as large as a number can be; a rate needs no more digits than these.
    last, first, advance = (
        _float(name) for name in ("last_commit_at", "first_commit_at", "last_advance_at")
    )
    is_whole = pl.col("complete").fill_null(value=True)
    unmeasured = pl.any_horizontal(pl.col("has_later_gaps", "is_undated").fill_null(value=False))
    # A time later than the instant is not believed, and commits may be lost: nothing tells how long
    # they took, by how much they advanced, nor which was in force when the trend begins. Nor does
    # anything where clocks were set or wrong.
    is_open = (last > now_us).fill_null(value=False) | (advance > now_us).fill_null(value=False)
    begun, since = _float("end_then") - _float("since_offset"), divided(_float("since_at"), 1000)
    rows = with_ends(rows, samples).with_columns(
        (is_open | unmeasured | ~is_whole).alias("is_open"),
        begun.alias("begun"),
        divided(as_of_ms - since, _SECOND_MS).alias("took"),
    )
    span = pl.when(~pl.col("is_open")).then(divided(last - first, _SECOND_US))
    is_moving = (now_us - advance <= rules.stuck.minutes * 60e6).fill_null(value=False)
    # A single commit of lately may have advanced: what was before it is not known.
    is_lately = now_us - last <= rules.stuck.minutes * 60e6
    may_move = ((pl.col("commits") <= 1) & is_lately).fill_null(value=False)
    rows = rows.with_columns(
        _over(_float("unchanged_commits"), _float("commits")).alias("unchanged_share"),
        _over(_float("timed_commits") - 1, span).alias("commits_per_second"),
        _over(_float("timed_advanced"), span).alias("records_per_second"),
        *_trend(rules),
    ).with_columns(
        pl.when(pl.col("trend").is_not_null()).then("since_at").alias("trend_since"),
        pl.when(is_moving)
        .then("records_per_second")
        .when(~(may_move | pl.col("is_open")))
        .then(0.0)
        .alias("reads"),
    )
    drain, bound = _drained()
    # Rounded as a whole number of small parts.
    drain = divided((drain * _DIGITS).round(0), _DIGITS).ceil().clip(upper_bound=_LONGEST_MS)
    rows = rows.with_columns(drain.cast(pl.Int64).alias("drain_ms"), bound.alias("drain_bound"))
    return rows.drop("is_open", "begun", "took", "reads", "end_then")


def _trend(rules: LagRules) -> tuple[pl.Expr, pl.Expr]:
    """Return `trend` and `lag_per_second`, by `begun`, `took` and `is_open`."""
    lag, begun = _float("lag"), pl.col("begun")
    change = lag - begun
    is_told = change.is_not_null() & (pl.col("took") > 0) & ~pl.col("is_open")
    share = rules.trend.steady_share * pl.max_horizontal(lag, begun)
    tolerance = pl.max_horizontal(pl.lit(float(rules.trend.steady_records)), share)
    trend = (
        pl.when(change > tolerance)
        .then(pl.lit(GROWING))
        .when(change < -tolerance)
        .then(pl.lit(SHRINKING))
        .otherwise(pl.lit(STEADY))
    )
    a_second = pl.when(is_told).then(change / pl.col("took"))
    return pl.when(is_told).then(trend).alias("trend"), a_second.alias("lag_per_second")


def _drained() -> tuple[pl.Expr, pl.Expr]:
    """Return in how many milliseconds a lag is gone (null: never, or not known), and how sure."""
    lag, reads, nothing = _float("lag"), pl.col("reads"), pl.lit(None, pl.Float64)
    cases = (
        (lag.is_null(), nothing, UNKNOWN),
        (lag <= 0, pl.lit(0.0), EXACT),
        (pl.col("trend") == SHRINKING, lag / -pl.col("lag_per_second") * _SECOND_MS, ESTIMATED),
        (pl.col("lag_per_second").is_not_null() | (reads <= 0), nothing, NEVER),
        (reads.is_not_null(), lag / reads * _SECOND_MS, AT_LEAST),
    )
    drain, bound = nothing, pl.lit(UNKNOWN)
    for condition, number, word in reversed(cases):
        holds = condition.fill_null(value=False)
        drain = pl.when(holds).then(number).otherwise(drain)
        bound = pl.when(holds).then(pl.lit(word)).otherwise(bound)
    return drain, bound


def with_ends(rows: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """Add `end_then`: where the log of each row's partition (`topic`, `partition`) ended then.

    On the line between the sample before and the one after; null where the time is not between two,
    or the log was made anew between them.

    Args:
        rows: `topic`, `partition`, `since_at`.
        samples: Where logs ended, and when (`log_ends`).
    """
    samples = samples.with_columns(
        pl.col(name).shift(-1).over(_PLACE).alias(f"{name}_after") for name in ("at_ms", "end")
    ).unique([*_PLACE, "at_ms"], keep="last", maintain_order=True)
    whole = pl.col("since_at").to_physical() // 1000
    asked = rows.with_row_index("row").select("row", *_PLACE, "since_at", whole.alias("then_ms"))
    found = asked.filter(pl.col("then_ms").is_not_null()).sort("then_ms").join_asof(
        samples.sort("at_ms"),
        left_on="then_ms",
        right_on="at_ms",
        by=_PLACE,
        strategy="backward",
        check_sortedness=False,
    )  # fmt: skip
    at = divided(_float("since_at"), 1000)
    grown = pl.col("end_after") - pl.col("end")
    took = pl.max_horizontal(pl.col("at_ms_after") - pl.col("at_ms"), 1)
    line = pl.col("end") + grown * ((at - pl.col("at_ms")) / took)
    end = pl.when(at == pl.col("at_ms")).then(_float("end")).when(grown >= 0).then(line)
    found = found.select("row", end.alias("end_then"))
    return rows.with_row_index("row").join(found, "row", "left", maintain_order="left").drop("row")


def _float(name: str) -> pl.Expr:
    """Return numbers; of times their microseconds."""
    return pl.col(name).to_physical().cast(pl.Float64)


def _over(amount: pl.Expr, whole: pl.Expr) -> pl.Expr:
    return pl.when(whole > 0).then(amount / whole)


SAMPLES: Final = "log_end_samples"
MOST: Final = 40
"""So many of a partition: the first, the last, and others as far apart as there are."""


def end_samples(samples: pl.DataFrame, state: ReplayedWorkspace, as_of_ms: int) -> pl.DataFrame:
    """Return the table.

    Args:
        samples: Where logs ended, and when (`pace.log_ends`).
        state: A replayed workspace: where logs ended when a snapshot began is known, too.
        as_of_ms: The instant; later samples do not count.
    """
    known = pl.concat([samples, _first_answers(state).cast(samples.schema)])
    ends = (
        known.filter(pl.col("at_ms") <= as_of_ms)
        .group_by(*_PLACE, "at_ms")
        .agg(pl.col("end").max())
        .sort(*_PLACE, "at_ms")
    )
    number, count = pl.int_range(pl.len()).over(_PLACE), pl.len().over(_PLACE)
    step = (count - 1) / (MOST - 1)
    # Of forty places the row that each comes to first.
    place = (number / step).floor()
    is_first_there = place != ((number - 1) / step).floor()
    is_kept = (count <= MOST) | (number == 0) | (number == count - 1) | is_first_there
    return (
        ends.filter(is_kept)
        .select(
            *_PLACE,
            (pl.col("at_ms") * 1000).cast(pl.Datetime("us", "UTC")).alias("at"),
            pl.col("end").alias("log_end_offset"),
        )
        .cast(contract_schema(SAMPLES))
    )


def _first_answers(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return where logs ended when a snapshot began: `topic`, `partition`, `at_ms`, `end`."""
    snapshot = snapshot_at(state)
    rows = (
        []
        if snapshot is None
        else [
            (topic["topic"], number, _milliseconds(snapshot["taken_at"]), end)
            for topic in snapshot["topics"]
            for number, _, _, end, _ in topic["partitions"]
            if end is not None
        ]
    )
    kinds = {"topic": pl.String, "partition": pl.Int32, "at_ms": pl.Int64, "end": pl.Int64}
    return pl.DataFrame(rows, kinds, orient="row")


def _milliseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000)
