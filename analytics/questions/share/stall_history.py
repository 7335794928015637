"""The table `share_stalls`: when share partitions stood still while there were records to deliver.

Of each run of a share partition (`share_log`) it follows from the log at which record the next
offset came to where: an offset is dealt with from the first record on that stores it as such, or
whose start offset lies beyond it, and the next offset is beyond all that are. It stood still from
one such record to the next; that was a stall from when a record at or beyond it was stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from analytics.contracts import contract_frame, instant
from analytics.questions.share.share_log import HOME, first_covers
from analytics.questions.share.status import WENT_BACK
from analytics.questions.share.window import NOT_STORED, is_done, state_name
from analytics.replay.log.log_times import NOBODY, LogClock
from analytics.replay.share_fold import SNAPSHOT

if TYPE_CHECKING:
    from analytics.questions.share.share_log import ShareLog

BLOCKED: Final = "blocked"
STALLED: Final = "stalled"
MOVED: Final = "moved"
RESET: Final = "reset"
EXACT: Final = "exact"
AT_LATEST: Final = "at_latest"
_NO_CLOCKS: Final[Mapping[int, LogClock]] = MappingProxyType({})
_MOST_PAIRS: Final = 2_000_000
"""So many ranges are held against stalls at a time, that memory does not grow with either."""

_ORDER: Final = ("group_id", "topic_id", "partition", "since")


def stall_history(
    log: ShareLog,
    least_ms: int,
    as_of_ms: int,
    gaps: Mapping[int, str],
    clocks: Mapping[int, LogClock] = _NO_CLOCKS,
) -> pl.DataFrame:
    """Return every stall that lasted, the longest first.

    Args:
        log: All records up to the instant that the files hold.
        least_ms: What stood for less is none.
        as_of_ms: The instant.
        gaps: By partition of the topic, what the dump lacks of it: what moved a start offset there
            may be among that.
        clocks: By partition of the topic, where its clocks were set or wrong. How long something
            stood by them is not told; what stood from one clock to another may have stood for long,
            and is a row.

    Returns:
        The columns of `share_stalls`, but names of topics.
    """
    found = _lasting(_stalls(log, as_of_ms), least_ms, as_of_ms, clocks)
    rows = _with_ranges(found, log).join(
        log.shares.drop(HOME), "share", "left", maintain_order="left"
    )
    lacking = pl.DataFrame(
        {HOME: list(gaps), "gap": list(gaps.values())}, {HOME: pl.Int64, "gap": pl.String}
    )
    rows = rows.join(lacking, HOME, "left", maintain_order="left")
    clock = pl.when(~pl.col("is_measured")).then(pl.lit(WENT_BACK))
    why = pl.concat_str("gap", clock, separator="; ", ignore_nulls=True)
    is_over = pl.col("ender").is_not_null()
    stored = pl.col("state").is_not_null()
    return (
        rows.with_columns(
            missing=pl.when(
                pl.any_horizontal(pl.col("gap").is_not_null(), ~pl.col("is_measured"))
            ).then(why)
        )
        .select(
            "group_id",
            "topic_id",
            pl.col("partition").cast(pl.Int32),
            pl.when(pl.col("done_behind") != 0)
            .then(pl.lit(BLOCKED))
            .otherwise(pl.lit(STALLED))
            .alias("kind"),
            "next_offset",
            instant(pl.col("since_ms")).alias("since"),
            pl.when("is_exact")
            .then(pl.lit(EXACT))
            .otherwise(pl.lit(AT_LATEST))
            .alias("since_bound"),
            instant(pl.col("until_ms")).alias("until"),
            pl.when("is_measured").then("duration_ms").alias("duration_ms"),
            pl.when(is_over & pl.col("is_last"))
            .then(pl.lit(RESET))
            .when(is_over)
            .then(pl.lit(MOVED))
            .alias("ended_by"),
            state_name(pl.when(stored).then("state").otherwise(NOT_STORED)).alias("blocking_state"),
            pl.col("count").cast(pl.Int32).alias("blocking_delivery_count"),
            "done_behind",
            pl.col(HOME).cast(pl.Int32),
            "record_offset",
            pl.col("missing").is_null().alias("complete"),
            "missing",
        )
        .pipe(longest_first)
    )


def longest_first(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows of `share_stalls`, the longest first."""
    order = [True, *[False] * len(_ORDER)]
    return rows.sort("duration_ms", *_ORDER, descending=order, nulls_last=True, maintain_order=True)


def named_stalls(stalls: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Return the table `share_stalls`: an id stands for a topic without a name.

    Args:
        stalls: Of `stall_history`.
        topics: The table `topics`: `topic`, `topic_id`.
    """
    known = topics.filter(pl.col("topic_id").is_not_null()).unique(
        "topic_id", keep="first", maintain_order=True
    )
    rows = stalls.join(known.select("topic_id", "topic"), "topic_id", "left", maintain_order="left")
    return contract_frame(rows.with_columns(pl.coalesce("topic", "topic_id")), "share_stalls")


def _stalls(log: ShareLog, as_of_ms: int) -> pl.DataFrame:
    """Return each time between two movements of the next offset in which something was there.

    Returns:
        `run`, `share`, `next_offset`; `since`, the record from which on it stood, and `until`, the
        one before which it did; `ender`, null where nothing has ended it; `is_last`: no movement of
        the run follows; `is_exact`; `since_ms`, `until_ms`, `duration_ms`.
    """
    new = (pl.col("kind") == SNAPSHOT) & (pl.col("snapshot_epoch") == 0)
    runs = (
        log.records.group_by("run", maintain_order=True)
        .agg(
            pl.col("share").first(),
            pl.col("record").first().alias("begin"),
            pl.col("record").last().alias("last_record"),
            (new | ~pl.col("is_first")).first().alias("is_told"),
        )
        .with_columns(
            is_ended=(pl.col("share") == pl.col("share").shift(-1)).fill_null(value=False)
        )
    )
    next_begun = pl.col("begun").shift(-1).over("run")
    is_over = ~pl.col("is_last") | pl.col("is_ended")
    moves = (
        _movements(log)
        .join(runs, "run", "left", maintain_order="left")
        .with_columns(
            is_last=next_begun.is_null(), until=next_begun.fill_null(pl.col("last_record") + 1)
        )
    )
    at = log.records.select("record", "at", "offset")
    # What was stored first may have been in the log before; and what begins a log was so before.
    is_exact = (pl.col("since") == pl.col("begun")) & (
        (pl.col("begun") > pl.col("begin")) | pl.col("is_told")
    )
    ended = pl.col("until_ms").fill_null(as_of_ms)
    return (
        _with_shown(moves, log)
        .join(log.shares.select("share", HOME), "share", "left", maintain_order="left")
        .filter(pl.col("shown") < pl.col("until"))
        .with_columns(
            since=pl.max_horizontal("begun", "shown"),
            # The last record of a run is no end by itself: the first of the next run is.
            ender=pl.when(is_over).then("until"),
        )
        .join(
            at.rename({"record": "since", "at": "since_ms", "offset": "since_offset"}),
            "since",
            "left",
            maintain_order="left",
        )
        .join(
            at.rename({"record": "ender", "at": "until_ms", "offset": "record_offset"}),
            "ender",
            "left",
            maintain_order="left",
        )
        .filter(
            pl.col("since_ms").is_not_null()
            & (pl.col("ender").is_null() | pl.col("until_ms").is_not_null())
        )
        .with_columns(is_exact=is_exact, duration_ms=ended - pl.col("since_ms"))
    )


def _with_shown(moves: pl.DataFrame, log: ShareLog) -> pl.DataFrame:
    """Add `shown`, the first record of the run that stores something at the offset or beyond."""
    reached = (
        log.of_records(log.ranges, "run")
        .with_columns(reach=pl.col("last").cum_max().over("run"))
        .unique(["run", "reach"], keep="first", maintain_order=True)
        .select("run", "reach", shown="record")
    )
    return (
        moves.sort("run", "next_offset")
        .join_asof(
            reached,
            left_on="next_offset",
            right_on="reach",
            by="run",
            strategy="forward",
            check_sortedness=False,
        )
        .filter(pl.col("shown").is_not_null())
    )


def _movements(log: ShareLog) -> pl.DataFrame:
    """Return by `run` the records by which the next offset came to where it then stood, and where.

    Returns:
        `run`, `begun` and `next_offset`, in this order.
    """
    known = log.records.filter(pl.col("start") >= 0).select("run", "record", "start")
    bases = known.group_by("run", maintain_order=True).agg(
        pl.col("record").first().alias("base_record"), pl.col("start").first().alias("base")
    )
    done = log.of_records(log.ranges.filter(is_done(pl.col("state"))), "run")
    pieces = first_covers(done, "run")
    cuts = (
        pl.concat(
            [
                known.select("run", cut="start"),
                pieces.select("run", cut="first"),
                pieces.select("run", cut=pl.col("last") + 1),
            ]
        )
        .join(bases, "run", "inner")
        .filter(pl.col("cut") >= pl.col("base"))
        .unique(["run", "cut"])
        .sort("run", "cut")
    )
    # An offset is dealt with by the first record that stores it so, or starts beyond it.
    begins = known.unique(["run", "start"], keep="first", maintain_order=True)
    cuts = cuts.join_asof(
        pieces,
        left_on="cut",
        right_on="first",
        by="run",
        strategy="backward",
        check_sortedness=False,
    ).join_asof(
        begins.rename({"record": "beyond"}),
        left_on="cut",
        right_on="start",
        by="run",
        strategy="forward",
        allow_exact_matches=False,
        check_sortedness=False,
    )
    is_in = pl.col("last") >= pl.col("cut")
    dealt_with = pl.min_horizontal(pl.when(is_in).then("record"), "beyond")
    never = log.records.height
    # An offset is passed when it and all before it are dealt with.
    passed = pl.max_horizontal(dealt_with.fill_null(never), "base_record").cum_max().over("run")
    cuts = cuts.with_columns(passed=passed)
    before = pl.coalesce(pl.col("passed").shift(1).over("run"), "base_record")
    return (
        cuts.select("run", begun=before, next_offset="cut", passed="passed")
        .filter(pl.col("passed") > pl.col("begun"))
        .drop("passed")
    )


def _lasting(
    found: pl.DataFrame, least_ms: int, as_of_ms: int, clocks: Mapping[int, LogClock]
) -> pl.DataFrame:
    """Return stalls that lasted, and those of which nothing measures whether they did.

    `is_measured` tells them apart.
    """
    size = len(found)
    is_other, is_doubtful = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    begun, ended = (
        found[name].fill_null(NOBODY).to_numpy() for name in ("since_offset", "record_offset")
    )
    is_open, homes = ended == NOBODY, found[HOME].to_numpy()
    for number, clock in clocks.items():
        here = homes == number
        after, until = begun[here], ended[here]
        is_other[here] = clock.is_other(after, until)
        is_doubtful[here] = clock.are_doubtful(after) | (clock.are_doubtful(until) & ~is_open[here])
    # A time beyond the instant is not believed.
    is_late = pl.max_horizontal("since_ms", "until_ms") > as_of_ms
    return (
        found.with_columns(is_unknown=pl.Series(is_other) | is_late)
        .with_columns(is_measured=~(pl.col("is_unknown") | pl.Series(is_doubtful)))
        .filter(pl.col("is_unknown") | (pl.col("duration_ms") >= least_ms))
    )


def _with_ranges(found: pl.DataFrame, log: ShareLog) -> pl.DataFrame:
    """Add what the run had stored when the stall ended.

    `state` and `count` are of its next offset, null where there was none; of all that was stored
    the greatest delivery count wins, as for coordinators. `done_behind` is how many offsets behind
    it were finally dealt with.
    """
    record = log.ranges["record"].to_numpy()
    low, high = (np.searchsorted(record, found[name].to_numpy()) for name in ("begin", "until"))
    slices = np.cumsum(high - low) // _MOST_PAIRS
    bounds = np.flatnonzero(np.diff(slices, prepend=-1, append=-1))
    found = found.with_row_index("stall").with_columns(
        pl.Series("low", low), pl.Series("high", high)
    )
    parts = [
        _held_against(found[begin:end], log)
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]
    held = pl.concat([_HELD.to_frame(), *parts])
    return found.join(held, "stall", "left", maintain_order="left").with_columns(
        pl.col("done_behind").fill_null(0)
    )


_HELD: Final = pl.Schema(
    {"stall": pl.UInt32(), "state": pl.Int8(), "count": pl.Int16(), "done_behind": pl.Int64()}
)


def _held_against(found: pl.DataFrame, log: ShareLog) -> pl.DataFrame:
    """Return of some stalls what is added to them."""
    pairs = (
        found.select("stall", "next_offset", range=pl.int_ranges("low", "high"))
        .explode("range")
        .drop_nulls("range")
    )
    pairs = pairs.hstack(log.ranges.drop("record")[pairs["range"]])
    offset, first, last = pl.col("next_offset"), pl.col("first"), pl.col("last")
    there = (
        pairs.filter((first <= offset) & (last >= offset))
        .sort("count", "state")
        .group_by("stall")
        .agg(pl.col("state").last(), pl.col("count").last())
    )
    before = pl.coalesce(last.cum_max().shift(1).over("stall"), first - 1)
    covered = (last - pl.max_horizontal(first, before + 1) + 1).clip(0)
    behind = (
        pairs.filter((first > offset) & is_done(pl.col("state")))
        .sort("stall", "first")
        .with_columns(done_behind=covered)
        .group_by("stall")
        .agg(pl.col("done_behind").sum())
    )
    held = there.join(behind, "stall", "full", coalesce=True)
    return held.select(pl.col(name).cast(kind) for name, kind in _HELD.items())
