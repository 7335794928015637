"""What changed from one epoch of a group to the next, in numbers.

All are net changes: a member or a partition that came and went within one epoch counts for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.groups.coordinator_log import PRESENCE
from analytics.replay.groups.group_records import (
    CLASSIC,
    CURRENT,
    GROUP_KEY,
    MEMBER,
    STREAMS,
    TARGET,
)
from analytics.replay.history.holdings import ITEM

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EPOCH_KEY = (*GROUP_KEY, "life", "epoch_no")
COUNTS = ("joined", "left", "gained", "given_up", "moved", "ready")
_SETTLED_PARTITIONS, _SETTLED_TASKS = 0, 1  # STABLE, as stored
_READY = "ready"
_THING = tuple(name for name in ITEM if name not in {"member_id", "kind"})


def epoch_counts(steps: DataFrame, runs: DataFrame) -> DataFrame:
    """Return what changed in each epoch.

    Args:
        steps: Of `steps_in_lives`.
        runs: Of `runs`.

    Returns:
        `EPOCH_KEY`; `joined` and `left` members; `gained` and `given_up`: pairs of a member and a
        partition or task; `moved`: of those gained, how many another member gave up; `ready`:
        members that reached the epoch and have nothing left to do (all int).
    """
    facts = _comings_and_goings(runs).unionByName(_states(steps))
    net = facts.groupBy(*EPOCH_KEY, "what", "thing", "member_id").agg(
        F.sum("delta").alias("net"), F.max_by("is_ready", "offset").alias("is_ready")
    )
    thing = net.groupBy(*EPOCH_KEY, "what", "thing").agg(
        F.count(F.when(F.col("net") > 0, 1)).alias("came"),
        F.count(F.when(F.col("net") < 0, 1)).alias("went"),
        F.count(F.when(F.col("is_ready"), 1)).alias("are_ready"),
    )
    is_member, is_item = F.col("what") == PRESENCE, F.col("what") == TARGET
    # Of what one member gained, as much moved as others lost of the same.
    sums = (
        F.when(is_member, F.col("came")),
        F.when(is_member, F.col("went")),
        F.when(is_item, F.col("came")),
        F.when(is_item, F.col("went")),
        F.when(is_item, F.least("came", "went")),
        F.col("are_ready"),
    )
    return thing.groupBy(*EPOCH_KEY).agg(
        *(F.sum(each).cast("int").alias(name) for name, each in zip(COUNTS, sums, strict=True))
    )


def _comings_and_goings(runs: DataFrame) -> DataFrame:
    wanted = (F.col("kind") == TARGET) | ((F.col("kind") == CURRENT) & (F.col("family") == CLASSIC))
    changes = runs.where(wanted | (F.col("kind") == PRESENCE))
    # What ends with the life of the group was there to the end of its last epoch.
    gone = changes.where(F.col("until").isNotNull() & ~F.col("until.is_closing"))
    return _change(changes, "at", 1).unionByName(_change(gone, "until", -1))


def _change(runs: DataFrame, place: str, delta: int) -> DataFrame:
    return runs.select(
        *GROUP_KEY,
        "life",
        f"{place}.epoch_no",
        F.when(F.col("kind") == PRESENCE, PRESENCE).otherwise(TARGET).alias("what"),
        _thing().alias("thing"),
        "member_id",
        F.lit(delta).alias("delta"),
        F.lit(None).cast("boolean").alias("is_ready"),
        f"{place}.offset",
    )


def _states(steps: DataFrame) -> DataFrame:
    """Return for every step of a member whether it is where the group's epoch wants it."""
    settled = F.when(F.col("family") == STREAMS, _SETTLED_TASKS).otherwise(_SETTLED_PARTITIONS)
    there = (
        (F.col("role") == CURRENT)
        & ~F.col("is_tombstone")
        & (F.col("member_state") == settled)
        & (F.col("epoch") == F.col("epoch_at"))
    )
    gone = (F.col("role") == MEMBER) & F.col("is_tombstone")
    told = ((F.col("role") == CURRENT) | gone) & ~F.col("is_closing")
    return steps.where(told).select(
        *EPOCH_KEY,
        F.lit(_READY).alias("what"),
        F.lit("").alias("thing"),
        "member_id",
        F.lit(0).alias("delta"),
        F.coalesce(there, F.lit(col=False)).alias("is_ready"),
        "offset",
    )


def _thing() -> Column:
    """Return what is held as one text; nulls are told from empty names."""
    parts = (
        F.coalesce(F.concat(F.lit("="), F.col(name).cast("string")), F.lit("")) for name in _THING
    )
    return F.concat_ws("\n", *parts)
