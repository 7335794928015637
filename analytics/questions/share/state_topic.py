"""The topic `__share_group_state`: what a dump lacks of it, and what brokers may delete of it.

The second is the table `share_prunable`. Below the least of the last snapshots of all share
partitions nothing is needed any more: the share coordinator deletes it every few minutes
(``ShareCoordinatorOffsetsManager``). One share partition without a new snapshot keeps the records
of all others of its internal partition.

The records that share groups' state rests on, as they count at the instant asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import contract_frame, polars_rows
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
from analytics.questions.share.group_pictures import COLUMNS as PICTURE_COLUMNS
from analytics.questions.share.group_pictures import KnownLogs, StepRecords, phases
from analytics.questions.share.held_up import COLUMNS as TRANSACTION_COLUMNS
from analytics.questions.share.held_up import open_transactions
from analytics.questions.share.share_log import COLUMNS, HOME, KEY, ShareLog, share_log
from analytics.questions.share.steps import share_steps
from analytics.replay.dump.choices import COMPLETE_ARCHIVE, assumed_in
from analytics.replay.log.ends_at import leading
from analytics.replay.log.log_times import disputed, frames_of_rows
from analytics.replay.log.losses import with_marks_of, with_marks_of_records
from analytics.replay.log.topic_homes import internal_partition, share_key
from analytics.replayed.group_rows import GroupRows, stored_rows
from analytics.replayed.records import Records
from analytics.replayed.replayed_workspace import known_coverage
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE, table

if TYPE_CHECKING:
    from analytics.replay.log.losses import Coverage
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import Manifest, PartitionEntry
    from schemas.share_rules import ShareRules


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


_STORED: Final[Mapping[str, Sequence[str]]] = {
    "groups": ("group_id", "member_count", "complete", "missing"),
    "assignments": ("group_id", "kind", "topic_id", "partition"),
    "share_partitions": tuple(each.name for each in table("share_partitions").columns),
    "share_batches": (*(*KEY, "first_offset", "last_offset", "delivery_state", "delivery_count"),),
}
"""What is read of each share group."""
_IS_SHARED: Final = pc.field("group_type") == "share"
_CONDITIONS: Final = {
    "groups": _IS_SHARED,
    "assignments": _IS_SHARED & (pc.field("kind") == "current"),
}
STATE_RECORDS: Final = ("share_snapshot", "share_update")
_WITHOUT_VALUE: Final = tuple(each for each in PICTURE_COLUMNS if each != "value")
_RECORDS: Final[Mapping[str, tuple[Sequence[str], str]]] = {
    **dict.fromkeys(STATE_RECORDS, (COLUMNS, SHARE_GROUP_STATE)),
    "share_group_state_partition_metadata": (PICTURE_COLUMNS, CONSUMER_OFFSETS),
    "share_group_metadata": (_WITHOUT_VALUE, CONSUMER_OFFSETS),
    "share_group_member_metadata": (_WITHOUT_VALUE, CONSUMER_OFFSETS),
}
"""By decoded table, which columns are needed, and the topic that they are of."""


def rows_of_groups(state: ReplayedWorkspace, records: Records) -> dict[str, GroupRows]:
    """Return by table what is read of groups: state of those asked about, records of all."""
    group = pl.col("key").struct.field("group_id")
    return {
        **{
            name: stored_rows(state.tables, name, columns, _CONDITIONS.get(name))
            for name, columns in _STORED.items()
        },
        **{
            name: GroupRows(records.table_pieces(name, columns, topic), group)
            for name, (columns, topic) in _RECORDS.items()
        },
    }


def count_of_rows(state: ReplayedWorkspace, records: Records) -> int:
    """Return how many rows those are, about."""
    stored = sum(state.tables.count(name, where=_CONDITIONS.get(name)) for name in _STORED)
    return stored + records.of_all.count(_RECORDS)


def state_places(records: Records, logs: StateLogs) -> Iterator[pl.DataFrame]:
    """Yield where records of share state are that count at the instant, some at a time."""
    for name in STATE_RECORDS:
        for rows in records.table_pieces(name, PLACE_COLUMNS, SHARE_GROUP_STATE):
            yield logs.above(rows)


class ShareRecords(NamedTuple):
    """The records of some whole groups.

    Attributes:
        log: Of their share partitions: what was deleted does not count at the end of a dump.
        whole_log: The same with what was deleted and is still in the files.
        phases: What groups initialise and delete.
        steps: What the order of steps is read off.
    """

    log: ShareLog
    whole_log: ShareLog
    phases: pl.DataFrame
    steps: StepRecords


def share_records(
    rows: Mapping[str, pl.DataFrame], groups: pl.Series, logs: StateLogs, evidence: KnownLogs
) -> ShareRecords:
    """Bring the records of groups into order.

    Args:
        rows: Of `rows_of_groups`.
        groups: Those of them that are asked about.
        logs: What is known of the logs of share state.
        evidence: What is known of the logs that steps are read off.
    """
    snapshots, updates, pictures, metadata, members = (
        _of_groups(rows[name], groups).sort("partition", "offset", maintain_order=True)
        for name in _RECORDS
    )
    whole = share_log(snapshots, updates)
    above = [logs.above(each) for each in (snapshots, updates)]
    is_same = sum(map(len, above)) == len(snapshots) + len(updates)
    return ShareRecords(
        whole if is_same else share_log(*above),
        whole,
        phases(pictures),
        StepRecords(pictures, metadata, members, whole, evidence),
    )


def known_logs(state: ReplayedWorkspace, *, is_state_whole: bool) -> KnownLogs:
    """Return what is known of the logs that steps are read off.

    Args:
        state: Says the instant.
        is_state_whole: Whether the dump lacks nothing of share state.
    """
    coverage = known_coverage(state)
    return KnownLogs(
        _complete_from(state),
        is_state_whole,
        {
            number: offset
            for (topic, number), offset in coverage.cleaned_until.items()
            if topic == CONSUMER_OFFSETS
        },
        are_clocks_alike=not any(each["led"] for each in state.manifest.get("leader_clocks", ())),
    )


def steps_of(
    records: StepRecords, rules: ShareRules, state: ReplayedWorkspace, coverage: Coverage
) -> pl.DataFrame:
    """Return the table `share_steps` of the topics that are asked for."""
    steps = share_steps(records, round(rules.steps.slack_seconds * 1000))
    found = with_marks_of_records(steps, coverage, "began_offset", "ended_offset")
    topics = found["topic"].unique().drop_nulls().to_arrow().cast(pa.string())
    wanted = state.topics_wanted(pa.chunked_array([topics])).to_pylist()
    return found.filter(pl.col("topic").is_null() | pl.col("topic").is_in(wanted))


def open_transactions_at(state: ReplayedWorkspace, records: Records) -> pl.DataFrame | None:
    """Return the oldest open transaction of each partition; None without a transaction log."""
    if not any(each["topic"] == TRANSACTION_STATE for each in state.manifest["partitions"]):
        return None
    return open_transactions(polars_rows(records.table("transaction_log", TRANSACTION_COLUMNS)))


def _complete_from(state: ReplayedWorkspace) -> Mapping[int, int]:
    return {
        each["partition"]: each["complete_from"]
        for each in leading(state.manifest)
        if each["topic"] == CONSUMER_OFFSETS and each["complete_from"] is not None
    }


def log_starts(state: ReplayedWorkspace) -> Mapping[int, int]:
    """Return where the partitions of the topic begin at the end of a dump; else nothing tells."""
    if not state.is_end:
        return {}
    return {
        each["partition"]: max(each["log_start_offset"] or 0, first)
        for each in leading(state.manifest)
        if each["topic"] == SHARE_GROUP_STATE and (first := _first_base(each)) is not None
    }


def _first_base(partition: PartitionEntry) -> int | None:
    """Return the base offset of the first file; None where there are only archived rows."""
    names = [PurePath(each["name"]).stem for each in partition["files"] if each["kind"] == "log"]
    return min((int(each) for each in names if each.isdecimal()), default=None)


def _of_groups(records: pl.DataFrame, groups: pl.Series) -> pl.DataFrame:
    return records.filter(pl.col("key").struct.field("group_id").is_in(groups.implode()))
