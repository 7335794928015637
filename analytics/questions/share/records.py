"""The records that share groups' state rests on, as they count at the instant asked about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.share.group_pictures import COLUMNS as PICTURE_COLUMNS
from analytics.questions.share.group_pictures import KnownLogs, StepRecords, phases
from analytics.questions.share.open_transactions import COLUMNS as TRANSACTION_COLUMNS
from analytics.questions.share.open_transactions import open_transactions
from analytics.questions.share.share_log import COLUMNS, KEY, ShareLog, share_log
from analytics.questions.share.state_topic import PLACE_COLUMNS, StateLogs
from analytics.questions.share.steps import share_steps
from analytics.replay.log.ends_at import leading
from analytics.replay.log.losses import with_marks_of_records
from analytics.replay.log.row_columns import polars_rows
from analytics.replayed.group_rows import GroupRows, stored_rows
from analytics.replayed.records import Records
from analytics.replayed.replayed_workspace import known_coverage
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE, table

if TYPE_CHECKING:
    from analytics.replay.log.losses import Coverage
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import PartitionEntry
    from schemas.share_rules import ShareRules


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
