"""Generations and group epochs, churn, storms and stalled members of a replayed workspace."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from analytics.epoch_times import EPOCH
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import GroupSelection, select_groups
from analytics.questions.answer import Evaluated
from analytics.questions.rebalances import rebalance_tables
from analytics.questions.rebalances.tables import AskedTime
from analytics.replay.dump.times import last_record_time
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.evaluation_rules import RebalanceRules

NEEDS: Final = (*rebalance_tables.NEEDS, "topics")
"""The state and history tables that are read."""


def evaluate_rebalances(
    state: ReplayedWorkspace,
    rules: RebalanceRules,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Evaluated:
    """Return every table about rebalances.

    `rebalances`, `group_churn`, `rebalance_storms`, `stalled_members`, `rebalance_causes`.

    Args:
        state: A replayed workspace with `NEEDS`.
        rules: Thresholds.
        since: The first instant that is asked about; None: from the beginning.
        until: The last one; None: to the end.

    Raises:
        WorkspaceError: A table cannot be read.
    """
    groups = _with_gaps(select_groups(state, with_offsets=False), state)
    asked = AskedTime(since, until, _now(state), rules)
    return Evaluated(rebalance_tables.made_tables(state, asked), groups)


def _with_gaps(asked: GroupSelection, state: ReplayedWorkspace) -> GroupSelection:
    """Add which of the groups may lack generations and members.

    Where all groups are asked about, the records that partitions lack are stated once already.
    """
    if not state.tables.selection.groups:
        return asked
    completeness = GroupCompleteness(state)
    groups = completeness.may_have_gaps(asked.found)
    gaps = [completeness.gaps_of(group).history for group in groups]
    all_gaps = dict.fromkeys([*asked.cannot_tell, *(each for each in gaps if each is not None)])
    return replace(asked, cannot_tell=tuple(all_gaps))


def _now(state: ReplayedWorkspace) -> datetime:
    """Return the instant asked about; at the end of the dump, the time of its last record."""
    offsets = (each for each in state.manifest["partitions"] if each["topic"] == CONSUMER_OFFSETS)
    time = state.as_of["time"] or last_record_time(offsets)
    return datetime.fromisoformat(time) if time else EPOCH
