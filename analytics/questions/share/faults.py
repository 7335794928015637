"""The table `share_faults`: records of share state that contradict those before them, and phases.

What no share coordinator writes in an intact log (``ShareCoordinatorShard``): state epochs,
snapshot epochs, leader epochs and start offsets go forward only; each snapshot is one ahead of the
one before, each update names the last; no record is delivered more often than the limit, or leaves
a delivery state that is final. A state that is initialised anew begins again: nothing is held
against what was before a deletion.

Which delivery state may be left for which, KIP-932 says: its table of transitions has no way out of
Acknowledged and Archived, and what shipped has one way out of Archiving (KIP-1191). What a record
stores of an offset is so held against what an earlier one of the same run stored of it. What a
record stores below its own start offset never counts.

What is about to be created or deleted for too long is stuck; that is a fault, too.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from analytics.contracts import instant
from analytics.questions.share.group_pictures import DELETING, INITIALIZING
from analytics.questions.share.settings import ASSUMED
from analytics.questions.share.share_log import HOME, KEY, first_covers
from analytics.questions.share.status import moment
from analytics.questions.share.window import STATE_NAMES
from analytics.replay.share_fold import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    SNAPSHOT,
    TOMBSTONE,
    UNCHANGED,
    UPDATE,
)
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from analytics.questions.share.share_log import ShareLog
    from schemas.share_rules import ShareRules

FAULTS: Final = pl.Schema(
    {
        **dict.fromkeys(("group_id", "topic_id", "topic"), pl.String()),
        "partition": pl.Int32(),
        "fault": pl.String(),
        "at": pl.Datetime("us", "UTC"),
        "before": pl.Int64(),
        "found": pl.Int64(),
        "is_assumed": pl.Boolean(),
        "record_topic": pl.String(),
        "coordinator_partition": pl.Int32(),
        "record_offset": pl.Int64(),
    }
)
"""The columns of `share_faults`."""

OVER_LIMIT: Final = "delivery_count_over_limit"
_CONTRADICTION: Final = pl.Schema(
    {"record": pl.Int64(), "fault": pl.String(), "before": pl.Int64(), "found": pl.Int64()}
)
"""A record, a word for the fault, what was before, and what it says; -1 is nothing."""


class _Check(NamedTuple):
    """What is held against what was before: which rows are faults, what was, what is."""

    fault: str
    is_fault: pl.Expr
    before: pl.Expr
    found: pl.Expr


def state_faults(rows: pl.DataFrame, log: ShareLog, rules: ShareRules) -> pl.DataFrame:
    """Return the faults of the records of share partitions.

    Args:
        rows: The table `share_backlog`: whose records are looked at.
        log: The records up to the instant.
        rules: Which delivery state may follow which.

    Returns:
        `FAULTS`.
    """
    names = ("topic", "delivery_count_limit", "delivery_count_limit_source")
    shares = log.shares.with_columns(pl.col("partition").cast(rows.schema["partition"]))
    of_shares = shares.join(rows.select(*KEY, *names, _SINCE), KEY, "inner")
    found = pl.concat(
        [
            _CONTRADICTION.to_frame(),
            *_found(log.records, [*_epochs(), *_starts()]),
            *_found(_with_limits(log, of_shares), list(_ranges())),
            _first_of_record(forbidden_transitions(log, rules.followers())),
        ]
    )
    is_assumed = (pl.col("fault") == OVER_LIMIT) & (pl.col(names[2]) == ASSUMED)
    return (
        log.of_records(found, "share", "at", "offset")
        .join(of_shares, "share", "inner")
        .with_columns(
            instant(pl.col("at")).alias("at"),
            *(pl.when(pl.col(name) != NONE).then(name).alias(name) for name in ("before", "found")),
            is_assumed=is_assumed,
            record_topic=pl.lit(SHARE_GROUP_STATE),
            record_offset="offset",
        )
        .select(pl.col(name).cast(kind) for name, kind in FAULTS.items())
    )


_STUCK: Final = tuple(f"stuck_{phase}" for phase in (INITIALIZING, DELETING))


def faults_in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows of `share_faults`: those of state in the order of its log, then stuck phases.

    Phases are in the order of what they are, and of their groups.
    """
    is_stuck = pl.col("fault").is_in(_STUCK)
    of_state = [pl.when(~is_stuck).then(name) for name in (HOME, "record_offset", "fault")]
    phase = pl.when(is_stuck).then(pl.col("fault") == _STUCK[-1])
    of_phase = [pl.when(is_stuck).then(name) for name in ("group_id", "topic", *KEY[1:])]
    return rows.sort(is_stuck, *of_state, phase, *of_phase, maintain_order=True)


NONE: Final = -1
_SINCE: Final = "delivery_count_limit_since"


def _found(rows: pl.DataFrame, checks: Sequence[_Check]) -> Iterator[pl.DataFrame]:
    """Yield what checks find; one row a record, however many of its ranges are such."""
    columns = {
        f"{place}_{name}": expression
        for place, check in enumerate(checks)
        for name, expression in zip(check._fields[1:], check[1:], strict=True)
    }
    held = rows.select("record", **columns)
    are_wrong = held.select(pl.selectors.ends_with("_is_fault").any()).row(0)
    for place, check in enumerate(checks):
        # Of most states nothing is wrong.
        if not are_wrong[place]:
            continue
        wrong = held.filter(f"{place}_is_fault").select(
            pl.col("record"),
            pl.lit(check.fault).alias("fault"),
            pl.col(f"{place}_before").alias("before"),
            pl.col(f"{place}_found").alias("found"),
        )
        yield _first_of_record(wrong)


def _first_of_record(found: pl.DataFrame) -> pl.DataFrame:
    first = found.unique("record", keep="first", maintain_order=True)
    return first.select(pl.col(name).cast(kind) for name, kind in _CONTRADICTION.items())


def _last_before(name: str, chosen: pl.Expr, within: str) -> pl.Expr:
    """Return what the last chosen record before each one says; null where there is none."""
    return pl.when(chosen).then(name).forward_fill().shift(1).over(within)


_IS_SNAPSHOT: Final = pl.col("kind") == SNAPSHOT
_IS_LED: Final = (pl.col("leader_epoch") != UNCHANGED) & (pl.col("kind") != TOMBSTONE)


def _epochs() -> Iterator[_Check]:
    epoch, last = pl.col("state_epoch"), _last_before("state_epoch", _IS_SNAPSHOT, "life")
    yield _Check("state_epoch_back", _IS_SNAPSHOT & (epoch < last), last, epoch)
    number, last = pl.col("snapshot_epoch"), _last_before("snapshot_epoch", _IS_SNAPSHOT, "life")
    yield _Check("snapshot_epoch_back", _IS_SNAPSHOT & (number <= last), last, number)
    yield _Check("snapshot_skipped", _IS_SNAPSHOT & (number > last + 1), last, number)
    is_other = (pl.col("kind") == UPDATE) & (number != last)
    yield _Check("other_snapshot", is_other, last, number)
    led, last = pl.col("leader_epoch"), _last_before("leader_epoch", _IS_LED, "run")
    yield _Check("leader_epoch_back", _IS_LED & (led < last), last, led)


def _starts() -> Iterator[_Check]:
    """A start offset that goes back ends a run; one that is set anew with the state is no fault."""
    start, last = pl.col("start"), pl.col("start").shift(1).over("life")
    epoch = _last_before("state_epoch", _IS_SNAPSHOT, "life").fill_null(NONE)
    is_renewed = _IS_SNAPSHOT & (pl.col("state_epoch") != epoch)
    is_blank = _IS_SNAPSHOT & (pl.col("leader_epoch") == 0) & (start == UNCHANGED)
    is_back = (last >= 0) & (start < last) & ~is_renewed & ~is_blank
    yield _Check("start_offset_back", is_back & (pl.col("kind") != TOMBSTONE), last, start)


def _with_limits(log: ShareLog, of_shares: pl.DataFrame) -> pl.DataFrame:
    """Return stored ranges with their records and `limit`, the most deliveries; 0 is not known."""
    limits = of_shares.select("share", "delivery_count_limit", _SINCE)
    rows = log.of_records(log.stored, "share", "kind", "at", "start")
    rows = rows.join(limits, "share", "left", maintain_order="left")
    # What held before a limit was set, nothing tells.
    was_set = pl.col("at") >= pl.col(_SINCE)
    return rows.with_columns(limit=pl.when(was_set).then("delivery_count_limit").fill_null(0))


def _ranges() -> Iterator[_Check]:
    first, last, state, count, limit, start = (
        pl.col(name) for name in ("first", "last", "state", "count", "limit", "start")
    )
    nothing = pl.lit(NONE)
    yield _Check(OVER_LIMIT, (count > limit) & (limit > 0), limit, count)
    yield _Check("inverted_range", last < first, first, last)
    is_unknown = (state < AVAILABLE) | (state > ARCHIVED)
    yield _Check("unknown_delivery_state", is_unknown, nothing, state)
    yield _Check("acquired_stored", state == ACQUIRED, nothing, state)
    yield _Check("range_below_start", _IS_SNAPSHOT & (first < start), start, first)


def forbidden_transitions(log: ShareLog, allowed: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Return the records that store what cannot follow what was stored before.

    Args:
        log: The records.
        allowed: By delivery state those that may follow; a state may always be stored again.

    Returns:
        `record`, `fault`, `before` (the state that was left), `found` (the one that follows): a row
        for each record and pair of states.
    """
    numbers = {name: number for number, name in STATE_NAMES.items()}
    ranges = log.of_records(log.ranges, "run", "start").with_columns(
        first=pl.max_horizontal("first", "start")
    )
    ranges = ranges.filter(pl.col("first") <= pl.col("last"))
    found = [_CONTRADICTION.to_frame()]
    for name, after in allowed.items():
        left = ranges.filter(pl.col("state") == numbers[name])
        if left.is_empty():
            continue
        pieces = first_covers(left, "run")
        others = [number for other, number in numbers.items() if other not in (name, *after)]
        follow = _that_follow(ranges.filter(pl.col("state").is_in(others)), pieces)
        found.append(
            follow.select(
                pl.col("record"),
                pl.lit("forbidden_transition").alias("fault"),
                pl.lit(numbers[name]).alias("before").cast(pl.Int64),
                pl.col("state").alias("found").cast(pl.Int64),
            ).sort("found", "record")
        )
    return pl.concat(found)


def _that_follow(ranges: pl.DataFrame, pieces: pl.DataFrame) -> pl.DataFrame:
    """Return the ranges that come after a piece which they overlap.

    Args:
        ranges: `record`, `run`, `first`, `last`.
        pieces: The same columns, in order of run and offset: those that a range overlaps follow
            each other.
    """
    places = pieces.with_row_index("place").with_columns(pl.col("place").cast(pl.Int64))
    rows = _beside(ranges, places, "first", "last", "forward").rename({"place": "begin"})
    rows = _beside(rows, places, "last", "first", "backward").rename({"place": "end"})
    rows = rows.filter(pl.col("begin") <= pl.col("end"))
    if rows.is_empty():
        return rows
    bounds = rows.select("begin", pl.col("end") + 1).to_numpy().ravel()
    record = np.append(pieces["record"].to_numpy(), np.iinfo(np.int64).max)
    earliest = np.minimum.reduceat(record, bounds)[::2]
    return rows.filter(pl.Series(earliest) < pl.col("record"))


def _beside(
    ranges: pl.DataFrame, places: pl.DataFrame, of_range: str, of_piece: str, strategy: str
) -> pl.DataFrame:
    """Add the place of the piece of the run that is next to each range."""
    return (
        ranges.sort("run", of_range)
        .join_asof(
            places.select("run", "place", on=of_piece),
            left_on=of_range,
            right_on="on",
            by="run",
            strategy="forward" if strategy == "forward" else "backward",
            check_sortedness=False,
            coalesce=False,
        )
        .drop("on")
    )


def stuck_phases(found: pl.DataFrame, rules: ShareRules, as_of: datetime) -> pl.DataFrame:
    """Return what is stuck: `FAULTS`; a topic that is being deleted has no partition.

    Args:
        found: Of `phases`.
        rules: After how long something is stuck.
        as_of: The instant.
    """
    limits = {INITIALIZING: rules.initializing.minutes, DELETING: rules.deleting.minutes}
    is_stuck = pl.any_horizontal(
        (pl.col("phase") == phase)
        & (pl.col("phase_since") <= moment(as_of - timedelta(minutes=minutes)))
        for phase, minutes in limits.items()
    )
    nothing = pl.lit(None)
    made = {
        **{name: pl.col(name) for name in ("group_id", "topic_id", "partition", HOME)},
        "topic": pl.coalesce("topic", "topic_id"),
        "fault": pl.format("stuck_{}", "phase"),
        "at": pl.col("phase_since"),
        "before": nothing,
        "found": nothing,
        "is_assumed": pl.lit(value=False),
        "record_topic": pl.lit(CONSUMER_OFFSETS),
        "record_offset": pl.col("record_offset"),
    }
    return found.filter(is_stuck).select(
        made[name].cast(kind).alias(name) for name, kind in FAULTS.items()
    )
