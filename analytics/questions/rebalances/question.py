"""Generations and group epochs, churn, storms and stalled members of a replayed workspace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from analytics.epoch_times import EPOCH
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import HOMES, GroupSelection, select_groups
from analytics.questions.question import Answer, Question
from analytics.questions.rebalances import rebalance_tables
from analytics.questions.rebalances.rebalance_tables import AskedTime
from analytics.replay.dump.choices import BeforeEnd, iso_time
from analytics.replay.dump.times import last_record_time, resolved_time
from analytics.tables.parted_table import PartedTables
from schemas import CONSUMER_OFFSETS
from schemas.evaluation_rules import RebalanceRules, rebalance_causes, rebalance_rules
from schemas.reading import words_of

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

NOT_RECORDED: Final = "Whether a member timed out or left by itself is not recorded."


@dataclass(frozen=True)
class RebalanceSettings:
    """What of rebalances is asked.

    Attributes:
        time_from: The first instant that is asked about: a datetime, ISO 8601, epoch milliseconds,
            or a time before the end of the dump; None: from the beginning.
        time_to: The last one; None: to the end.
        storm_epochs: So many epochs make a storm; None is the rules'.
        storm_minutes: If they began within so many minutes; None is the rules'.
    """

    time_from: datetime | str | int | BeforeEnd | None = None
    time_to: datetime | str | int | BeforeEnd | None = None
    storm_epochs: int | None = None
    storm_minutes: float | None = None


def rebalances(state: ReplayedWorkspace, settings: RebalanceSettings) -> Answer:
    """Return who came and went with each epoch, how often, and when that was too much.

    Raises:
        SchemaError: A threshold is none.
        WorkspaceError: A table cannot be read.
    """
    rules = _rules(state, settings)
    since, until = (
        resolved_time(each, state.manifest) for each in (settings.time_from, settings.time_to)
    )
    groups = _with_gaps(select_groups(state, with_offsets=False, columns=HOMES), state)
    time = AskedTime(since, until, _now(state), rules)
    return Answer(
        PartedTables(rebalance_tables.made_tables(state, time)),
        groups,
        summary={
            "from": None if since is None else iso_time(since),
            "to": None if until is None else iso_time(until),
            "storm": {"epochs": rules.storm.epochs, "minutes": rules.storm.minutes},
            "not_recorded": NOT_RECORDED,
            "causes_said": dict(rebalance_causes()),
            "coordinator_changes": words_of(rules.coordinator_changes),
        },
    )


def _rules(state: ReplayedWorkspace, settings: RebalanceSettings) -> RebalanceRules:
    """Return the rules: what is asked goes before the settings' thresholds."""
    own = {"storm_epochs": settings.storm_epochs, "storm_minutes": settings.storm_minutes}
    given = {name: each for name, each in own.items() if each is not None}
    return rebalance_rules({**state.settings.from_file.thresholds("rebalances"), **given})


def _with_gaps(selection: GroupSelection, state: ReplayedWorkspace) -> GroupSelection:
    """Add which of the groups may lack generations and members.

    Where all groups are asked about, the records that partitions lack are stated once already.
    """
    if not state.tables.selection.groups:
        return selection
    completeness = GroupCompleteness(state)
    groups = completeness.may_have_gaps(selection.rows)
    gaps = (each for group in groups for each in completeness.gaps_of(group).history)
    return replace(selection, gaps=tuple(dict.fromkeys((*selection.gaps, *gaps))))


def _now(state: ReplayedWorkspace) -> datetime:
    """Return the instant asked about; at the end of the dump, the time of its last record."""
    offsets = (each for each in state.manifest["partitions"] if each["topic"] == CONSUMER_OFFSETS)
    time = state.as_of["time"] or last_record_time(offsets, state.manifest.get("leader_clocks", ()))
    return datetime.fromisoformat(time) if time else EPOCH


REBALANCES: Final = Question(
    name="rebalances",
    needs=(*rebalance_tables.NEEDS, "topics"),
    tables=rebalance_tables.TABLES,
    settings=RebalanceSettings,
    answer=rebalances,
)
