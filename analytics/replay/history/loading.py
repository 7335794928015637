"""What a coordinator meets while it loads a group: owners on record, records it cannot read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import IN_DUMP, POSITION
from analytics.replay.groups.group_records import (
    CONSUMER,
    CURRENT,
    MEMBER,
    PENDING,
    STREAMS,
    codes,
    combined,
)
from analytics.replay.log.spans import LIFE, ROW
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE, record_types
from schemas.releases import load_faults as known_faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.replay.log.rules import LoadingRules


# Owners of partitions and tasks as a coordinator keeps them while it loads a group.
#
# A consumer group keeps an epoch for each partition that a member has or still has to give back
# (``ConsumerGroup.currentPartitionEpoch``), a streams group the process of each task
# (``StreamsGroup.currentActiveTaskToProcessId`` and its siblings). Every record of a member first
# takes away what the member had and then puts what it has; a partition that is put while another
# member's stands there does not fit. A record of the old owner that gave it back may have been
# compacted away.

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


# Records that a release cannot read when it loads their partition.
#
# A key of a type that it does not know stops loading before KIP-915 and is skipped since; a value
# in a version that it does not know stops every release.

TOPICS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
NEWER_TYPE, NEWER_VERSION = "newer_record_type", "newer_value_version"
_CLASSIC_TYPES: Final = 2
"""The highest record type that releases before KIP-915 know: 0 and 1 are offsets, 2 a group."""
_STREAMS_TYPES: Final = range(17, 25)
_UNKNOWN_TYPES: Final = ("unknown_record_type", "redpanda_key")
"""The length that old releases of Redpanda put before a key is no type that Kafka knows."""
_UNKNOWN_VERSION: Final = "unsupported_version"


@dataclass(frozen=True)
class UnreadRecords:
    """Records that some release does not read.

    Attributes:
        undecoded: What of the internal topics did not decode: columns of `undecoded`.
        decoded: The decoded tables.
    """

    undecoded: pl.DataFrame
    decoded: Mapping[str, pl.DataFrame]

    def faults(self, rules: LoadingRules, *, is_newest: bool) -> pl.DataFrame:
        """Return the records that stop a release from loading their partition.

        Args:
            rules: Of the release.
            is_newest: It may be newer than any that is known, and read what is not known here.
        """
        return pl.concat(
            [self._of_undecoded(rules, is_newest=is_newest), *self._of_decoded(rules)],
            how="diagonal",
        )

    def _of_undecoded(self, rules: LoadingRules, *, is_newest: bool) -> pl.DataFrame:
        reason, number = pl.col("reason"), pl.col("record_type")
        is_of_groups = pl.col("topic") == CONSUMER_OFFSETS
        is_newer_type = is_of_groups & (
            reason.is_in(_UNKNOWN_TYPES)
            | ((reason == _UNKNOWN_VERSION) & (number > _CLASSIC_TYPES))
        )
        if rules.unknown_record_types != "refused":
            is_newer_type = pl.lit(value=False)
        is_read = pl.lit(value=True)
        if rules.group_records != "checked":
            is_read = is_of_groups & (number <= _CLASSIC_TYPES)
        elif rules.streams_over_simple == "skipped":
            is_read = ~(is_of_groups & number.is_in(_STREAMS_TYPES))
        is_newer_version = (reason == _UNKNOWN_VERSION) & is_read
        fault = (
            pl.when(is_newer_type)
            .then(pl.lit(NEWER_TYPE))
            .when(is_newer_version)
            .then(pl.lit(NEWER_VERSION))
            .when(reason.is_in(known_faults().undecoded))
            .then(reason)
        )
        # A release that is not known yet may read more.
        may_read = (fault == NEWER_VERSION) & is_newest
        return (
            self.undecoded.filter(pl.col("topic").is_in(TOPICS) & pl.col("offset").is_not_null())
            .select(
                "topic",
                pl.col("partition").alias("coordinator_partition"),
                pl.lit(None, pl.String).alias("group_id"),
                _type_in_key().alias("record_type"),
                "offset",
                "timestamp",
                pl.lit(None, pl.Int32).alias("leader_epoch"),
                *IN_DUMP,
                "reason",
                "detail",
            )
            .with_columns(fault.alias("fault"))
            .filter(pl.col("fault").is_not_null())
            .with_columns(
                pl.when(~may_read).then(pl.lit(value=True)).alias("stops_loading"),
                pl.lit(None, pl.Int16).alias("record_type"),
            )
            .drop("reason")
        )

    def _of_decoded(self, rules: LoadingRules) -> list[pl.DataFrame]:
        newest = {
            "offset_commit": rules.newest_offset_version,
            "group_metadata": rules.newest_group_version,
        }
        found = []
        kinds = record_types(CONSUMER_OFFSETS).values()
        for name in sorted({each.table for each in kinds if each.read == "decode"}):
            if name not in self.decoded:
                continue
            records = self.decoded[name]
            if name in newest:
                version = pl.col("value_version")
                is_newer = version > newest[name]
                words = pl.format("its value has version {}", version)
                found.append(_rows(records.filter(is_newer), NEWER_VERSION, words))
            elif rules.unknown_record_types == "refused":
                words = pl.format("its key has type {}", "record_type")
                found.append(_rows(records, NEWER_TYPE, words))
        return found


def _rows(records: pl.DataFrame, fault: str, detail: pl.Expr) -> pl.DataFrame:
    fields = records.select(pl.col("key").struct.unnest()).columns
    group = "group" if "group" in fields else "group_id"
    return records.select(
        "topic",
        pl.col("partition").alias("coordinator_partition"),
        pl.col("key").struct.field(group).alias("group_id"),
        "record_type",
        "offset",
        "timestamp",
        *POSITION,
        pl.lit(fault).alias("fault"),
        detail.alias("detail"),
        pl.lit(value=True).alias("stops_loading"),
    )


def _type_in_key() -> pl.Expr:
    """Return the first two bytes of a key as a number; null where there are no two."""
    head = pl.col("key").bin.slice(0, 2)
    number = head.bin.reinterpret(dtype=pl.Int16, endianness="big")
    return pl.when(head.bin.size() == 2).then(number)
