"""The tables about rebalances, made of a replayed workspace, some groups at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import in_contract_order
from analytics.engine.part_runs import PartAnswer
from analytics.questions.rebalances.causes import causes
from analytics.questions.rebalances.epochs import rebalances, stored_again
from analytics.questions.rebalances.stalled_members import (
    idle_owners,
    last_progress,
    reconciling_members,
    shared_instances,
    static_owners,
    unassigned_epochs,
)
from analytics.questions.rebalances.storms import CHURN, group_churn, rebalance_storms
from analytics.replayed.records import Records
from analytics.replayed.replayed_workspace import known_coverage
from analytics.replayed.whole_groups import frame_of, group_reads
from analytics.tables.parted_table import BY_GROUP, PartedTable, by_group

if TYPE_CHECKING:
    from analytics.replay.log.coverage import Coverage
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from analytics.tables.stored_tables import StoredTables
    from schemas.evaluation_rules import RebalanceRules

# The tables about rebalances: what each is made of.


@dataclass(frozen=True)
class AskedTime:
    """The time asked about, and the thresholds.

    Attributes:
        begins: Epochs from then on count; None: all.
        ends: Epochs up to then count; None: all.
        now: The instant that state is of.
        rules: When much is too much.
    """

    begins: datetime | None
    ends: datetime | None
    now: datetime
    rules: RebalanceRules

    def within(self, frame: pl.DataFrame, time: str) -> pl.DataFrame:
        """Return the rows whose time counts; those without one do where all count."""
        if self.begins is not None:
            frame = frame.filter(pl.col(time) >= self.begins)
        if self.ends is not None:
            frame = frame.filter(pl.col(time) <= self.ends)
        return frame


def rebalance_tables(
    tables: Mapping[str, pl.DataFrame], coverage: Coverage, time: AskedTime
) -> dict[str, pl.DataFrame]:
    """Return all tables about rebalances of whole groups, sorted by their keys.

    Args:
        tables: `groups`, `members`, `group_epochs`, `membership_changes`, `assignment_history`; of
            `epochs.stored_again` `stored_again`, and of `stalled_members.last_progress` `progress`.
        coverage: What the dump holds.
        time: The time asked about.
    """
    begun, changes = _begun(tables["group_epochs"]), tables["membership_changes"]
    epochs = in_contract_order(
        "rebalances",
        time.within(rebalances(begun, changes, tables["stored_again"], coverage), "at"),
    )
    inside = time.within(_without_compacted(changes), "at")
    rules = time.rules
    doubtful = changes.filter("before_is_compacted")
    storms = rebalance_storms(
        time.within(begun, "from_timestamp"),
        inside,
        rules.storm.epochs,
        rules.storm.minutes,
        doubtful.filter(pl.col("change").is_in(CHURN)),
        coverage,
    )
    churn = group_churn(epochs, inside, storms, time.ends or time.now, coverage)
    made = {
        "group_churn": churn,
        "rebalance_storms": storms,
        "stalled_members": _stalled_members(tables, inside, time),
    }
    held = tables["assignment_history"]
    return {
        "rebalances": epochs,
        **{name: in_contract_order(name, frame) for name, frame in made.items()},
        "rebalance_causes": causes(
            epochs, tables["group_epochs"], held, coverage, doubtful=doubtful
        ),
    }


def _begun(epochs: pl.DataFrame) -> pl.DataFrame:
    """Leave out what a classic group stores before its first join: generation 0, of nobody."""
    return epochs.filter((pl.col("epoch") > 0) | (pl.col("member_count") > 0))


def _without_compacted(changes: pl.DataFrame) -> pl.DataFrame:
    """Leave out members that may have come before the first record that compaction left of them."""
    return changes.filter(~pl.col("before_is_compacted"))


def _stalled_members(
    tables: Mapping[str, pl.DataFrame], inside: pl.DataFrame, time: AskedTime
) -> pl.DataFrame:
    """Return the table `stalled_members`; `inside` are the changes of the time asked about."""
    groups, epochs, rules = tables["groups"], tables["group_epochs"], time.rules
    held, progress = tables["assignment_history"], tables["progress"]
    return pl.concat(
        [
            unassigned_epochs(groups, epochs),
            reconciling_members(groups, tables["members"], epochs, time.now, rules),
            idle_owners(held, progress, time.now, rules),
            shared_instances(inside, held, progress),
        ]
    )


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
    again = stored_again(Records(state).rows("group_metadata", _GENERATIONS))
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
