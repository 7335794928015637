"""The topic `__share_group_state`: what a dump lacks of it, and what brokers may delete of it.

The second is the table `share_prunable`. Below the least of the last snapshots of all share
partitions nothing is needed any more: the share coordinator deletes it every few minutes
(``ShareCoordinatorOffsetsManager``). One share partition without a new snapshot keeps the records
of all others of its internal partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame
from analytics.dump.inspection.found_losses import lacks
from analytics.gaps.gap import joined, words_expression
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.internal_topics import (
    ends_of,
    filters_sentence,
    group_filters,
    losses_of,
    partition_count,
)
from analytics.questions.share.share_log import HOME, KEY
from analytics.replay.dump.choices import COMPLETE_ARCHIVE, assumed_in
from analytics.replay.log.ends_at import leading
from analytics.replay.log.log_times import disputed, frames_of_rows
from analytics.replay.log.losses import with_marks_of
from analytics.replay.log.topic_homes import internal_partition, share_key
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import Manifest

# Which partitions of `__share_group_state` a dump does not show whole at an instant, and why.

ORPHAN = "orphan"


def gaps_of_state(state: ReplayedWorkspace) -> Mapping[int, str]:
    """Return by partition, as far as the dump says that there are, what it lacks of it."""
    there = {
        each["partition"] for each in leading(state.manifest) if each["topic"] == SHARE_GROUP_STATE
    }
    losses = losses_of(state, SHARE_GROUP_STATE, ends_of(state, SHARE_GROUP_STATE))
    found = {number: lacks(SHARE_GROUP_STATE, number, each) for number, each in losses.items()}
    frames = disputed(frames_of_rows(state.frames), SHARE_GROUP_STATE)
    found |= {number: each.why(SHARE_GROUP_STATE, number) for number, each in frames.items()}
    if COMPLETE_ARCHIVE in assumed_in(state.manifest):
        return found
    count = partition_count(state, SHARE_GROUP_STATE)
    absent = set(range(count or 0)) - there
    absent |= set(state.manifest["absent_partitions"].get(SHARE_GROUP_STATE, ()))
    absent_ones = {
        number: f"this dump has no copy of {SHARE_GROUP_STATE}-{number}"
        for number in sorted(absent)
    }
    return {**found, **absent_ones}


def gaps_of_all_groups(manifest: Manifest, gaps: Mapping[int, str]) -> Mapping[int, str]:
    """Return by partition why not the state of all groups in it is at hand.

    Args:
        manifest: Of the workspace: what it was made without.
        gaps: Of `gaps_of_state`.
    """
    sentence = filters_sentence(group_filters(manifest))
    if sentence is None:
        return gaps
    there = {each["partition"] for each in leading(manifest) if each["topic"] == SHARE_GROUP_STATE}
    return {number: gaps.get(number, sentence) for number in sorted({*there, *gaps})}


def with_possible_claims(shares: pl.DataFrame, state: ReplayedWorkspace) -> pl.DataFrame:
    """Say of state that no group claims where its group may be among lost records.

    Args:
        shares: Rows of `share_partitions`.
        state: Says the instant, and what the dump lacks of groups.
    """
    is_orphan = pl.col("phase") == ORPHAN
    completeness = GroupCompleteness(state)
    groups = shares.filter(is_orphan)["group_id"].unique().to_list()
    reasons = [joined(completeness.gaps_of(group).membership) for group in groups]
    lacking = pl.DataFrame(
        {"group_id": groups, "why": reasons}, {"group_id": pl.String, "why": pl.String}
    )
    if not lacking["why"].count():
        return shares
    why = pl.when(is_orphan).then("why")
    return (
        shares.join(lacking, "group_id", "left", maintain_order="left")
        .with_columns(missing=pl.coalesce("missing", why))
        .with_columns(complete=pl.col("missing").is_null())
        .drop("why")
    )


@dataclass(frozen=True)
class StateCoverage:
    """What the dump shows of `__share_group_state`.

    Attributes:
        partitions: How many partitions it has; None where that is not known.
        gaps: By partition, what the dump lacks of it, in words; others are whole.
    """

    partitions: int | None = None
    gaps: Mapping[int, str] = field(default_factory=dict)


def with_absence(shares: pl.DataFrame, coverage: StateCoverage) -> pl.DataFrame:
    """Say of share partitions without state whether that is known: `complete` and `missing`.

    Args:
        shares: Rows of `share_partitions`.
        coverage: What the dump shows.
    """
    has_none = pl.col("record_offset").is_null() & (pl.col("phase") == "initialized")
    topic = pl.lit(SHARE_GROUP_STATE)
    why = words_expression("share_state_home_unknown", topic=topic)
    if coverage.partitions is not None:
        key = share_key(*(pl.col(name) for name in ("group_id", "topic_id", "partition")))
        home = internal_partition(pl.when(has_none).then(key), coverage.partitions)
        gap = home.cast(pl.Int64).replace_strict(
            list(coverage.gaps), list(coverage.gaps.values()), default=None, return_dtype=pl.String
        )
        why = words_expression("share_state_absent", why=gap)
    return shares.with_columns(
        missing=pl.when(has_none).then(why).otherwise("missing")
    ).with_columns(
        complete=pl.when(has_none).then(pl.col("missing").is_null()).otherwise("complete")
    )


SNAPSHOT_COLUMNS: Final = ("partition", "offset", "timestamp", "is_tombstone", "key")
"""What is needed of ``share_snapshot``."""
PLACE_COLUMNS: Final = ("partition", "offset")
"""What is needed of all records of share state."""


_SNAPSHOT: Final = pl.Schema(
    {
        HOME: pl.Int32(),
        "offset": pl.Int64(),
        "timestamp": pl.Datetime("us", "UTC"),
        "is_tombstone": pl.Boolean(),
        "group_id": pl.String(),
        "topic_id": pl.String(),
        "partition": pl.Int32(),
    }
)


def holders(snapshots: pl.DataFrame) -> pl.DataFrame:
    """Return by internal partition its last snapshot, and the share partition that holds it.

    Args:
        snapshots: `SNAPSHOT_COLUMNS` of ``share_snapshot``, all that some groups have at the
            instant.

    Returns:
        `coordinator_partition`, `last_snapshot`; of the live share partition with the oldest last
        snapshot `held_by_group`, `held_by_topic_id`, `held_by_partition`, `held_by_offset` and
        `held_since`, null where none lives.
    """
    rows = _snapshots(snapshots)
    last = rows.sort("offset").unique([*KEY, HOME], keep="last", maintain_order=True)
    living = last.filter(~pl.col("is_tombstone")).sort("offset")
    oldest = living.unique(HOME, keep="first", maintain_order=True).select(
        HOME,
        held_by_group="group_id",
        held_by_topic_id="topic_id",
        held_by_partition="partition",
        held_by_offset="offset",
        held_since="timestamp",
    )
    ends = rows.group_by(HOME).agg(last_snapshot=pl.col("offset").max())
    return ends.join(oldest, HOME, "left")


@dataclass(frozen=True)
class StateLogs:
    """What is known of the partitions of `__share_group_state`.

    Attributes:
        starts: By internal partition, where it begins; absent where that is not known.
        gaps: By internal partition, what the dump lacks of all groups in it, in words.
    """

    starts: Mapping[int, int] = field(default_factory=dict)
    gaps: Mapping[int, str] = field(default_factory=dict)

    def above(self, records: pl.DataFrame) -> pl.DataFrame:
        """Return the records (`partition`, `offset`) that are not below the start of their log."""
        if not self.starts:
            return records
        start = pl.col("partition").replace_strict(
            list(self.starts), list(self.starts.values()), default=0, return_dtype=pl.Int64
        )
        return records.filter(pl.col("offset") >= start)


def prunable(
    held: Sequence[pl.DataFrame],
    records: Iterable[pl.DataFrame],
    topics: pl.DataFrame,
    logs: StateLogs,
) -> pl.DataFrame:
    """Return a row for each internal partition with a snapshot: the table `share_prunable`.

    Args:
        held: Of `holders`, of all groups, each in one of them.
        records: `PLACE_COLUMNS` of all records that count at the instant, some at a time.
        topics: The table `topics`: `topic_id`, `topic`.
        logs: What is known of the internal partitions.
    """
    oldest = pl.exclude(HOME, "last_snapshot").first()
    together = (
        pl.concat(held)
        .sort("held_by_offset", nulls_last=True)
        .group_by(HOME)
        .agg(pl.col("last_snapshot").max(), oldest)
    )
    starts, lacking = (
        pl.DataFrame({HOME: list(known), name: list(known.values())}, {HOME: pl.Int32, name: kind})
        for known, name, kind in (
            (logs.starts, "log_start_offset", pl.Int64),
            (logs.gaps, "missing", pl.String),
        )
    )
    # Where no share partition lives nothing below the last tombstone is needed.
    until = pl.coalesce("held_by_offset", "last_snapshot")
    start = pl.col("log_start_offset")
    homes = together.join(starts, HOME, "left").with_columns(
        prunable_to=pl.when(until > 0).then(until)
    )
    counts = _counts(records, homes.select(HOME, "prunable_to"))
    rows = _with_topics(homes.join(counts, HOME, "left"), topics).with_columns(
        prunable_offsets=(pl.coalesce("prunable_to", start) - start).clip(0)
    )
    return contract_frame(with_marks_of(rows, lacking, [HOME]).sort(HOME), "share_prunable")


def _counts(records: Iterable[pl.DataFrame], homes: pl.DataFrame) -> pl.DataFrame:
    """Return by internal partition the end of its log, and how many records it has."""
    is_below = pl.col("offset") < pl.col("prunable_to")
    nothing = {"log_end_offset": pl.Int64, "records": pl.Int64, "prunable_records": pl.Int64}
    found = [
        rows.select(pl.col("partition").cast(pl.Int32).alias(HOME), "offset")
        .join(homes, HOME, "inner")
        .group_by(HOME)
        .agg(
            log_end_offset=pl.col("offset").max() + 1,
            records=pl.len().cast(pl.Int64),
            prunable_records=is_below.sum().cast(pl.Int64),
        )
        for rows in records
        if rows.height
    ]
    return (
        pl.concat([pl.DataFrame(schema={HOME: pl.Int32, **nothing}), *found])
        .group_by(HOME)
        .agg(
            pl.col("log_end_offset").max(),
            pl.col("records", "prunable_records").sum(),
        )
    )


def _snapshots(rows: pl.DataFrame) -> pl.DataFrame:
    if rows.is_empty():
        return _SNAPSHOT.to_frame()
    key = pl.col("key").struct
    made = {HOME: pl.col("partition"), **{name: key.field(name) for name in KEY}}
    return rows.select(
        made.get(name, pl.col(name)).cast(kind).alias(name) for name, kind in _SNAPSHOT.items()
    )


def _with_topics(rows: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Add names of topics; an id stands for a topic without one."""
    named = topics.filter(pl.col("topic_id").is_not_null()).group_by("topic_id")
    names = named.agg(held_by_topic=pl.col("topic").min()).rename({"topic_id": "held_by_topic_id"})
    return rows.join(names, "held_by_topic_id", "left").with_columns(
        pl.coalesce("held_by_topic", "held_by_topic_id")
    )
