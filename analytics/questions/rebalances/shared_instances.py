"""Static names that two processes use: each that joins fences the other, and nobody reads on.

A member that is moved to another host is there from then on. Of two processes with one
`group.instance.id` each comes back again and again, and the hosts are those of both in turn.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.questions.rebalances.stalled_members import static_owners
from analytics.replay.groups.group_records import CLASSIC

SHARED_INSTANCE: Final = "shared_instance"
FEWEST_RETURNS: Final = 2
"""So often a name comes back to a host it had left for another one before it is told of."""

_FENCE: Final = "each of which fences the other"
_WAIT: Final = "each of which takes it when the other has let go of it"
"""A coordinator of KIP-848 refuses who comes while the other is there (``UNRELEASED_INSTANCE_ID``);
of that no record is left."""

_NAME = ("group_id", "group_instance_id")
_PARTITION = ("group_id", "topic", "partition")


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
