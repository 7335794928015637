"""The records that share groups' state rests on, as they count at the instant asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from analytics.questions.share.group_pictures import COLUMNS as PICTURE_COLUMNS
from analytics.questions.share.group_pictures import KnownLogs, StepRecords, phases
from analytics.questions.share.open_transactions import COLUMNS as TRANSACTION_COLUMNS
from analytics.questions.share.open_transactions import open_transactions
from analytics.questions.share.share_log import COLUMNS, ShareLog, share_log
from analytics.questions.share.state_topic import SNAPSHOT_COLUMNS, UPDATE_COLUMNS, StateRecords
from analytics.questions.share.steps import share_steps
from analytics.replay.log.ends_at import leading
from analytics.replay.log.losses import with_marks_of_records
from analytics.replayed.records import Records
from analytics.replayed.replayed_workspace import known_coverage
from analytics.replayed.whole_groups import frame_of
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE

if TYPE_CHECKING:
    from analytics.replay.log.losses import Coverage
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.share_rules import ShareRules


@dataclass(frozen=True)
class ShareRecords:
    """What was read.

    Attributes:
        log: Of the share partitions asked about.
        whole_log: The same with what was deleted and is still in the files.
        state: Of all share partitions.
        phases: What groups initialise and delete.
        steps: What the order of steps is read off.
        transactions: The oldest open transaction of each partition; None where the dump has no
            transaction log.
    """

    log: ShareLog
    whole_log: ShareLog
    state: StateRecords
    phases: pl.DataFrame
    steps: StepRecords
    transactions: pl.DataFrame | None


def share_records(
    state: ReplayedWorkspace, groups: pl.Series, *, is_state_whole: bool = True
) -> ShareRecords:
    """Read what share groups' state rests on.

    What was deleted before the end of a dump does not count at its end.

    Args:
        state: Says the instant.
        groups: The groups that are asked about.
        is_state_whole: Whether the dump lacks nothing of share state.
    """
    starts, read = _log_starts(state), Records(state).table
    whole = [frame_of(read(name, COLUMNS)) for name in ("share_snapshot", "share_update")]
    snapshots, updates = (_above(each, starts) for each in whole)
    pictures, metadata, members = (
        _of_groups(frame_of(read(f"share_group_{name}", PICTURE_COLUMNS)), groups)
        for name in ("state_partition_metadata", "metadata", "member_metadata")
    )
    logs = _known_logs(state, is_state_whole=is_state_whole)
    whole_log = share_log(*(_of_groups(each, groups) for each in whole))
    return ShareRecords(
        share_log(_of_groups(snapshots, groups), _of_groups(updates, groups)),
        whole_log,
        StateRecords(snapshots.select(SNAPSHOT_COLUMNS), updates.select(UPDATE_COLUMNS), starts),
        phases(pictures),
        StepRecords(pictures, metadata, members, whole_log, logs),
        open_transactions_at(state),
    )


def _known_logs(state: ReplayedWorkspace, *, is_state_whole: bool) -> KnownLogs:
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
    records: ShareRecords, rules: ShareRules, state: ReplayedWorkspace, coverage: Coverage
) -> pl.DataFrame:
    """Return the table `share_steps` of the topics that are asked for."""
    steps = share_steps(records.steps, round(rules.steps.slack_seconds * 1000))
    found = with_marks_of_records(steps, coverage, "began_offset", "ended_offset")
    topics = found["topic"].unique().drop_nulls().to_arrow().cast(pa.string())
    wanted = state.topics_wanted(pa.chunked_array([topics])).to_pylist()
    return found.filter(pl.col("topic").is_null() | pl.col("topic").is_in(wanted))


def open_transactions_at(state: ReplayedWorkspace) -> pl.DataFrame | None:
    """Return the oldest open transaction of each partition; None without a transaction log."""
    if not any(each["topic"] == TRANSACTION_STATE for each in state.manifest["partitions"]):
        return None
    return open_transactions(frame_of(Records(state).table("transaction_log", TRANSACTION_COLUMNS)))


def _complete_from(state: ReplayedWorkspace) -> Mapping[int, int]:
    return {
        each["partition"]: each["complete_from"]
        for each in leading(state.manifest)
        if each["topic"] == CONSUMER_OFFSETS and each["complete_from"] is not None
    }


def _log_starts(state: ReplayedWorkspace) -> Mapping[int, int]:
    """Return where the partitions of the topic begin at the end of a dump; else nothing tells."""
    if not state.is_end:
        return {}
    return {
        each["partition"]: max(each["log_start_offset"] or 0, first)
        for each in leading(state.manifest)
        if each["topic"] == SHARE_GROUP_STATE and (first := _first_base(each)) is not None
    }


def _first_base(partition: Mapping[str, Any]) -> int | None:
    """Return the base offset of the first file; None where there are only archived rows."""
    names = [PurePath(each["name"]).stem for each in partition["files"] if each["kind"] == "log"]
    return min((int(each) for each in names if each.isdecimal()), default=None)


def _above(records: pl.DataFrame, starts: Mapping[int, int]) -> pl.DataFrame:
    """Return the records that were not deleted below the start of their log."""
    start = pl.col("partition").replace_strict(
        list(starts), list(starts.values()), default=0, return_dtype=pl.Int64
    )
    return records.filter(pl.col("offset") >= start)


def _of_groups(records: pl.DataFrame, groups: pl.Series) -> pl.DataFrame:
    return records.filter(pl.col("key").struct.field("group_id").is_in(groups.implode()))
