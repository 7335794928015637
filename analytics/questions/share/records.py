"""The records that share groups' state rests on, as they count at the instant asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.marks import marked_by_records
from analytics.questions.share.lifecycle.phases import COLUMNS as PICTURE_COLUMNS
from analytics.questions.share.lifecycle.phases import phases
from analytics.questions.share.lifecycle.pictures import pictures_of
from analytics.questions.share.lifecycle.share_steps import share_steps
from analytics.questions.share.lifecycle.state_acts import StepRecords
from analytics.questions.share.open_transactions import COLUMNS as TRANSACTION_COLUMNS
from analytics.questions.share.open_transactions import open_transactions
from analytics.questions.share.prunable import (
    SNAPSHOT_COLUMNS,
    UPDATE_COLUMNS,
    StateRecords,
)
from analytics.questions.share.share_log import COLUMNS, ShareLog, share_log
from analytics.replay.log.losses_at import leading
from analytics.replayed.records import Records
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE

if TYPE_CHECKING:
    from analytics.replay.log.coverage import Coverage
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
    state: ReplayedWorkspace, groups: pa.Array, *, is_state_whole: bool = True
) -> ShareRecords:
    """Read what share groups' state rests on.

    What was deleted before the end of a dump does not count at its end.

    Args:
        state: Says the instant.
        groups: The groups that are asked about.
        is_state_whole: Whether the dump lacks nothing of share state.
    """
    starts = _log_starts(state)
    whole = [Records(state).table(name, COLUMNS) for name in ("share_snapshot", "share_update")]
    snapshots, updates = (_above(each, starts) for each in whole)
    pictures, metadata, members = (
        _of_groups(Records(state).table(f"share_group_{name}", PICTURE_COLUMNS), groups)
        for name in ("state_partition_metadata", "metadata", "member_metadata")
    )
    whole_log = share_log(*(_of_groups(each, groups) for each in whole))
    return ShareRecords(
        share_log(_of_groups(snapshots, groups), _of_groups(updates, groups)),
        whole_log,
        StateRecords(
            snapshots.select(list(SNAPSHOT_COLUMNS)), updates.select(list(UPDATE_COLUMNS)), starts
        ),
        phases(pictures),
        StepRecords(
            pictures_of(pictures),
            metadata,
            members,
            whole_log,
            _complete_from(state),
            is_state_whole,
            are_clocks_alike=not any(
                each["led"] for each in state.manifest.get("leader_clocks", ())
            ),
        ),
        _transactions(state),
    )


def steps_of(
    records: ShareRecords, rules: ShareRules, state: ReplayedWorkspace, coverage: Coverage
) -> pa.Table:
    """Return the table `share_steps` of the topics that are asked for."""
    born = {
        number: offset
        for (topic, number), offset in coverage.cleaned_until.items()
        if topic == CONSUMER_OFFSETS
    }
    steps = share_steps(
        replace(records.steps, born_from=born), round(rules.steps.slack_seconds * 1000)
    )
    found = marked_by_records(steps, coverage, "began_offset", "ended_offset")
    wanted = pc.or_(
        pc.is_null(found["topic"]),
        pc.is_in(found["topic"], state.topics_wanted(pc.fill_null(found["topic"], ""))),
    )
    return found.filter(wanted)


def _transactions(state: ReplayedWorkspace) -> pl.DataFrame | None:
    if not any(each["topic"] == TRANSACTION_STATE for each in state.manifest["partitions"]):
        return None
    return open_transactions(Records(state).table("transaction_log", TRANSACTION_COLUMNS))


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


def _above(records: pa.Table, starts: Mapping[int, int]) -> pa.Table:
    for partition, start in starts.items():
        if start and records.num_rows:
            is_below = pc.and_(
                pc.equal(records["partition"], partition), pc.less(records["offset"], start)
            )
            records = records.filter(pc.invert(is_below))
    return records


def _of_groups(records: pa.Table, groups: pa.Array) -> pa.Table:
    if not records.num_rows:
        return records
    group = pc.struct_field(records["key"].combine_chunks(), "group_id")
    return records.filter(pc.is_in(group, groups))
