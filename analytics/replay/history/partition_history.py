"""The past of partitions: births and elections, starts of coordinators, epochs of internal ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import IN_DUMP, present
from analytics.replay.groups.group_records import KINDS
from analytics.replay.log.spans import TIME
from analytics.replay.metadata_log import (
    PARTITION_KEY,
    RECOVERING,
    STEP_TABLES,
    partition_steps,
)
from schemas import CONSUMER_OFFSETS, COORDINATOR_TOPICS

if TYPE_CHECKING:
    from analytics.replay.log.log_times import Decoded
    from analytics.replay.log.losses import Coverage
    from analytics.replay.metadata_log import MetadataLog

# What befell the partitions of topics: births, elections, elections that may have lost records.

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
        return pl.col(name).forward_fill().shift(1).over(PARTITION_KEY)

    leader = present(pl.col("leader"), NOBODY)
    names = topics.drop_nulls("topic_id").group_by("topic_id").agg(pl.col("topic").max())
    # Registrations name a leader too, but are no further one.
    nth = (~pl.col("is_base")).cum_sum().over(PARTITION_KEY).cast(pl.Int32)
    return (
        partition_steps(log)
        .sort("at")
        .with_columns(before(name).alias(f"{name}_before") for name in ("recovery", "isr", "elr"))
        .filter(pl.col("leader").is_not_null())
        .with_columns(
            (pl.col("base_epoch").forward_fill().over(PARTITION_KEY) + nth).alias("leader_epoch"),
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
    place = (*PARTITION_KEY, "leader", "at")
    held = partition_steps(log).sort("at")
    in_sync = (
        held.drop_nulls("isr")
        .with_columns(
            pl.col("at").shift(-1).over(PARTITION_KEY).alias("out_at"),
            pl.col("since").shift(-1).over(PARTITION_KEY).alias("out_since"),
        )
        .select(*PARTITION_KEY, pl.col("at").alias("in_at"), "isr", "out_at", "out_since")
    )
    eligible = held.drop_nulls("elr").select(*PARTITION_KEY, pl.col("at").alias("elr_at"), "elr")
    last = (
        elected.select(place)
        .join(in_sync, on=PARTITION_KEY)
        .filter(pl.col("isr").list.contains(pl.col("leader")), pl.col("in_at") < pl.col("at"))
        .sort("in_at")
        .group_by(place, maintain_order=True)
        .agg(pl.col("out_at", "out_since").last())
    )
    was_eligible = (
        last.join(eligible, on=PARTITION_KEY)
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


# When coordinators began: elected for their partition, or started again while they led it.
#
# A broker that is killed and back before another one is elected goes on with its leader epoch:
# only that it registers with another incarnation tells
# (``ClusterControlManager.registerBroker``). What it kept in memory is gone all the same, and its
# cleanups begin anew.
#
# Takes the metadata log at an instant; gives `STARTS`.

STARTS: Final = pl.Schema(
    {
        "coordinator_partition": pl.Int32(),
        "leader_epoch": pl.Int32(),
        "leader": pl.Int32(),
        "started_at": TIME,
        "is_restart": pl.Boolean(),
        "idle_since": TIME,
        "broker_starts": pl.List(TIME),
    }
)
"""A row per beginning: `started_at` (null where it was before the first record), `is_restart` (the
broker started again within the epoch), `idle_since` (until when the leader before had led; null
where that is not known) and `broker_starts` (when that broker started, at any time)."""

START_TABLES: Final = (*STEP_TABLES, "register_broker_record")
"""Tables of the metadata log that are looked at with their values."""


def coordinator_starts(log: MetadataLog, topics: pl.DataFrame) -> pl.DataFrame:
    """Return `STARTS`: every beginning of a coordinator of offsets that the metadata log tells.

    Args:
        log: The metadata log at an instant, with `START_TABLES`.
        topics: The state table `topics`.
    """
    led = _reigns(elections(log, topics).filter(pl.col("topic") == CONSUMER_OFFSETS))
    brokers = broker_starts(log)
    listed = brokers.sort("at", "since").group_by("leader", maintain_order=True)
    told = led.join(
        listed.agg(pl.col("since").alias("broker_starts")),
        on="leader",
        how="left",
        maintain_order="left",
    )
    within = pl.col("until").is_null() | (pl.col("start_at") < pl.col("until"))
    # When a broker was killed no record says.
    restarts = (
        told.join(brokers.rename({"at": "start_at", "since": "started_at"}), on="leader")
        .filter((pl.col("start_at") > pl.col("at")) & within)
        .with_columns(
            pl.lit(value=True).alias("is_restart"), pl.lit(None, TIME).alias("idle_since")
        )
    )
    elected = told.with_columns(
        pl.col("since").alias("started_at"), pl.lit(value=False).alias("is_restart")
    )
    return pl.concat(
        each.select(pl.col(name).cast(kind) for name, kind in STARTS.items())
        for each in (elected, restarts)
    )


def _reigns(elected: pl.DataFrame) -> pl.DataFrame:
    """Add to elections of somebody `until` (bigint: when the next one was) and `idle_since`."""

    def before(name: str) -> pl.Expr:
        return pl.col(name).shift(1).over(PARTITION_KEY)

    nobody_since = pl.when(before("leader").is_null()).then(before("since"))
    return elected.with_columns(
        pl.col("partition").alias("coordinator_partition"),
        pl.col("at").shift(-1).over(PARTITION_KEY).alias("until"),
        pl.when(before("at").is_not_null())
        .then(pl.coalesce(nobody_since, "since"))
        .alias("idle_since"),
    ).filter(pl.col("leader").is_not_null())


def broker_starts(log: MetadataLog) -> pl.DataFrame:
    """Return `leader`, `at` and `since` where brokers registered with another incarnation.

    What a snapshot holds tells an incarnation, not when it began.
    """
    value = pl.col("value").struct
    said = (
        log.visible("register_broker_record")
        .select(
            value.field("broker_id").alias("leader"),
            value.field("incarnation_id").alias("incarnation"),
            *("at", "since"),
        )
        .sort("at")
    )
    is_new = pl.col("incarnation").ne_missing(pl.col("incarnation").shift(1).over("leader"))
    return said.filter(is_new & pl.col("since").is_not_null()).drop("incarnation")


# The table `coordinator_epochs`: who coordinated each internal partition, and from where to
# where.
#
# The leader epoch of a batch is that of the broker that wrote it; who that was only the metadata
# log tells.

KEY: Final = ("topic", "partition", "leader_epoch")
_LOG: Final = ("topic", "partition")
NOTED: Final = pl.Schema(
    {
        "topic": pl.String(),
        "partition": pl.Int32(),
        "leader_epoch": pl.Int32(),
        "noted_from": pl.Int64(),
    }
)
"""The leader epochs that logs and checkpoints note, and where each begins."""
TABLES: Final = (
    "offset_commit",
    "control_markers",
    "share_snapshot",
    "share_update",
    "transaction_log",
    *KINDS,
)
"""What has records of these."""


def epochs_seen(decoded: Decoded) -> pl.DataFrame:
    """Return what some records tell of leader epochs.

    Args:
        decoded: Of any records, one at least of `TABLES`.

    Returns:
        `KEY`, `from_offset`, `from_timestamp`, `last_offset`, `last_timestamp`, `records` and
        `place` (struct of `IN_DUMP`) of the first.
    """
    tables = [decoded[name] for name in TABLES if name in decoded]
    return merged_epochs(_epoch_runs(each) for each in _with_rows(tables))


def merged_epochs(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return as `epochs_seen` what several parts of the records tell together."""
    return (
        pl.concat(frames)
        .group_by(KEY)
        .agg(
            pl.col("from_offset").min(),
            pl.col("last_offset").max(),
            pl.col("from_timestamp", "place").get(pl.col("from_offset").arg_min()),
            pl.col("last_timestamp").get(pl.col("last_offset").arg_max()),
            pl.col("records").sum(),
        )
    )


def _with_rows(tables: Sequence[pl.DataFrame]) -> Sequence[pl.DataFrame]:
    """Return the tables that have rows; one without, where none has."""
    return [each for each in tables if each.height] or tables[:1]


def _epoch_runs(records: pl.DataFrame) -> pl.DataFrame:
    """Return what is told by each run of records of one epoch: there are few."""
    first, last = pl.col("offset").arg_min(), pl.col("offset").arg_max()
    return (
        records.select(*KEY, "offset", "timestamp", *IN_DUMP)
        .filter(pl.col("topic").is_in(COORDINATOR_TOPICS) & pl.col("leader_epoch").is_not_null())
        .group_by(pl.struct(KEY).rle_id().alias("run"))
        .agg(
            pl.col(KEY).first(),
            pl.col("offset").min().alias("from_offset"),
            pl.col("offset").max().alias("last_offset"),
            pl.col("timestamp").get(first).alias("from_timestamp"),
            pl.col("timestamp").get(last).alias("last_timestamp"),
            pl.len().cast(pl.Int64).alias("records"),
            pl.struct(pl.col(name).get(first) for name in IN_DUMP).alias("place"),
        )
        .drop("run")
    )


def noted_epochs(coverage: Coverage) -> pl.DataFrame:
    """Return as `NOTED` has them the epochs of partitions of coordinators."""
    rows = [
        (*log, epoch, first)
        for log, epochs in coverage.leader_epochs.items()
        if log[0] in COORDINATOR_TOPICS
        for epoch, first in epochs.items()
    ]
    return pl.DataFrame(rows, NOTED, orient="row")


def _with_noted(epochs: pl.DataFrame, noted: pl.DataFrame) -> pl.DataFrame:
    """Let epochs begin and end where that is noted, even where no record there is at hand.

    A filter or the cleaner may have left it out: then nothing tells its time. What is noted of
    another line of history does not fit the records, and is not taken.
    """
    first, last, noted_from = pl.col("from_offset"), pl.col("last_offset"), pl.col("noted_from")
    before = last.cum_max().shift(1).over(_LOG).fill_null(-1)
    after = first.reverse().cum_min().reverse().over(_LOG)
    fits = (noted_from > before) & (noted_from <= after).fill_null(value=True)
    told = (
        epochs.join(noted, on=KEY, how="full", coalesce=True)
        .sort(KEY)
        .with_columns(pl.when(fits).then(noted_from).alias("noted_from"))
        .filter(pl.coalesce(first, noted_from).is_not_null())
    )
    is_earlier = noted_from.is_not_null() & (first.is_null() | (noted_from < first))
    begun = told.with_columns(
        pl.when(is_earlier).then(noted_from).otherwise(first).alias("from_offset"),
        pl.when(~is_earlier).then("from_timestamp").alias("from_timestamp"),
        pl.when(~is_earlier).then("place").alias("place"),
        pl.col("records").fill_null(0),
    )
    end = noted_from.shift(-1).over(_LOG) - 1
    is_later = end.is_not_null() & (last.is_null() | (end > last))
    ended = begun.with_columns(
        pl.when(is_later).then(end).otherwise(last).alias("last_offset"),
        pl.when(~is_later).then("last_timestamp").alias("last_timestamp"),
    )
    # A leader that wrote nothing may be noted, too.
    wrote = last.is_null() | (last >= first)
    return ended.filter(wrote).drop("noted_from")


def coordinator_epochs(
    epochs: pl.DataFrame, elected: pl.DataFrame, noted: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return the columns of the table `coordinator_epochs`, and where each epoch's first record is.

    Args:
        epochs: Of `epochs_seen`, of all records.
        elected: Of `elections`, up to the same instant.
        noted: Of `noted_epochs`, where anything is noted.

    Returns:
        The table's columns, `place` (struct of `IN_DUMP`) and `led_before`: the last broker that
        led before, whether it wrote anything or not; null where nothing tells.
    """
    leaders = elected.select(*KEY, "leader", "unclean", pl.col("since").alias("elected_at"))
    over = pl.col("leader_epoch").shift(-1).over("topic", "partition").is_not_null()
    told = epochs if noted is None else _with_noted(epochs, noted)
    return (
        told.sort(KEY)
        .with_columns(
            pl.when(over).then("last_offset").alias("to_offset"),
            pl.when(over).then("last_timestamp").alias("to_timestamp"),
        )
        .join(leaders, on=KEY, how="left", maintain_order="left")
        .sort("leader_epoch")
        .join_asof(
            _leaders_before(elected),
            left_on="leader_epoch",
            right_on="until_epoch",
            by=["topic", "partition"],
            check_sortedness=False,
        )
        .drop("until_epoch", strict=False)
        .sort(KEY)
    )


def _leaders_before(elected: pl.DataFrame) -> pl.DataFrame:
    """Return the brokers that led, each with the leader epoch from which on it led before."""
    return (
        elected.filter(pl.col("leader") >= 0)
        .select(
            *("topic", "partition"),
            (pl.col("leader_epoch") + 1).alias("until_epoch"),
            pl.col("leader").alias("led_before"),
        )
        .sort("until_epoch")
    )
