"""What share groups say of their partitions, record by record, and what is known of their logs.

Each ``ShareGroupStatePartitionMetadata`` record is the whole picture of its group: which partitions
are about to get state, which have it, and which topics are about to lose it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from analytics.questions.share.share_log import HOME
from analytics.replay.log.log_times import doubtful_times

if TYPE_CHECKING:
    from analytics.questions.share.share_log import ShareLog
    from analytics.replay.log.log_times import LogClock

# Since when share partitions are being initialised, and topics being deleted, in their groups.
#
# As each record is the whole picture of its group, something is in a phase since the first of those
# records, up to the last, that all name it.

COLUMNS: Final = ("partition", "offset", "timestamp", "is_tombstone", "key", "value")
"""What is needed of the decoded table ``share_group_state_partition_metadata``."""

INITIALIZING: Final = "initializing"
DELETING: Final = "deleting"
PHASES: Final = pl.Schema(
    {
        **dict.fromkeys(("group_id", "topic_id", "topic"), pl.String()),
        "partition": pl.Int32(),
        "phase": pl.String(),
        "phase_since": pl.Datetime("us", "UTC"),
        "is_exact": pl.Boolean(),
        "coordinator_partition": pl.Int32(),
        "record_offset": pl.Int64(),
    }
)
"""Of topics that are being deleted `partition` is null. `record_offset` is the first record of the
phase; `is_exact` is false where the log of the group begins with it."""


def phases(pictures: pl.DataFrame) -> pl.DataFrame:
    """Return what each group initialises and deletes at the instant: `PHASES`, group by group.

    Args:
        pictures: `COLUMNS`, cut at the instant.
    """
    if pictures.is_empty():
        return PHASES.to_frame()
    records = (
        pictures.select(COLUMNS)
        .sort("partition", "offset")
        .with_row_index("place")
        .with_columns(pl.col("key").struct.field("group_id"))
        .with_columns(
            number=pl.int_range(pl.len()).over("group_id"),
            last=pl.len().cast(pl.Int64).over("group_id") - 1,
        )
        .sort("group_id", "place")
    )
    return pl.concat([_of_phase(records, phase) for phase in (INITIALIZING, DELETING)])


def parted_by_clock(
    found: pl.DataFrame, clocks: Mapping[int, LogClock]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the phases whose times measure something, and those whose times do not.

    Args:
        found: Of `phases`.
        clocks: By partition of `__consumer_offsets`, where its clocks were set or wrong.
    """
    places = (found[name].to_numpy() for name in ("coordinator_partition", "record_offset"))
    is_set = pl.Series(doubtful_times(clocks, *places), dtype=pl.Boolean)
    return found.filter(~is_set), found.filter(is_set)


def _of_phase(records: pl.DataFrame, phase: str) -> pl.DataFrame:
    """Return what the last record of each group names in a phase, with the first record since."""
    value = records.schema["value"]
    assert isinstance(value, pl.Struct)
    topics = f"{phase}_topics"
    if topics not in {field.name for field in value.fields}:
        return PHASES.to_frame()
    each = pl.col("topics").struct
    partitions = each.field("partitions") if phase == INITIALIZING else pl.lit(None)
    named = records.select(
        *("group_id", "number", "last", "place"),
        topics=pl.col("value").struct.field(topics),
    ).filter(pl.col("topics").list.len() > 0)
    # Hardly any group is in a phase at the instant: what was before is nothing to it then.
    is_of_last = pl.col("number") == pl.col("last")
    named = named.filter(is_of_last.any().over("group_id"))
    if named.is_empty():
        return PHASES.to_frame()
    named = named.explode("topics").with_columns(
        topic_id=each.field("topic_id"), topic=each.field("topic_name"), partition=partitions
    )
    if phase == INITIALIZING:
        named = named.filter(pl.col("partition").list.len() > 0).explode("partition")
    # A record may name a thing twice.
    thing = list(THING)
    named = named.with_columns(pl.col("partition").cast(pl.Int32)).unique(
        [*thing, "number"], keep="first", maintain_order=True
    )
    is_new = (pl.col("number") > pl.col("number").shift(1).over(thing) + 1).fill_null(value=True)
    begun = pl.when(is_new).then("number").forward_fill().over(thing)
    still = named.with_columns(begun=begun).filter(is_of_last)
    first = records.select(
        "group_id",
        pl.col("number").alias("begun"),
        phase_since="timestamp",
        coordinator_partition="partition",
        record_offset="offset",
    )
    return (
        still.join(first, ["group_id", "begun"], "inner")
        .sort(thing)
        .with_columns(phase=pl.lit(phase), is_exact=pl.col("begun") > 0)
        .select(pl.col(name).cast(kind) for name, kind in PHASES.items())
    )


NOT_THERE = "the share coordinator's records of that time are not in the dump"
CLOCKS_DIFFER = "the clocks of its coordinators may differ"

AFTER_ALL: Final = np.iinfo(np.int64).max
NONE: Final = -1
WHOLE_TOPIC: Final = -1
"""The partition of a thing that is a topic."""
INITIALIZED: Final = "initialized"
THING: Final = ("group_id", "topic_id", "partition")
_NAMED: Final = pl.Schema(
    {
        "group_id": pl.String(),
        "place": pl.Int64(),
        "topic_id": pl.String(),
        "topic": pl.String(),
        "partition": pl.Int64(),
    }
)
RECORD: Final = pl.Schema(
    {
        "group_id": pl.String(),
        **dict.fromkeys((HOME, "offset", "at"), pl.Int64()),
        "is_tombstone": pl.Boolean(),
    }
)
"""A record of a group: its internal partition and offset, and when it was written, in epoch
milliseconds, `NONE` where it has no time."""


@dataclass(frozen=True)
class KnownLogs:
    """What a dump shows of the logs that steps are read off.

    Attributes:
        complete_from: By partition of `__consumer_offsets`, the offset from which on every record
            is there; nothing of those of which that is not known.
        is_state_whole: Whether no record of share state is lost; those that brokers prune are not.
        born_from: By partition of it, the offset from which on what has no earlier record had none:
            the cleaner leaves the last of each key. Nothing of those of which that is not known.
        are_clocks_alike: Whether no coordinator is known whose clock differed from the others':
            times of two topics in a wrong order mean nothing else.
    """

    complete_from: Mapping[int, int]
    is_state_whole: bool = True
    born_from: Mapping[int, int] = field(default_factory=dict)
    are_clocks_alike: bool = True

    @property
    def since(self) -> pl.Expr:
        """From which offset on every record of the partition in `HOME` is there."""
        return _of_each(self.complete_from)

    @property
    def born(self) -> pl.Expr:
        """From which offset on the first record of a key that is shown there was its first."""
        return _of_each(self.born_from)

    @property
    def why_untold(self) -> pl.Expr:
        """Why nothing tells when state was made or removed."""
        return pl.lit(NOT_THERE if self.are_clocks_alike else CLOCKS_DIFFER)


def _of_each(offsets: Mapping[int, int]) -> pl.Expr:
    home = pl.col(HOME).cast(pl.Int64)
    return home.replace_strict(
        list(offsets), list(offsets.values()), default=AFTER_ALL, return_dtype=pl.Int64
    )


@dataclass(frozen=True)
class StepRecords:
    """What the order of steps is read off.

    Attributes:
        pictures: `phases.COLUMNS` of ``share_group_state_partition_metadata``, cut at the instant.
        groups: The same of ``share_group_metadata``.
        members: The same of ``share_group_member_metadata``.
        log: Share state with what was deleted and is still in the files.
        evidence: What the dump shows of the logs.
    """

    pictures: pl.DataFrame
    groups: pl.DataFrame
    members: pl.DataFrame
    log: ShareLog
    evidence: KnownLogs


@dataclass(frozen=True)
class Pictures:
    """Pictures in order of group and offset.

    Attributes:
        records: `RECORD`, `place` (in this order) and, of the same group, the `place`s `before`
            and `after` each; null where there is none.
        named: By phase which record names which thing, as often as it does: `_NAMED`; the partition
            is `WHOLE_TOPIC` where it is a topic.
    """

    records: pl.DataFrame
    named: Mapping[str, pl.DataFrame]

    @classmethod
    def of(cls, pictures: pl.DataFrame) -> Pictures:
        """Bring pictures (`phases.COLUMNS`) into order."""
        value = pictures["value"] if pictures.height else pl.Series("value", [], pl.Null)
        rows = (
            records_of(pictures)
            .with_columns(value)
            .sort("group_id", "offset", maintain_order=True)
            .with_row_index("place")
            .with_columns(pl.col("place").cast(pl.Int64))
        )
        place = pl.col("place")
        places = rows.drop("value").with_columns(
            before=place.shift(1).over("group_id"), after=place.shift(-1).over("group_id")
        )
        phases = (INITIALIZING, INITIALIZED, DELETING)
        named = _with_one_name({each: _named(rows, each) for each in phases})
        return cls(places, named)

    def names(self, acts: pl.DataFrame, phase: str, place: str) -> pl.Series:
        """Return whether the pictures at a place name the things of acts in a phase."""
        key = [*THING, "place"]
        there = self.named[phase].select(key).unique().with_columns(is_named=pl.lit(value=True))
        asked = acts.select(*THING, pl.col(place).alias("place"))
        found = asked.join(there, key, "left", maintain_order="left")
        return found["is_named"].fill_null(value=False)

    def with_record(
        self, acts: pl.DataFrame, place: str, columns: Mapping[str, str]
    ) -> pl.DataFrame:
        """Add columns of the picture at a place, under other names; null where there is none."""
        picked = self.records.select(
            pl.col("place").alias(place),
            *(pl.col(name).alias(new) for name, new in columns.items()),
        )
        return acts.join(picked, place, "left", maintain_order="left")


def records_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Return decoded records of groups (`phases.COLUMNS`) as `RECORD`."""
    if rows.is_empty():
        # Where a workspace holds no decoded tables, columns have no types either.
        return RECORD.to_frame()
    at = (pl.col("timestamp").dt.epoch("us") // 1000).fill_null(NONE)
    return rows.select(
        each.cast(RECORD[name]).alias(name)
        for name, each in {
            "group_id": pl.col("key").struct.field("group_id"),
            HOME: pl.col("partition"),
            "offset": pl.col("offset"),
            "at": at,
            "is_tombstone": pl.col("is_tombstone"),
        }.items()
    )


def _named(pictures: pl.DataFrame, phase: str) -> pl.DataFrame:
    """Return which picture names which thing in a phase; a layout may not have the phase."""
    value, topics = pictures.schema["value"], f"{phase}_topics"
    if not isinstance(value, pl.Struct) or topics not in {each.name for each in value.fields}:
        return _NAMED.to_frame()
    each = pl.col("topics").struct
    partition = pl.lit(WHOLE_TOPIC) if phase == DELETING else each.field("partitions")
    rows = (
        pictures.select("group_id", "place", topics=pl.col("value").struct.field(topics))
        .filter(pl.col("topics").list.len() > 0)
        .explode("topics")
        .select(
            *("group_id", "place"),
            topic_id=each.field("topic_id"),
            topic=each.field("topic_name"),
            partition=partition,
        )
    )
    if phase != DELETING:
        rows = rows.filter(pl.col("partition").list.len() > 0).explode("partition")
    return rows.cast(_NAMED)


def _with_one_name(named: Mapping[str, pl.DataFrame]) -> Mapping[str, pl.DataFrame]:
    """Give each thing the name by which its group first calls it."""
    first = pl.concat(named.values()).unique(THING, keep="first", maintain_order=True)
    names = first.select(*THING, "topic")
    return {
        phase: rows.drop("topic").join(names, THING, "left", maintain_order="left")
        for phase, rows in named.items()
    }
