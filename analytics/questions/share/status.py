"""One word on each share partition: what a person on call should look into first. And the sums.

The backlog is added up by group and by topic, the worst word first. A share partition whose number
is not known is counted, so that a sum that lacks it says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import TIME
from analytics.epoch_times import EPOCH
from analytics.questions.sums import AT_LEAST, held_sum, wide_sum
from analytics.replayed.data_logs import EXACT

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.share_rules import ShareRules


# What is said of share partitions where a clock was set or wrong: times measure nothing then.

WENT_BACK: Final = "cannot tell how long it stood: the share coordinator's clock was set"
GROUPS_WENT_BACK: Final = "cannot tell how long it is in this phase: the clock of its group was set"


CANNOT_TELL: Final = "cannot_tell"
_UNMEASURED: Final = "unmeasured"
NOT_SEEN: Final = "whether a member owns it cannot be told: the dump does not show all of its group"
_NOT_SEEN: Final = "not seen"


def moment(time: datetime) -> pl.Expr:
    """Return an instant as a literal: far quicker made than of a time with its zone."""
    return pl.lit((time - EPOCH) // timedelta(microseconds=1), pl.Int64).cast(TIME)


def with_status(rows: pl.DataFrame, rules: ShareRules, as_of: datetime) -> pl.DataFrame:
    """Add `status`, and say in `reason` where it rests on who owns a partition and that is unknown.

    Args:
        rows: What `_conditions` look at, with `reason`.
        rules: After how long something counts.
        as_of: The instant.
    """
    conditions = list(_conditions(rules, as_of).items())
    status = pl.lit("behind")
    for word, condition in reversed(conditions):
        known = CANNOT_TELL if word in (_NOT_SEEN, _UNMEASURED) else word
        status = pl.when(condition).then(pl.lit(known)).otherwise(status)
    is_untold = (pl.col("status") == CANNOT_TELL) & pl.col("complete") & pl.col("members").is_null()
    return rows.with_columns(status=status).with_columns(
        reason=pl.when(is_untold).then(pl.lit(NOT_SEEN)).otherwise("reason")
    )


def _conditions(rules: ShareRules, as_of: datetime) -> dict[str, pl.Expr]:
    """Return when a share partition is in which status, worst first; see `rules/share.json`.

    The table `share_backlog` has what they look at; also `fault`, `has_state`, `done_behind`
    (offsets beyond the next one that are finally dealt with), `is_phase_unmeasured` and
    `is_stall_unmeasured` (a clock was set meanwhile).
    """

    def positive(name: str) -> pl.Expr:
        return (pl.col(name) > 0).fill_null(value=False)

    def is_older(name: str, minutes: float) -> pl.Expr:
        since = moment(as_of - timedelta(minutes=minutes))
        return (pl.col(name) <= since).fill_null(value=False)

    is_deleting, is_initializing = (
        pl.col("phase") == word for word in ("deleting", "initializing")
    )
    # Where the log ends is not known, what is stored may still show that records are left.
    is_silent = pl.col("log_end_offset").is_null() & ~positive("in_flight")
    is_stalled = is_older("stalled_since", rules.stalled.minutes)
    is_full = pl.col("window_offsets") >= pl.col("max_record_locks")
    return {
        "refused": pl.col("fault").is_not_null(),
        CANNOT_TELL: ~pl.col("complete") | pl.col("is_phase_unmeasured"),
        "orphan": pl.col("phase") == "orphan",
        "stuck_deleting": is_deleting & is_older("phase_since", rules.deleting.minutes),
        "deleting": is_deleting,
        "stuck_initializing": is_initializing & is_older("phase_since", rules.initializing.minutes),
        "initializing": is_initializing,
        "no_state": ~pl.col("has_state"),
        "not_started": pl.col("start_offset").is_null(),
        "lost_records": positive("lost_offsets"),
        "beyond_end": positive("offsets_beyond_end"),
        "caught_up": (pl.col("records_left") <= 0).fill_null(value=False),
        "moving": is_silent & _moved_lately(rules, as_of),
        "idle": is_silent,
        "unread": (pl.col("members") == 0).fill_null(value=False),
        _NOT_SEEN: pl.col("members").is_null(),
        "window_full": is_full.fill_null(value=False),
        _UNMEASURED: pl.col("is_stall_unmeasured"),
        "blocked": is_stalled & positive("done_behind"),
        "held_back": is_stalled & _is_held_back(),
        "stalled": is_stalled,
    }


def _is_held_back() -> pl.Expr:
    """Return where an open transaction keeps the next records.

    What lies below the last stable offset it does not keep; where that is not known, the
    transaction is taken to.
    """
    is_behind = pl.col("next_offset") >= pl.col("last_stable_offset")
    return pl.coalesce(is_behind, pl.col("transactional_id").is_not_null())


def _moved_lately(rules: ShareRules, as_of: datetime) -> pl.Expr:
    since = moment(as_of - timedelta(minutes=rules.stalled.minutes))
    is_exact = pl.col("start_moved_bound") == "exact"
    return ((pl.col("start_moved_at") > since) & is_exact).fill_null(value=False)


BY: Final = {"group": ("group_id",), "topic": ("topic",)}
"""What the backlog is added up by, and the columns that tell the sums apart."""

_SUMS: Final = (
    *("lag", "records_left", "in_flight", "near_limit_count", "archived_count", "lost_offsets"),
    "offsets_beyond_end",
)
_STUCK: Final = ("window_full", "blocked", "stalled")


def parts_of_sums(rows: pl.DataFrame, by: str, rules: ShareRules) -> pl.DataFrame:
    """Add up rows of whole groups, to be added to those of others (`summed`).

    Args:
        rows: The table `share_backlog`.
        by: A key of `BY`.
        rules: Which status is worse.
    """
    return (
        rows.with_columns(pl.when(pl.col("lag") >= 0).then("lag").alias("live"))
        .group_by(BY[by])
        .agg(
            pl.len().cast(pl.Int64).alias("partitions"),
            pl.col("group_id").n_unique().cast(pl.Int64).alias("groups"),
            *(wide_sum("live" if name == "lag" else name).alias(name) for name in _SUMS),
            # State beyond the end of a log says nothing of what is left to deliver.
            unknown_lag=pl.col("live").is_null().sum().cast(pl.Int64),
            stalled_since=pl.col("stalled_since").filter(pl.col("status").is_in(_STUCK)).min(),
            status=_rank(rules).min(),
        )
    )


def summed(parts: Iterable[pl.DataFrame], by: str, rules: ShareRules) -> pl.DataFrame:
    """Return sums of the backlog, worst status first.

    Args:
        parts: As `parts_of_sums` returns them, each of other groups.
        by: A key of `BY`.
        rules: Which status is worse.

    Returns:
        The columns of `BY`; `partitions`, `groups`; sums of what is known (`MOST`
        where they are that or more): `lag`, `records_left`, `in_flight`, `near_limit_count`,
        `archived_count`, `lost_offsets`, `offsets_beyond_end`; `lag_bound` (`at_least` where lags
        are left out, null where there is none), `unknown_lag` (partitions that no lag is added up
        of: it is not known, or their state is beyond the end of the log), `stalled_since` (the
        earliest of those that are blocked or stalled), `status` (the worst).
    """
    words = dict(enumerate(rules.statuses))
    sums = (
        pl.concat(parts)
        .group_by(BY[by])
        .agg(
            pl.col("partitions", "groups").sum(),
            *(held_sum(name).alias(name) for name in _SUMS),
            pl.col("unknown_lag").sum(),
            pl.col("stalled_since", "status").min(),
        )
        .with_columns(
            pl.col("status").replace_strict(words, return_dtype=pl.String),
            lag_bound=pl.when(pl.col("lag").is_not_null()).then(
                pl.when(pl.col("unknown_lag") > 0).then(pl.lit(AT_LEAST)).otherwise(pl.lit(EXACT))
            ),
        )
    )
    return sums_in_order(sums, by, rules)


def sums_of(rows: pl.DataFrame, by: str, rules: ShareRules) -> pl.DataFrame:
    """Return sums of the whole table `share_backlog` (`summed`)."""
    return summed([parts_of_sums(rows, by, rules)], by, rules)


def sums_in_order(sums: pl.DataFrame, by: str, rules: ShareRules) -> pl.DataFrame:
    """Return sums of other groups each in the order of `summed`."""
    order = [_rank(rules), pl.col("records_left"), *map(pl.col, BY[by])]
    descending = [False, True, *(False for _ in BY[by])]
    return sums.sort(order, descending=descending, nulls_last=True)


def _rank(rules: ShareRules) -> pl.Expr:
    words = {word: rank for rank, word in enumerate(rules.statuses)}
    return pl.col("status").replace_strict(words, return_dtype=pl.Int32)
