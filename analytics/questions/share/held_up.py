"""Open transactions on partitions that share groups read.

A group with ``share.isolation.level=read_committed`` is given records up to the last stable offset
only: the first record of the oldest open transaction keeps back all behind it. Which transactions
are open, and on which partitions, the transaction log says; not at which offset they began.

Since when start offsets of share partitions stand still while there are records to deliver.

The stored start offset lags: a write names it from before its own ranges count. So what is asked is
since when nothing below the *next offset* was left to deal with. In a run what is finally dealt
with stays so, and start offsets only go forward: with ``done(o)`` the first record after which an
offset ``o`` is acknowledged or archived, that was so from the first record on that comes at or
after ``done(o)`` of all ``o`` from the start offset then in force up to the next offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from analytics.contracts import instant
from analytics.questions.share.settings import ISOLATION, READ_COMMITTED
from analytics.questions.share.share_log import HOME, KEY, first_covers
from analytics.questions.share.window import is_done
from analytics.replay.share_fold import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.questions.share.settings import ShareSettings
    from analytics.questions.share.share_log import ShareLog
    from analytics.replay.log.log_times import LogClock
    from analytics.replayed.end_offsets import EndOffsetSamples


COLUMNS: Final = ("partition", "offset", "is_tombstone", "key", "value")
"""What is needed of the decoded table ``transaction_log``."""

OPEN: Final = (1, 2, 3)
"""Ongoing, PrepareCommit, PrepareAbort: no marker says yet that it is over."""

TRANSACTIONS: Final = pl.Schema(
    {
        "topic": pl.String(),
        "partition": pl.Int32(),
        "transactional_id": pl.String(),
        "transaction_since": pl.Datetime("us", "UTC"),
    }
)
STABLE: Final = "last_stable_offset"
STABLE_ENDS: Final = pl.Schema({"topic": pl.String(), "partition": pl.Int32(), STABLE: pl.Int64()})
"""Where logs end for who reads committed records only, as far as it is known."""
NO_TRANSACTION_LOG: Final = (
    "whether an open transaction holds records back cannot be told: the dump has no transaction "
    "log, and no log of the topic with its producer snapshots"
)
_PLACE: Final = ("topic", "partition")


def open_transactions(records: pl.DataFrame) -> pl.DataFrame:
    """Return the oldest open transaction of each partition that has one: `TRANSACTIONS`.

    Args:
        records: `COLUMNS`, cut at the instant.
    """
    if records.is_empty():
        return TRANSACTIONS.to_frame()
    key, value = pl.col("key").struct, pl.col("value").struct
    last = (
        records.select(
            "partition",
            "offset",
            "is_tombstone",
            transactional_id=key.field("transactional_id"),
            status=value.field("transaction_status"),
            since=value.field("transaction_start_timestamp_ms"),
            topics=value.field("transaction_partitions"),
        )
        .sort("partition", "offset")
        .unique("transactional_id", keep="last", maintain_order=True)
    )
    each = pl.col("topics").struct
    since = pl.when(pl.col("since") > 0).then("since")
    found = (
        last.filter(~pl.col("is_tombstone") & pl.col("status").is_in(OPEN))
        .filter(pl.col("topics").list.len() > 0)
        .explode("topics")
        .select(
            "transactional_id",
            transaction_since=instant(since),
            topic=each.field("topic"),
            partition=each.field("partition_ids"),
        )
        .filter(pl.col("partition").list.len() > 0)
        .explode("partition")
    )
    oldest = found.sort("transaction_since", "transactional_id", nulls_last=True)
    return oldest.unique(_PLACE, keep="first", maintain_order=True).select(
        pl.col(name).cast(kind) for name, kind in TRANSACTIONS.items()
    )


def with_isolation(
    rows: pl.DataFrame,
    settings: ShareSettings,
    transactions: pl.DataFrame | None,
    stable: pl.DataFrame,
) -> pl.DataFrame:
    """Add isolation levels, last stable offsets, and the open transactions.

    Args:
        rows: `group_id`, `topic`, `partition`, `reason`.
        settings: What groups go by.
        transactions: `TRANSACTIONS`; None where the dump has no transaction log.
        stable: `STABLE_ENDS`.
    """
    rows = settings.with_setting(rows, ISOLATION, "isolation_level").drop("isolation_level_since")
    is_committed = pl.col("isolation_level") == READ_COMMITTED
    known = stable.filter(pl.col(STABLE).is_not_null())
    rows = _of_places(rows, known, is_committed)
    if transactions is None:
        is_open_question = is_committed & pl.col(STABLE).is_null()
        why = pl.when(is_open_question).then(pl.lit(NO_TRANSACTION_LOG))
        rows = rows.with_columns(reason=pl.coalesce("reason", why))
        transactions = TRANSACTIONS.to_frame()
    return _of_places(rows, transactions, is_committed)


def _of_places(rows: pl.DataFrame, known: pl.DataFrame, is_committed: pl.Expr) -> pl.DataFrame:
    """Add what is known of partitions, for who reads committed records."""
    one = known.unique(_PLACE, keep="last", maintain_order=True)
    names = [name for name in known.columns if name not in _PLACE]
    return rows.join(one, _PLACE, "left", maintain_order="left").with_columns(
        pl.when(is_committed).then(name).alias(name) for name in names
    )


BEYOND_LOG: Final = np.iinfo(np.int64).max
"""A place after every other in a log."""


def stalls(
    rows: pl.DataFrame, log: ShareLog, samples: EndOffsetSamples, clocks: Mapping[int, LogClock]
) -> pl.DataFrame:
    """Return since when start offsets stand: a row for each share partition, in their order.

    Args:
        rows: Share partitions: `row`, `group_id`, `topic_id`, `topic`, `partition`, `next_offset`.
        log: The records up to the instant.
        samples: Where logs ended, and when.
        clocks: By partition of `__share_group_state`, where its clocks were set or wrong.

    Returns:
        `row`; in epoch milliseconds, null where nothing tells, `moved_at`, when the last offset
        before the next one was dealt with, and `since`: from then on nothing moved and there were
        records to deliver; `is_moved_exact` and `is_since_exact`, whether it was then, else it may
        have been earlier; `is_unmeasured`: a clock of the log was set since, or was wrong, so
        nothing tells how long that is.
    """
    of_rows = rows.select("row", *KEY, "topic", next="next_offset")
    numbers = log.numbers.with_columns(pl.col("partition").cast(rows.schema["partition"]))
    of_rows = of_rows.join(numbers, KEY, "left", maintain_order="left")
    found = progress(log, of_rows.select("share", "next").drop_nulls())
    at = log.records.select("record", "offset", at=pl.when(pl.col("at") != -1).then("at"))
    of_rows = of_rows.join(found, "share", "left", maintain_order="left").join(
        log.shares.select("share", HOME), "share", "left", maintain_order="left"
    )
    for name in ("moved", "beyond"):
        named = at.rename({"record": name, "at": f"{name}_at", "offset": f"{name}_offset"})
        of_rows = of_rows.join(named, name, "left", maintain_order="left")
    of_rows = _with_first_samples_beyond(of_rows, samples)
    # What is stored there was in the log: the earlier of both shows that there was something.
    shown = pl.min_horizontal("beyond_at", "seen_at")
    moved_at = pl.col("moved_at")
    is_exact = pl.col("moved").is_not_null() & (
        (pl.col("moved") != pl.col("begun")) | pl.col("is_told")
    )
    # The later of two times is only known where one clock wrote both.
    is_unmeasured = pl.any_horizontal(
        pl.lit(value=False), *(_is_in_doubt(number, clock) for number, clock in clocks.items())
    ).fill_null(value=False)
    known = moved_at.is_not_null() & shown.is_not_null()
    return of_rows.select(
        "row",
        "moved_at",
        is_moved_exact=is_exact.fill_null(value=False),
        since=pl.when(known & ~is_unmeasured).then(pl.max_horizontal(moved_at, shown)),
        is_since_exact=(is_exact & known & (moved_at >= shown)).fill_null(value=False),
        is_unmeasured=is_unmeasured,
    )


def _is_in_doubt(number: int, clock: LogClock) -> pl.Expr:
    """Return behind which records a clock was set, or which a wrong one wrote."""
    moved, beyond = pl.col("moved_offset"), pl.col("beyond_offset")
    last = max((last for _, last in clock.unexplained), default=-1)
    doubts = [
        moved < last,
        *(
            each.is_between(first, end, "left")
            for each in (moved, beyond)
            for first, end in clock.wrong
        ),
    ]
    return (pl.col(HOME) == number) & pl.any_horizontal(
        each.fill_null(value=False) for each in doubts
    )


def _with_first_samples_beyond(rows: pl.DataFrame, samples: EndOffsetSamples) -> pl.DataFrame:
    """Add `seen_at`: when the end of the log was first seen beyond the next offset."""
    counts = [end - first for first, end in samples.places.values()]
    places = pl.DataFrame(
        list(samples.places),
        {"topic": pl.String, "partition": rows.schema["partition"]},
        orient="row",
    )
    keys = places[np.repeat(np.arange(len(counts)), counts)]
    seen = keys.with_columns(
        pl.Series("end", samples.ends), pl.Series("seen_at", samples.times)
    ).with_columns(pl.col("end").cum_max().over("topic", "partition"))
    # Ends that go back show nothing new.
    seen = seen.unique(["topic", "partition", "end"], keep="first", maintain_order=True)
    order = rows.with_columns(pl.col("next").fill_null(BEYOND_LOG)).sort("next")
    joined = order.join_asof(
        seen.sort("end"),
        left_on="next",
        right_on="end",
        by=["topic", "partition"],
        strategy="forward",
        allow_exact_matches=False,
        check_sortedness=False,
    )
    return rows.join(joined.select("row", "seen_at"), "row", "left", maintain_order="left")


def progress(log: ShareLog, following: pl.DataFrame) -> pl.DataFrame:
    """Return since when start offsets are where they are.

    Args:
        log: The records up to the instant.
        following: `share` and its next offset at the instant, `next`.

    Returns:
        `share`, and records, null where there is none: `begun`, the first of the run that is in
        force; `moved`, the first after which nothing below the next offset was left to deal with;
        `beyond`, the first that stores a range at the next offset or beyond. `is_told` is whether
        the run begins in the log, with an initialisation or after another run: else what is true of
        its first record may have been so before.
    """
    current = current_records(log)
    starts = (pl.col("kind") == SNAPSHOT) & (pl.col("snapshot_epoch") == 0)
    runs = current.group_by("share").agg(
        pl.col("record").first().alias("begun"),
        (~pl.col("is_first") | starts).first().alias("is_told"),
    )
    of_records = current.select("record", "share").join(following, "share", "inner")
    ranges = log.ranges.join(of_records, "record", "inner", maintain_order="left")
    beyond = ranges.filter(pl.col("last") >= pl.col("next"))
    moved = _moved(current.join(following, "share", "inner", maintain_order="left"), ranges)
    return runs.join(moved, "share", "left").join(
        beyond.group_by("share").agg(pl.col("record").min().alias("beyond")), "share", "left"
    )


def current_records(log: ShareLog) -> pl.DataFrame:
    """Return the records of the runs in force."""
    return log.records.filter(pl.col("run") == pl.col("run").last().over("share"))


def _moved(records: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Return by `share` the first record at or after all that its start still leaves to deal with.

    Args:
        records: Of runs in force, in order: `record`, `share`, `start`, `next`.
        ranges: What they store, with `share` and `next`.
    """
    done = ranges.filter(is_done(pl.col("state")) & (pl.col("first") < pl.col("next")))
    done = done.with_columns(last=pl.min_horizontal("last", pl.col("next") - 1))
    pieces = first_covers(done, "share", ("record", "next"))
    above = pl.coalesce(pl.col("first").shift(-1).over("share"), "next")
    # The latest first record of all offsets from each piece up to the next offset.
    latest = pl.when(pl.col("last") + 1 == above).then("record").otherwise(BEYOND_LOG)
    pieces = pieces.select(
        "share", "first", "last", latest=latest.cum_max(reverse=True).over("share")
    )
    started = records.filter(pl.col("start") >= 0)
    held = started.select("record", "share", "start", "next").join_asof(
        pieces,
        left_on="start",
        right_on="first",
        by="share",
        strategy="backward",
        check_sortedness=False,
    )
    need = (
        pl.when(pl.col("start") >= pl.col("next"))
        .then(-1)
        .when(pl.col("last") >= pl.col("start"))
        .then("latest")
        .otherwise(BEYOND_LOG)
    )
    good = held.filter(need <= pl.col("record"))
    return good.group_by("share").agg(pl.col("record").min().alias("moved"))
