"""What stands still in groups at an instant: behind their epoch, or owning without reading."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.groups.group_records import CLASSIC

if TYPE_CHECKING:
    from schemas.evaluation_rules import RebalanceRules

# Static names that two processes use: each that joins fences the other, and nobody reads on.
#
# A member that is moved to another host is there from then on. Of two processes with one
# `group.instance.id` each comes back again and again, and the hosts are those of both in turn.

SHARED_INSTANCE: Final = "shared_instance"
FEWEST_RETURNS: Final = 2
"""So often a name comes back to a host it had left for another one before it is told of."""

_FENCE: Final = "each of which fences the other"
_WAIT: Final = "each of which takes it when the other has let go of it"
"""A coordinator of KIP-848 refuses who comes while the other is there (``UNRELEASED_INSTANCE_ID``);
of that no record is left."""

_NAME = ("group_id", "group_instance_id")


def shared_instances(
    changes: pl.DataFrame, held: pl.DataFrame, progress: pl.DataFrame
) -> pl.DataFrame:
    """Return static names that members at several hosts took from each other.

    Args:
        changes: The table `membership_changes`.
        held: The table `assignment_history`.
        progress: Of `stalled_members.last_progress`.

    Returns:
        `stalled_members.COLUMNS`; `since` is when a second host took the name first.
    """
    host, before = pl.col("client_host"), pl.col("client_host").shift(1).over(_NAME)
    taken = (
        changes.filter(
            pl.col("change").is_in(["joined", "restarted"]),
            pl.col("group_instance_id").is_not_null() & host.is_not_null(),
        )
        .sort("coordinator_partition", "record_offset")
        .with_columns((host != before).fill_null(value=False).alias("is_taken"))
        .with_columns(
            (pl.col("is_taken") & ~host.is_first_distinct().over(_NAME)).alias("is_return")
        )
        .group_by(_NAME, maintain_order=True)
        .agg(
            pl.col("member_id").last(),
            (pl.col("group_type").last() == CLASSIC).alias("is_classic"),
            pl.col("at").filter("is_taken").min().alias("since"),
            pl.col("is_taken").sum().alias("times"),
            pl.col("is_return").sum().alias("returns"),
            host.filter("is_taken").unique().sort().alias("hosts"),
        )
        .filter(pl.col("returns") >= FEWEST_RETURNS)
    )
    return (
        taken.join(_standing(taken, held, progress), on=list(_NAME), how="left")
        .with_columns(pl.col("standing", "owned").fill_null(0))
        .select(
            "group_id",
            pl.lit(SHARED_INSTANCE).alias("kind"),
            "member_id",
            "since",
            _detail().alias("detail"),
        )
    )


def _standing(takeovers: pl.DataFrame, held: pl.DataFrame, progress: pl.DataFrame) -> pl.DataFrame:
    """Return how many partitions each name owns, and how many of them stood still since."""
    owned = static_owners(held).join(progress, on=_PARTITION, how="left")
    of_taken = owned.join(takeovers.select(*_NAME, "since"), on=list(_NAME))
    stands = pl.col("last").is_null() | (pl.col("last") < pl.col("since"))
    return of_taken.group_by(_NAME).agg(stands.sum().alias("standing"), pl.len().alias("owned"))


def _detail() -> pl.Expr:
    used = pl.format(
        "static name {} is used by processes at {}, ",
        "group_instance_id",
        pl.col("hosts").list.join(" and "),
    )
    how = pl.when("is_classic").then(pl.lit(_FENCE)).otherwise(pl.lit(_WAIT))
    told = pl.concat_str(used, how, pl.format(": taken {} times", "times"))
    stood = pl.format("; no progress on {} of its {} partitions since", "standing", "owned")
    return pl.when(pl.col("standing") > 0).then(told + stood).otherwise(told)


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
        .filter(pl.col("since") < now - timedelta(minutes=rules.reconciling.minutes))
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
    limit = now - timedelta(minutes=rules.idle_owner.minutes)
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
