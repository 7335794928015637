"""The tables about rebalances, made of a replayed workspace, some groups at a time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.engine.part_runs import PartAnswer
from analytics.questions.rebalances.epochs import stored_again
from analytics.questions.rebalances.stalled_members import last_progress, static_owners
from analytics.questions.rebalances.tables import AskedTime, rebalance_tables
from analytics.replayed.records_at import CountedRecords
from analytics.replayed.replayed_workspace import known_coverage
from analytics.replayed.whole_groups import frame_of, group_reads
from analytics.tables.parted_table import BY_GROUP, PartedTable, by_group

if TYPE_CHECKING:
    from analytics.replay.log.coverage import Coverage
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from analytics.tables.stored_tables import StoredTables

AT_ONCE: Final = 1_000_000
"""So many rows are looked at together."""

_CHANGES: Final = (
    *("group_id", "coordinator_partition", "life", "epoch", "at", "change"),
    *("member_id", "client_id", "before_is_compacted"),
    *("group_instance_id", "client_host", "group_type", "record_offset"),
)
_EPOCHS: Final = (
    *("group_id", "coordinator_partition", "life", "epoch", "group_type", "state"),
    *("from_offset", "from_timestamp", "leader", "protocol", "protocol_type", "member_count"),
    *("partitions_assigned", "partitions_moved", "missing_before", "missing_is_compacted"),
    "leader_epoch",
)
_HELD: Final = (
    *("group_id", "coordinator_partition", "life", "group_type", "member_id"),
    *("group_instance_id", "kind", "topic", "partition", "from_epoch", "from_is_bound"),
    *("from_timestamp", "to_offset"),
)
_OWNED: Final = (
    *("group_id", "member_id", "group_instance_id", "kind", "topic", "partition"),
    *("from_timestamp", "to_offset"),
)
"""Of `_HELD` what `static_owners` reads."""
_TABLES: Final = {
    "groups": ("group_id", "epoch", "assignment_epoch", "member_count"),
    "members": ("group_id", "member_id", "member_epoch", "state"),
    "group_epochs": _EPOCHS,
    "membership_changes": _CHANGES,
    "assignment_history": _HELD,
}
NEEDS: Final = (*_TABLES, "offset_history")
TABLES: Final = (
    *("rebalances", "group_churn", "rebalance_storms", "stalled_members"),
    "rebalance_causes",
)
ORDERS: Final = dict.fromkeys(TABLES, BY_GROUP)
_GENERATIONS: Final = {
    "coordinator_partition": "partition",
    "group_id": "key.group",
    "offset": "offset",
    "leader_epoch": "leader_epoch",
    "is_tombstone": "is_tombstone",
    "generation": "value.generation",
}
_PROGRESS: Final = ("group_id", "topic", "partition", "effective_timestamp")


def made_tables(state: ReplayedWorkspace, time: AskedTime) -> Mapping[str, PartedTable]:
    """Return every table, sorted by its key."""
    again = stored_again(CountedRecords(state).rows("group_metadata", _GENERATIONS))
    work = partial(
        tables_of_part,
        {"stored_again": again, "progress": _last_progress(state.tables)},
        known_coverage(state),
        time,
    )
    parts = group_reads(state.tables, _TABLES, AT_ONCE)
    return state.runner.run(work, parts, ORDERS).tables


def tables_of_part(
    beside: Mapping[str, pl.DataFrame],
    coverage: Coverage,
    time: AskedTime,
    rows: Mapping[str, pl.DataFrame],
) -> PartAnswer:
    """Return the tables of some whole groups.

    Args:
        beside: `stored_again` and `progress`, of all groups.
        coverage: What the dump holds.
        time: The time asked about.
        rows: `_TABLES` of theirs.
    """
    made = rebalance_tables({**rows, **beside}, coverage, time)
    return PartAnswer({name: by_group(each) for name, each in made.items()})


def _last_progress(tables: StoredTables) -> pl.DataFrame:
    """Return when commits of groups with static members last advanced a partition."""
    is_theirs = pc.field("group_instance_id").is_valid() & pc.field("to_offset").is_null()
    held = tables.read("assignment_history", _OWNED, is_theirs)
    groups = static_owners(frame_of(held))["group_id"].unique().to_arrow()
    found = last_progress(
        _with_last(tables.read("offset_history", _PROGRESS, pc.scalar(value=False)))
    )
    if not len(groups):
        return found
    wanted = (pc.field("advance") > 0) & pc.field("group_id").isin(groups)
    for piece in tables.pieces("offset_history", _PROGRESS, wanted):
        found = last_progress(pl.concat([found, last_progress(_with_last(piece))]))
    return found


def _with_last(rows: pa.Table) -> pl.DataFrame:
    return frame_of(rows).rename({"effective_timestamp": "last"})
