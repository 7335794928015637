"""What stands still in groups at an instant: behind their epoch, or owning without reading."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from schemas.evaluation_rules import RebalanceRules

COLUMNS = ("group_id", "kind", "member_id", "since", "detail")
UNASSIGNED, RECONCILING, IDLE_OWNER = "unassigned_epoch", "reconciling", "idle_owner"
_STABLE = "STABLE"
_PARTITION = ("group_id", "topic", "partition")
_MEMBER = ("group_id", "member_id", "group_instance_id")


def unassigned_epochs(groups: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Return groups with members whose group epoch is ahead of their assignment epoch.

    Args:
        groups: The table `groups`.
        epochs: The table `group_epochs`.

    Returns:
        `COLUMNS`; `since` is when that epoch began.
    """
    is_ahead = (pl.col("member_count") > 0) & (pl.col("epoch") > pl.col("assignment_epoch"))
    words = "group epoch {} is ahead of assignment epoch {}"
    return _with_begin(groups.filter(is_ahead), epochs).select(
        "group_id",
        pl.lit(UNASSIGNED).alias("kind"),
        pl.lit(None, pl.String).alias("member_id"),
        "since",
        pl.format(words, "epoch", "assignment_epoch").alias("detail"),
    )


def reconciling_members(
    groups: pl.DataFrame,
    members: pl.DataFrame,
    epochs: pl.DataFrame,
    now: datetime,
    rules: RebalanceRules,
) -> pl.DataFrame:
    """Return members that have been behind the assignment epoch for long.

    Args:
        groups: The table `groups`.
        members: The table `members`.
        epochs: The table `group_epochs`.
        now: The instant.
        rules: How long is long.

    Returns:
        `COLUMNS`; `since` is when the epoch they are behind began.
    """
    wanted = groups.filter(pl.col("assignment_epoch").is_not_null()).select(
        "group_id", pl.col("assignment_epoch").alias("epoch")
    )
    state = pl.col("state").fill_null(_STABLE)
    behind = members.join(wanted, on="group_id").filter(
        (pl.col("member_epoch") != pl.col("epoch")) | (state != _STABLE)
    )
    at = pl.col("member_epoch").cast(pl.String).fill_null("null")
    return (
        _with_begin(behind, epochs)
        .filter(pl.col("since") < now - timedelta(minutes=rules.reconciling_minutes))
        .select(
            "group_id",
            pl.lit(RECONCILING).alias("kind"),
            "member_id",
            "since",
            pl.format("member epoch {}, {}; wanted is {}", at, state, "epoch").alias("detail"),
        )
    )


def idle_owners(
    held: pl.DataFrame, progress: pl.DataFrame, now: datetime, rules: RebalanceRules
) -> pl.DataFrame:
    """Return static members that own partitions and commit nothing new, while others do.

    Args:
        held: The table `assignment_history`.
        progress: Of `last_progress`.
        now: The instant.
        rules: How long is long.

    Returns:
        `COLUMNS`; `since` is the last progress of what the member owns, or when it got it.
    """
    members = (
        static_owners(held)
        .join(progress, on=_PARTITION, how="left")
        .group_by(_MEMBER)
        .agg(
            pl.max_horizontal("last", "from_timestamp").max().alias("since"),
            pl.len().alias("partitions"),
        )
    )
    groups = progress.group_by("group_id").agg(pl.col("last").max().alias("group_last"))
    limit = now - timedelta(minutes=rules.idle_owner_minutes)
    words = "static member {} owns {} partitions and commits nothing new"
    return (
        members.join(groups, on="group_id")
        .filter((pl.col("since") < limit) & (pl.col("group_last") >= limit))
        .select(
            "group_id",
            pl.lit(IDLE_OWNER).alias("kind"),
            "member_id",
            "since",
            pl.format(words, "group_instance_id", "partitions").alias("detail"),
        )
    )


def static_owners(held: pl.DataFrame) -> pl.DataFrame:
    """Return what static members own now, of the table `assignment_history`."""
    return held.filter(
        pl.col("kind") == "current",
        pl.col("to_offset").is_null(),
        pl.col("topic").is_not_null(),
        pl.col("group_instance_id").is_not_null(),
    ).select(*_MEMBER, "topic", "partition", "from_timestamp")


def last_progress(offset_history: pl.DataFrame) -> pl.DataFrame:
    """Return when each partition was last advanced by a commit: `last`.

    Args:
        offset_history: Rows of that table, or what this returned of others (`last`, too).
    """
    return offset_history.group_by(_PARTITION).agg(pl.col("last").max())


def _with_begin(rows: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Add `since`: when the latest epoch of the number in `epoch` began."""
    began = (
        epochs.sort("from_offset")
        .group_by("group_id", "epoch")
        .agg(pl.col("from_timestamp").last().alias("since"))
    )
    return rows.join(began, on=["group_id", "epoch"], how="left")
