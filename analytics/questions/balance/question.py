"""How even assignments of a replayed workspace are, and in which partitions its groups lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import select_groups
from analytics.questions.answer import Evaluated
from analytics.questions.balance.balance_tables import tables_ever, tables_now
from analytics.questions.balance.held_in_epochs import HeldInEpochs
from analytics.questions.balance.placement import Placement, placement
from analytics.replayed.whole_groups import frame_of
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.evaluation_rules import BalanceRules, RebalanceRules


def evaluate_balance(
    state: ReplayedWorkspace, rules: BalanceRules, *, through_history: bool
) -> Evaluated:
    """Return `assignment_balance` and `assignment_alternatives`.

    Args:
        state: A replayed workspace with the tables of `balance_tables`.
        rules: Bands.
        through_history: Judge every epoch, and not only the instant.

    Raises:
        WorkspaceError: A table cannot be read.
    """
    groups = select_groups(state, with_offsets=False)
    gaps = _gaps(state, groups.found, through_history=through_history)
    if through_history:
        tables = tables_ever(state, HeldInEpochs(state), rules, gaps)
    else:
        tables = tables_now(state, rules, gaps)
    doubts = (
        each for each in _doubts(tables["assignment_balance"]) if each not in groups.cannot_tell
    )
    return Evaluated(tables, groups, tuple(doubts))


def _gaps(state: ReplayedWorkspace, groups: pa.Table, *, through_history: bool) -> dict[str, str]:
    """Return the groups with members of which the dump lacks records that may matter, with why."""
    completeness = GroupCompleteness(state)
    with_members = pc.field("member_count") > 0
    if through_history:
        ever = state.tables.read("group_epochs", ["group_id"], with_members)["group_id"]
        groups = groups.filter(pc.is_in(groups["group_id"], pc.unique(ever)))
    else:
        groups = groups.filter(with_members)
    found: dict[str, str] = {}
    for group in completeness.may_have_gaps(groups):
        gaps = completeness.gaps_of(group)
        why = gaps.membership or (gaps.history if through_history else None)
        if why is not None:
            found[group] = why.removeprefix(f"{group}: ")
    return found


def _doubts(balance: pa.Table) -> list[str]:
    """Return what cannot be told of groups, each once."""
    rows = balance.filter(pc.equal(balance["verdict"], "cannot_tell"))
    sentences = {
        f"{row['group_id']}: {row['cause'] or row['verdict']}": None for row in rows.to_pylist()
    }
    return list(sentences)


def group_placement(state: ReplayedWorkspace, rules: RebalanceRules) -> Placement:
    """Verify the place of every group that is there, whichever were asked for."""
    everything = StoredTables(state.tables.workspace)
    topics = everything.read("topics", ["partitions"], pc.field("topic") == CONSUMER_OFFSETS)
    counts = [each for each in topics["partitions"].to_pylist() if each]
    groups = frame_of(everything.read("groups", ["group_id", "coordinator_partition"]))
    present = {
        each["partition"]
        for each in state.manifest["partitions"]
        if each["topic"] == CONSUMER_OFFSETS
    }
    return placement(groups, max(counts, default=None), rules, len(present))
