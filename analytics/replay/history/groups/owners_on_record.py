"""Owners of partitions and tasks as a coordinator keeps them while it loads a group.

A consumer group keeps an epoch for each partition that a member has or still has to give back
(``ConsumerGroup.currentPartitionEpoch``), a streams group the process of each task
(``StreamsGroup.currentActiveTaskToProcessId`` and its siblings). Every record of a member first
takes away what the member had and then puts what it has; a partition that is put while another
member's stands there does not fit. A record of the old owner that gave it back may have been
compacted away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.codes import codes, combined
from analytics.replay.groups.columns import PENDING
from analytics.replay.groups.group_records import CONSUMER, CURRENT, MEMBER, STREAMS
from analytics.replay.history.neighbours import LIFE, ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY, NOT_NEWER, TASKS = "owned_by_any", "owned_not_older", "task_not_owned"
"""Columns of `owners_on_record`: in words what the record meets, null where it fits."""

_MEMBER: Final = (LIFE, "family", "member_id")
_THING: Final = (LIFE, "role_of_task", "what", "partition")
_REMOVES, _PUTS = 0, 1
_NOTHING: Final = -1
_NOBODY: Final = -(1 << 40)
"""No epoch: these are 32 bits wide."""
_ACTIVE: Final = "active"


def owners_on_record(steps: pl.DataFrame) -> pl.DataFrame:
    """Say which records of members do not fit the owners that the records before them put.

    Args:
        steps: Of `group_incarnations`.

    Returns:
        `ROW`, `ANY` (a partition is put that another member has at whatever epoch), `NOT_NEWER`
        (that another has at an epoch that is not lower) and `TASKS`, for those records only that
        have one of them.
    """
    held = _held(steps)
    if held.is_empty():
        return pl.DataFrame(schema={ROW: steps.schema[ROW], **dict.fromkeys(_WORDS, pl.String())})
    turns = _handovers(steps, held)
    partitions = _partition_faults(turns.filter(pl.col("family") == CONSUMER))
    tasks = _task_faults(turns.filter(pl.col("family") == STREAMS))
    found = pl.concat([partitions, tasks], how="diagonal")
    # A record names the first partition for which it is refused.
    firsts = (pl.col(name).drop_nulls().first() for name in _WORDS)
    return found.sort(ROW, "what", "partition").group_by(ROW, maintain_order=True).agg(*firsts)


_WORDS: Final[Sequence[str]] = (ANY, NOT_NEWER, TASKS)


def _held(steps: pl.DataFrame) -> pl.DataFrame:
    """Return what members hold by the record that says so: `source`, the thing and its epoch."""
    holds = pl.col("family").is_in([CONSUMER, STREAMS]) & (pl.col("role") == CURRENT)
    item = pl.col("items").struct
    return (
        steps.filter(holds & ~pl.col("is_tombstone"))
        .select(pl.col(ROW).alias("source"), "epoch", "items")
        .explode("items", empty_as_null=False, keep_nulls=False)
        .filter(item.field("kind").cast(pl.String).is_in([CURRENT, PENDING]))
        .select(
            "source",
            "epoch",
            (item.field("kind").cast(pl.String) == PENDING).alias("is_pending"),
            item.field("role").fill_null("").alias("role_of_task"),
            pl.coalesce(item.field("topic_id"), item.field("subtopology_id")).alias("what"),
            item.field("partitions").alias("partition"),
        )
        .explode("partition", empty_as_null=False, keep_nulls=False)
        .unique(maintain_order=True)
    )


def _handovers(steps: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Return each taking away and putting of a thing, in the order in which they are done."""
    role, gone = pl.col("role"), pl.col("is_tombstone")
    gives_all_up = gone & role.is_in([CURRENT, MEMBER])
    source = pl.when((role == CURRENT) & ~gone).then(ROW).when(gives_all_up).then(_NOTHING)
    process = pl.when((role == MEMBER) & ~gone).then("process_id")
    has_left = ((role == MEMBER) & gone).cast(pl.Int32)
    records = (
        steps.filter(pl.col("family").is_in([CONSUMER, STREAMS]) & role.is_in([CURRENT, MEMBER]))
        .select(
            ROW,
            *_MEMBER,
            source.cast(pl.Int64).alias("source"),
            process.alias("process"),
            has_left.alias("left"),
        )
        .with_columns(
            pl.col("source").forward_fill().over(_MEMBER).fill_null(_NOTHING),
            (pl.col("left").cum_sum() - pl.col("left")).over(_MEMBER).alias("stay"),
        )
        .with_columns(pl.col("process").forward_fill().over(*_MEMBER, "stay"))
    )
    before = records.with_columns(pl.col("source", "process").shift(1).over(_MEMBER))
    of_records = pl.concat(
        [
            before.with_columns(pl.lit(_REMOVES).alias("turn")),
            records.with_columns(pl.lit(_PUTS).alias("turn")),
        ]
    )
    held = held.with_columns(pl.col("source").cast(pl.Int64))
    return (
        of_records.join(held, on="source")
        .sort(*_THING, ROW, "turn", "is_pending")
        .with_columns(pl.struct(_THING).rle_id().alias("thing"))
    )


def _partition_faults(handovers: pl.DataFrame) -> pl.DataFrame:
    puts, epoch = pl.col("turn") == _PUTS, pl.col("epoch").cast(pl.Int64)
    last_put = pl.when(puts).then(epoch).forward_fill().shift(1).over("thing")
    stands = pl.when(puts).then(epoch).when(epoch == last_put).then(_NOBODY)
    owner = pl.when(puts).then("member_id").forward_fill().shift(1).over("thing")
    standing = pl.col("standing")
    words = pl.concat_str(
        *(pl.lit("partition "), pl.col("partition"), pl.lit(" of topic "), "what"),
        *(pl.lit(" is given to "), "member_id", pl.lit(" at epoch "), "epoch"),
        *(pl.lit(" while "), "owner", pl.lit(" still has it at epoch "), standing),
    )
    return (
        handovers.with_columns(stands.alias("stands"), owner.alias("owner"))
        .with_columns(pl.col("stands").forward_fill().shift(1).over("thing").alias("standing"))
        .filter(puts & (standing != _NOBODY))
        .select(
            ROW,
            "what",
            "partition",
            words.alias(ANY),
            pl.when(standing >= epoch).then(words).alias(NOT_NEWER),
        )
    )


def _task_faults(handovers: pl.DataFrame) -> pl.DataFrame:
    """Return the faults of tasks; standbys and warmups have a set of processes each."""
    is_active = pl.col("role_of_task") == _ACTIVE
    puts, process = pl.col("turn") == _PUTS, pl.col("process")
    known = handovers.filter(process.is_not_null() | ~puts)
    # Of a standby the processes come and go one by one, of an active task there is one.
    of_process = known.select(pl.when(~is_active).then("process")).to_series()
    slot = combined(known["thing"].to_numpy(), codes(of_process))
    slotted = known.with_columns(pl.Series("slot", slot)).sort("slot", ROW, "turn")
    last_put = pl.when(puts).then("process").forward_fill().shift(1).over("slot")
    is_taken = ~puts & (process == last_put)
    stands = pl.when(puts).then(1).when(is_taken).then(0)
    stood = (
        slotted.with_columns(stands.alias("stands"), last_put.alias("owner"))
        .with_columns(
            pl.col("stands").forward_fill().shift(1).over("slot").fill_null(0).alias("standing")
        )
        .with_columns(
            pl.when(puts & (pl.col("standing") == 0))
            .then(1)
            .when(~puts & (pl.col("standing") == 1) & (process == pl.col("owner")))
            .then(-1)
            .otherwise(0)
            .alias("change")
        )
        .sort(LIFE, "role_of_task", "what", ROW, "turn")
    )
    # How many tasks of the subtopology have a process before the record comes.
    there = pl.col("change").cum_sum().over(LIFE, "role_of_task", "what") - pl.col("change")
    task = pl.concat_str(pl.lit("task "), "what", pl.lit("_"), "partition")
    is_put_twice = puts & is_active & (pl.col("standing") == 1)
    unknown = (
        ~puts
        & process.is_null()
        & (~is_active | (pl.col("there") == 0) | (pl.col("standing") == 1))
    )
    is_not_there = ~puts & process.is_not_null() & ~is_active & (pl.col("standing") == 0)
    words = (
        pl.when(is_put_twice)
        .then(
            pl.concat_str(
                task,
                pl.lit(" is given to "),
                "member_id",
                pl.lit(", while process "),
                "owner",
                pl.lit(" still has it"),
            )
        )
        .when(unknown)
        .then(
            pl.concat_str(
                task,
                pl.lit(" was given to "),
                "member_id",
                pl.lit(" before a record told its process"),
            )
        )
        .when(is_not_there)
        .then(
            pl.concat_str(
                task,
                pl.lit(" of "),
                "member_id",
                pl.lit(" is no longer on record as its process's"),
            )
        )
    )
    return (
        stood.with_columns(there.alias("there"))
        .with_columns(words.alias(TASKS))
        .filter(pl.col(TASKS).is_not_null())
        .select(ROW, "what", "partition", TASKS)
    )
