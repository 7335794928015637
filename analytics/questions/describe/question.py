"""Groups as Kafka's own tools describe them, at the instant or in an epoch of theirs.

The groups there are at the instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import is_name, names_wanted
from analytics.gaps.gap import Gap, gap
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import COLUMNS, GroupSelection, select_groups, with_unread
from analytics.gaps.internal_topics import undecided_of_all
from analytics.questions.describe.description import (
    NEEDS,
    Description,
    described_groups,
    nothing_described,
)
from analytics.questions.question import Answer, Question, check_choice
from schemas import table

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


# Who was in a group, and owned what, in one of its generations or epochs.

OWNERSHIP: Final = "assignment_history"
EPOCH_NEEDS: Final = (
    *("groups", "topics", "partition_leaders", "group_epochs", "membership_changes"),
    OWNERSHIP,
)
"""The tables that are read."""
_CONSUMERS = "consumer"
"""`protocol_type` of a group whose members are consumers."""

_COMES = ("joined", "restarted")
_GOES = ("left", "fenced")

Row = Mapping[str, Any]


def groups_at_epoch(
    state: ReplayedWorkspace, epoch: int, bare: Description
) -> tuple[GroupSelection, Description]:
    """Return members and assignments of the groups asked for, in an epoch.

    Where a group id was used again, it is the latest life that had the epoch.

    Args:
        state: Says which groups.
        epoch: Generation or group epoch.
        bare: What a description has beside groups, members and assignments.
    """
    rows = state.tables.read("group_epochs").to_pylist()
    wanted = state.tables.selection.groups
    names = [each for each in wanted if is_name(each)]
    there = {row["group_id"] for row in rows}
    names += sorted(there - set(names))
    names += [each for each in wanted if not is_name(each) and not names_wanted(there, (each,))]
    untold = GroupCompleteness(state)
    found: list[Row] = []
    gaps: list[Gap] = []
    missing: dict[str, str] = {}
    for name in names:
        lives = [row for row in rows if row["group_id"] == name]
        had = [row for row in lives if row["epoch"] == epoch]
        if had:
            found.append(max(had, key=lambda row: (row["life"], row["from_offset"])))
            continue
        reason = untold.of_group(name) or _why_unknown(name, epoch, lives)
        if reason is not None:
            gaps.append(reason)
        else:
            missing[name] = _why_not(name, epoch, lives, state)
    owned = _owned(state, found, epoch)
    groups = pa.Table.from_pylist(found, _schema_of(_GROUPS))
    description = replace(
        bare,
        groups=groups,
        members=_members(found, _present(state, found, epoch), owned),
        assignments=pa.Table.from_pylist(owned, _schema_of(_ASSIGNMENTS)),
    )
    asked = GroupSelection(groups, tuple(gaps), tuple(missing), why_missing=missing)
    return asked, description


def _why_unknown(name: str, epoch: int, lives: Sequence[Row]) -> Gap | None:
    """Return why an epoch between or before those that are known may have been there."""
    for life in sorted({row["life"] for row in lives}, reverse=True):
        later = [row for row in lives if row["life"] == life and row["epoch"] > epoch]
        after = min(later, key=lambda row: int(row["epoch"]), default=None)
        if after and (after["missing_is_compacted"] or after["missing_before"] is None):
            return gap(
                "epoch_compacted", group_id=name, epoch=epoch, next_epoch=int(after["epoch"])
            )
    return None


def _why_not(name: str, epoch: int, lives: Sequence[Row], state: ReplayedWorkspace) -> str:
    if not is_name(name) and not lives:
        return f"no group matches {name!r} at {state.instant}"
    if not lives:
        return f"group {name} does not exist at {state.instant}"
    known = sorted({row["epoch"] for row in lives})
    if epoch > known[-1]:
        return f"group {name} has no epoch {epoch} at {state.instant}: its latest is {known[-1]}"
    return f"group {name}: epoch {epoch} left no record; a rebalance that is given up leaves none"


def _owned(state: ReplayedWorkspace, groups: Iterable[Row], epoch: int) -> list[dict[str, Any]]:
    lives = {(row["group_id"], row["life"]) for row in groups}
    if not lives:
        return []
    began = pc.field("from_epoch") <= epoch
    lasts = pc.field("to_epoch").is_null() | (pc.field("to_epoch") > epoch)
    rows = state.tables.read(OWNERSHIP, where=began & lasts).to_pylist()
    return [
        {**row, "topic": row["topic"] or row["topic_id"]}
        for row in rows
        if (row["group_id"], row["life"]) in lives
    ]


def _present(
    state: ReplayedWorkspace, groups: Iterable[Row], epoch: int
) -> dict[tuple[str, str], Row]:
    """Return the members that had come and not gone, with their last change."""
    lives = {(row["group_id"], row["life"]) for row in groups}
    present: dict[tuple[str, str], Row] = {}
    changes = state.tables.read("membership_changes", where=pc.field("epoch") <= epoch)
    ordered = changes.sort_by(
        [("coordinator_partition", "ascending"), ("record_offset", "ascending")]
    )
    for each in ordered.to_pylist():
        if (each["group_id"], each["life"]) not in lives:
            continue
        if each["change"] in _GOES:
            present.pop((each["group_id"], each["member_id"]), None)
        elif each["change"] in _COMES:
            present.pop((each["group_id"], each["previous_member_id"]), None)
            present[each["group_id"], each["member_id"]] = each
    return present


def _members(
    groups: Iterable[Row],
    present: Mapping[tuple[str, str], Row],
    owned: Iterable[Row],
) -> pa.Table:
    """Return those that are known to be there, and those that own something."""
    types = {row["group_id"]: row for row in groups}
    members: dict[tuple[str, str], dict[str, Any]] = {
        key: {**each, "member_epoch": None} for key, each in present.items()
    }
    for each in owned:
        key = each["group_id"], each["member_id"]
        member = members.setdefault(key, {**each, "member_epoch": None})
        if each["kind"] == "current":
            member["member_epoch"] = max(member["member_epoch"] or 0, each["member_epoch"] or 0)
    rows = []
    for (group, _), each in sorted(members.items()):
        if group in types:
            unread = _why_unread(types[group])
            rows.append({**each, "unread": unread, "missing": unread or each["missing"]})
    return pa.Table.from_pylist(rows, _schema_of(_MEMBERS))


def _why_unread(epoch: Row) -> str | None:
    """Return why nothing tells what members had in an epoch, None where something does."""
    if epoch["group_type"] != "classic" or epoch["partitions_assigned"] is not None:
        return None
    if epoch["protocol_type"] != _CONSUMERS:
        return f"the group was not a consumer group ({epoch['protocol_type'] or 'no protocol'})"
    return "an assignment in it is not of the consumer protocol"


def _schema_of(columns: Mapping[str, pa.DataType]) -> pa.Schema:
    return pa.schema(list(columns.items()))


_TEXT, _INT, _FLAG = pa.string(), pa.int32(), pa.bool_()
_GROUPS = {
    **dict.fromkeys(("group_id", "group_type", "protocol_type", "state", "protocol"), _TEXT),
    **dict.fromkeys(("epoch", "assignment_epoch", "member_count", "coordinator_partition"), _INT),
}
_MEMBERS = {
    **dict.fromkeys(("group_id", "member_id", "group_instance_id", "client_id"), _TEXT),
    **dict.fromkeys(("client_host", "process_id"), _TEXT),
    **dict.fromkeys(("member_epoch", "topology_epoch"), _INT),
    "is_classic": _FLAG,
    "assignment_fields_written": _INT,
    "missing": _TEXT,
    "unread": _TEXT,
}
_ASSIGNMENTS = {
    **dict.fromkeys(("group_id", "member_id", "kind", "role", "subtopology_id"), _TEXT),
    **dict.fromkeys(("topic", "topic_id"), _TEXT),
    "partition": _INT,
}


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

    def __post_init__(self) -> None:
        """Refuse what nobody can describe.

        Raises:
            SettingRefusedError: `what` or `group_type` is no such word.
        """
        check_choice("what", self.what, (OFFSETS, MEMBERS, STATE))
        types = table("groups").column("group_type").closed
        if self.group_type is not None and types is not None:
            check_choice("group_type", self.group_type, types.values)


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


@dataclass(frozen=True)
class ListSettings:
    """Nothing of it can be set: it lists the groups that the workspace is asked about."""


def list_groups(state: ReplayedWorkspace, _settings: ListSettings) -> Answer:
    """Return the groups there are.

    Its figure `groups` has rows of the table `groups`.

    Raises:
        WorkspaceError: A table cannot be read.
    """
    groups = select_groups(state, with_offsets=False)
    return Answer({}, groups, figures={"groups": groups.rows})


LIST: Final = Question(
    name="list",
    needs=("groups", "topics"),
    tables=(),
    settings=ListSettings,
    answer=list_groups,
    is_audited=False,
)
