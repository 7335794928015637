"""What changed from one epoch of a group to the next, in numbers.

All are net changes: a member or a partition that came and went within one epoch counts for nothing.
"""

from __future__ import annotations

import polars as pl

from analytics.replay.groups.group_records import (
    CLASSIC,
    CURRENT,
    GROUP_KEY,
    MEMBER,
    STREAMS,
    TARGET,
)
from analytics.replay.groups.item_kinds import PRESENCE
from analytics.replay.history.groups.assignment_intervals import ITEM

EPOCH_KEY = (*GROUP_KEY, "life", "epoch_no")
COUNTS = ("joined", "left", "gained", "given_up", "moved", "ready")
_SETTLED_PARTITIONS, _SETTLED_TASKS = 0, 1  # STABLE, as stored
_READY = "ready"
_THING = tuple(name for name in ITEM if name not in {"member_id", "kind"})


def epoch_counts(steps: pl.DataFrame, intervals: pl.DataFrame) -> pl.DataFrame:
    """Return what changed in each epoch.

    Args:
        steps: Of `group_incarnations`.
        intervals: Of `assignment_intervals`.

    Returns:
        `EPOCH_KEY`; `joined` and `left` members; `gained` and `given_up`: pairs of a member and a
        partition or task; `moved`: of those gained, how many another member gave up; `ready`:
        members that reached the epoch and have nothing left to do (all int).
    """
    facts = pl.concat([_comings_and_goings(intervals), _states(steps)], how="diagonal")
    of_thing = (*EPOCH_KEY, "what", *_THING)
    net = facts.group_by(*of_thing, "member_id").agg(
        pl.col("delta").sum().alias("net"),
        pl.col("is_ready").sort_by("offset").last().fill_null(value=False),
    )
    things = net.group_by(of_thing).agg(
        (pl.col("net") > 0).sum().alias("came"),
        (pl.col("net") < 0).sum().alias("went"),
        pl.col("is_ready").sum().alias("are_ready"),
    )
    came, went = pl.col("came"), pl.col("went")
    is_member, is_item = pl.col("what") == PRESENCE, pl.col("what") == TARGET
    # Of what one member gained, as much moved as others lost of the same.
    sums = (
        came.filter(is_member),
        went.filter(is_member),
        came.filter(is_item),
        went.filter(is_item),
        pl.min_horizontal("came", "went").filter(is_item),
        pl.col("are_ready"),
    )
    return things.group_by(EPOCH_KEY).agg(
        each.sum().cast(pl.Int32).alias(name) for name, each in zip(COUNTS, sums, strict=True)
    )


def _comings_and_goings(intervals: pl.DataFrame) -> pl.DataFrame:
    kind = pl.col("kind")
    of_classic = (kind == CURRENT) & (pl.col("family") == CLASSIC)
    changes = intervals.filter((kind == TARGET) | of_classic | (kind == PRESENCE))
    # What ends with the life of the group was there to the end of its last epoch.
    until = pl.col("until")
    gone = changes.filter(until.is_not_null() & ~until.struct.field("is_closing"))
    return pl.concat([_change(changes, "at", 1), _change(gone, "until", -1)])


def _change(intervals: pl.DataFrame, place: str, delta: int) -> pl.DataFrame:
    is_presence = pl.col("kind") == PRESENCE
    return intervals.select(
        *GROUP_KEY,
        "life",
        pl.col(place).struct.field("epoch_no"),
        pl.when(is_presence).then(pl.lit(PRESENCE)).otherwise(pl.lit(TARGET)).alias("what"),
        *_THING,
        "member_id",
        pl.lit(delta, pl.Int32).alias("delta"),
    )


def _states(steps: pl.DataFrame) -> pl.DataFrame:
    """Return for every step of a member whether it is where the group's epoch wants it."""
    role, gone = pl.col("role"), pl.col("is_tombstone")
    is_task = pl.col("family") == STREAMS
    settled = pl.when(is_task).then(_SETTLED_TASKS).otherwise(_SETTLED_PARTITIONS)
    there = (
        (role == CURRENT)
        & ~gone
        & (pl.col("member_state") == settled)
        & (pl.col("epoch") == pl.col("epoch_at"))
    )
    told = ((role == CURRENT) | ((role == MEMBER) & gone)) & ~pl.col("is_closing")
    return steps.filter(told).select(
        *EPOCH_KEY,
        pl.lit(_READY).alias("what"),
        "member_id",
        there.fill_null(value=False).alias("is_ready"),
        "offset",
    )
