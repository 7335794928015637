"""What befell the partitions of topics: births, elections, elections that may have lost records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.log.meanings import present
from analytics.replay.metadata.partition_leaders import KEY, RECOVERING, partition_steps

if TYPE_CHECKING:
    from analytics.replay.metadata.metadata_log import MetadataLog

NOBODY: Final = -1


def births(topics: pl.DataFrame) -> pl.DataFrame:
    """Return `topic` and `born_at`: when topics of that name were created, as far as is known."""
    return topics.select("topic", pl.col("created_at").alias("born_at")).drop_nulls("born_at")


def elections(log: MetadataLog, topics: pl.DataFrame) -> pl.DataFrame:
    """Return every election of a leader (``PartitionRegistration.merge``).

    Args:
        log: The metadata log at the instant.
        topics: The table `topics`, for names.

    Returns:
        `topic`, `topic_id`, `partition`, `leader_epoch`, `leader` (null: nobody), `unclean`
        (boolean: elected from outside the ISR), `takes_over` (boolean: another broker led before),
        `since` and `at` (bigint: the place in the order of the metadata log's events), in the order
        of the last.
    """

    def before(name: str) -> pl.Expr:
        return pl.col(name).forward_fill().shift(1).over(KEY)

    leader = present(pl.col("leader"), NOBODY)
    names = topics.drop_nulls("topic_id").group_by("topic_id").agg(pl.col("topic").max())
    # Registrations name a leader too, but are no further one.
    nth = (~pl.col("is_base")).cum_sum().over(KEY).cast(pl.Int32)
    return (
        partition_steps(log)
        .sort("at")
        .with_columns(before(name).alias(f"{name}_before") for name in ("recovery", "isr", "elr"))
        .filter(pl.col("leader").is_not_null())
        .with_columns(
            (pl.col("base_epoch").forward_fill().over(KEY) + nth).alias("leader_epoch"),
            leader.alias("leads"),
        )
        .with_columns(before("leads").alias("led_before"))
        .join(names, on="topic_id", maintain_order="left")
        .select(
            *("topic", "topic_id", "partition", "leader_epoch"),
            leader.alias("leader"),
            _is_unclean().alias("unclean"),
            (pl.col("leader") != pl.col("led_before")).fill_null(value=False).alias("takes_over"),
            *("since", "at"),
        )
    )


def _is_unclean() -> pl.Expr:
    """Return whether a leader was elected from outside the ISR.

    The record says so by putting the leader into recovery. Where it was in recovery already
    another such election says nothing: the leader was neither in sync nor eligible, and is alone in
    sync. With new replicas that is a reassignment coming to its end.
    """
    leader = pl.col("leader")
    inside = pl.any_horizontal(
        pl.col(name).list.contains(leader).fill_null(value=False)
        for name in ("isr_before", "elr_before")
    )
    again = (
        (pl.col("recovery_before") == RECOVERING)
        & (leader != NOBODY)
        & ~inside
        & (pl.col("isr").list.len() == 1)
        & (pl.col("isr").list.first() == leader)
        & pl.col("replicas").is_null()
        & ~pl.col("is_base")
    )
    told = pl.col("recovery") == RECOVERING
    return pl.coalesce(told, again).fill_null(value=False)


def losses(elected: pl.DataFrame) -> pl.DataFrame:
    """Return when unclean elections may have cost records.

    A broker that leads again after having been down, with nobody in its place meanwhile, has what
    it had; brokers of one replica restart so.

    Args:
        elected: Of `elections`.

    Returns:
        `topic`, `partition`, `elected_at`.
    """
    costly = elected.filter(pl.col("unclean") & pl.col("takes_over"))
    return costly.select("topic", "partition", pl.col("since").alias("elected_at"))


def unclean_takeovers(log: MetadataLog, topics: pl.DataFrame) -> pl.DataFrame:
    """Return elections that may have cost records, and until when the elected broker had them all.

    Nobody reads, and no offset is committed for, what a replica in sync does not have yet: the high
    watermark waits for it (``Partition.maybeIncrementLeaderHW``), until the controller has taken
    it out of the ISR. What was committed before is on the broker that was elected later, unless it
    lost its disk's cache: one that was taken out because it registered after an unclean shutdown,
    or that was eligible and ceased to be, is not vouched for
    (``ReplicationControlManager.handleUncleanBrokerShutdown``).

    Args:
        log: The metadata log at the instant.
        topics: The table `topics`, for names.

    Returns:
        `topic`, `partition`, `in_sync_until` (timestamp: when the elected broker had left the ISR;
        null where nothing vouches for it), `unclean_at` (timestamp of the election).
    """
    elected = elections(log, topics).filter(pl.col("unclean") & pl.col("takes_over"))
    place = (*KEY, "leader", "at")
    held = partition_steps(log).sort("at")
    in_sync = (
        held.drop_nulls("isr")
        .with_columns(
            pl.col("at").shift(-1).over(KEY).alias("out_at"),
            pl.col("since").shift(-1).over(KEY).alias("out_since"),
        )
        .select(*KEY, pl.col("at").alias("in_at"), "isr", "out_at", "out_since")
    )
    eligible = held.drop_nulls("elr").select(*KEY, pl.col("at").alias("elr_at"), "elr")
    last = (
        elected.select(place)
        .join(in_sync, on=KEY)
        .filter(pl.col("isr").list.contains(pl.col("leader")), pl.col("in_at") < pl.col("at"))
        .sort("in_at")
        .group_by(place, maintain_order=True)
        .agg(pl.col("out_at", "out_since").last())
    )
    was_eligible = (
        last.join(eligible, on=KEY)
        .filter(
            pl.col("elr").list.contains(pl.col("leader")),
            pl.col("elr_at").is_between("out_at", "at", closed="left"),
        )
        .select(place)
    )
    value = pl.col("value").struct
    registered = log.visible("register_broker_record").select(
        value.field("broker_id").alias("leader"), pl.col("since").alias("out_since")
    )
    vouched = last.join(was_eligible, on=place, how="anti").join(
        registered, on=["leader", "out_since"], how="anti"
    )
    return elected.join(vouched, on=place, how="left").select(
        "topic",
        "partition",
        pl.col("out_since").alias("in_sync_until"),
        pl.col("since").alias("unclean_at"),
    )
