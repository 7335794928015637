"""Groups as Kafka's own tools describe them, at the instant or in an epoch of theirs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from analytics.gaps.group_gaps import undecided_of_all
from analytics.gaps.group_selection import COLUMNS, GroupSelection, select_groups, with_unread
from analytics.questions.answer import Answer
from analytics.questions.describe.description import NEEDS, described_groups, nothing_described
from analytics.questions.describe.epoch import NEEDS as EPOCH_NEEDS
from analytics.questions.describe.epoch import groups_at_epoch
from analytics.questions.question import Question

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

OFFSETS, MEMBERS, STATE = "offsets", "members", "state"
_EMPTY: Final = "Empty"
_REBALANCING: Final = (*("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"),)


@dataclass(frozen=True)
class DescribeSettings:
    """What of groups is described.

    Attributes:
        what: Their offsets, members or state: what is not asked for leaves no doubts.
        group_type: Only groups of this type; classic has the simple ones with it.
        end_offsets: A file that says where logs ended.
        epoch: Members and assignments as of this generation or group epoch; None is the instant.
        is_compared: It is held against what Kafka's tool printed, which fails on groups whose
            members cannot be read: the comparison says which.
    """

    what: str = OFFSETS
    group_type: str | None = None
    end_offsets: str | None = None
    epoch: int | None = None
    is_compared: bool = False


def describe(state: ReplayedWorkspace, settings: DescribeSettings) -> Answer:
    """Return what the rows of Kafka's describing tools are made of.

    Its figures are the fields of a `Description`.

    Raises:
        InputUnreadableError: The file is not what it has to be.
        WorkspaceError: A table cannot be read.
    """
    if settings.epoch is not None:
        return _at_epoch(state, settings.epoch)
    groups = select_groups(state, settings.group_type, with_offsets=settings.what == OFFSETS)
    description, warnings = described_groups(state, groups.rows, settings.end_offsets)
    if settings.what != STATE and not settings.is_compared:
        groups = with_unread(groups, description.members.select(COLUMNS))
    if settings.what == OFFSETS and not state.tables.selection.groups:
        undecided = undecided_of_all(state)
        if undecided is not None:
            groups = replace(groups, gaps=(*groups.gaps, undecided))
    return Answer(
        {},
        groups,
        warnings=warnings,
        statements=() if settings.is_compared else _states_of_named(state, groups),
        figures=vars(description),
    )


def _at_epoch(state: ReplayedWorkspace, epoch: int) -> Answer:
    groups, description = groups_at_epoch(state, epoch, nothing_described(state))
    groups = with_unread(groups, description.members.select(COLUMNS))
    return Answer({}, groups, summary={"epoch": epoch}, figures=vars(description))


def _states_of_named(state: ReplayedWorkspace, groups: GroupSelection) -> tuple[str, ...]:
    """Return of groups that were asked for by name what Kafka's tools say of their states."""
    named = set(state.tables.selection.groups)
    sentences = []
    for each in groups.rows.select(["group_id", "state"]).to_pylist() if named else ():
        if each["group_id"] in named and each["state"] == _EMPTY:
            sentences.append(f"group {each['group_id']} has no active members")
        elif each["group_id"] in named and each["state"] in _REBALANCING:
            sentences.append(f"group {each['group_id']} is rebalancing")
    return tuple(sentences)


def _needs_besides(settings: DescribeSettings) -> tuple[str, ...]:
    return NEEDS if settings.epoch is None else EPOCH_NEEDS


DESCRIBE: Final = Question(
    name="describe",
    needs=("groups", "topics", "partition_leaders"),
    tables=(),
    settings=DescribeSettings,
    answer=describe,
    needs_besides=_needs_besides,
    is_audited=False,
)
