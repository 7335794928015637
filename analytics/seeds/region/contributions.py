"""What operators contribute to checkpoints, and which member of a group is which operator."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from analytics.decode.selection import Selection, names_wanted

# What operators contribute to checkpoints: one shape for every form they are written in.

REGION: Final = "region"
"""Checkpoints of the operators of a consistent region, one by one."""
MERGE: Final = "merge"
"""What the job control plane of a region has merged from them."""
OF_REGIONS: Final = (REGION, MERGE)

Partition = tuple[str, int]
"""A topic, by name, and a partition of it."""


@dataclass(frozen=True)
class CheckpointKey:
    """What tells checkpoints apart.

    Attributes:
        group_id: The group; None where nobody names it.
        form: What wrote it.
        source: The folder or file of a query or table; None for operators of a region, whose
            contributions may lie in several files.
        sequence_id: Number of the checkpoint.
    """

    group_id: str | None
    form: str
    source: str | None
    sequence_id: int

    @property
    def of_all(self) -> tuple[str | None, str, str | None]:
        """What its checkpoints have in common."""
        return self.group_id, self.form, self.source

    def columns(self) -> dict[str, str | int | None]:
        """Return it as columns of the tables."""
        return {
            "group_id": self.group_id,
            "form": self.form,
            "checkpoint_source": self.source,
            "checkpoint_sequence_id": self.sequence_id,
        }

    @property
    def order(self) -> tuple[str, str, str, int]:
        """By what checkpoints are sorted: the latest of a group comes last."""
        return self.group_id or "", self.form, self.source or "", self.sequence_id


@dataclass(frozen=True)
class Contribution:
    """What one operator contributes to one checkpoint; of a merge, what all of them did.

    Attributes:
        key: The checkpoint.
        contributors: The operator; of a merge, all that contributed.
        operators: All operators of the group, as this one knew them; empty where only their
            number is known.
        expected: How many there are; None where it does not say.
        offsets: The next offset to read by partition; None where none was known yet.
        region_index: Of the consistent region.
        reset_attempt: Of the reset it was contributed for.
        at: When it was made, in epoch milliseconds.
        drain_started_at: When the drain before it began, in epoch milliseconds.
        is_finished: Whether its writer finished the checkpoint; None where the form does not say.
        markers: What stands instead of an offset of partitions without one, in words.
        unusable: Why its writer cannot go on from any checkpoint; None where it can.
    """

    key: CheckpointKey
    contributors: tuple[str, ...]
    operators: tuple[str, ...]
    expected: int | None
    offsets: tuple[tuple[Partition, int | None], ...]
    region_index: int | None = None
    reset_attempt: int | None = None
    at: int | None = None
    drain_started_at: int | None = None
    is_finished: bool | None = None
    markers: tuple[tuple[Partition, str], ...] = ()
    unusable: str | None = None

    @property
    def operator(self) -> str | None:
        """The operator that made it; None where several are merged."""
        return self.contributors[0] if self.key.form != MERGE else None


def partition_text(partition: Partition) -> str:
    """Return a partition as Kafka's tools write it."""
    return f"{partition[0]}-{partition[1]}"


def selected(contributions: Sequence[Contribution], selection: Selection) -> list[Contribution]:
    """Return the contributions to checkpoints of groups, and of topics, that are asked for."""
    kept = list(contributions)
    if selection.groups or selection.exclude_groups:
        groups = set(
            names_wanted(groups_of(contributions), selection.groups, selection.exclude_groups)
        )
        kept = [each for each in contributions if each.key.group_id in groups]
    if selection.topics:
        named = sorted({topic for each in contributions for (topic, _), _ in each.offsets})
        topics = set(names_wanted(named, selection.topics))
        kept = [replace(each, offsets=_of_topics(each, topics)) for each in kept]
    return kept


def groups_of(contributions: Iterable[Contribution]) -> list[str]:
    """Return the groups that are known, sorted."""
    return sorted({each.key.group_id for each in contributions if each.key.group_id is not None})


def places_without_group(contributions: Iterable[Contribution]) -> list[str]:
    """Return where the checkpoints are of which no group is known, sorted."""
    places: dict[bool, set[str]] = {True: set(), False: set()}
    for each in contributions:
        places[each.key.group_id is not None].add(str(each.key.source or each.key.form))
    return sorted(places[False] - places[True])


def _of_topics(
    contribution: Contribution, topics: set[str]
) -> tuple[tuple[Partition, int | None], ...]:
    return tuple(each for each in contribution.offsets if each[0][0] in topics)


# Which member of a group is which operator, and who had a partition when.
#
# An operator registers itself by its name; a member is known by its client id and its static
# name. They are one where one of these is the operator's name, or has it as a part of its own
# between separators (`C-J7-orders-consumer`).

Row = dict[str, Any]


@dataclass(frozen=True)
class Member:
    """A member of a group.

    Attributes:
        member_id: Its id.
        client_id: As configured.
        group_instance_id: Its static name.
    """

    member_id: str
    client_id: str | None = None
    group_instance_id: str | None = None

    @property
    def names(self) -> list[str]:
        """What it may be called by."""
        return [each for each in (self.group_instance_id, self.client_id) if each]


@dataclass(frozen=True)
class Matched:
    """Members and operators that are one.

    Attributes:
        members: The member of each operator that has one.
        operators: The operator of each member that is one, by member id.
        outside: Members that are no operator.
        without: Operators that are no member.
        why_unknown: Why that cannot be told; None where it can.
    """

    members: dict[str, Member] = field(default_factory=dict)
    operators: dict[str, str] = field(default_factory=dict)
    outside: tuple[Member, ...] = ()
    without: tuple[str, ...] = ()
    why_unknown: str | None = None


def matched(members: Sequence[Member], operators: Iterable[str]) -> Matched:
    """Return which members are which operators.

    Where no name fits, only numbers could differ: then who is who cannot be told.
    """
    names = sorted(set(operators))
    found: dict[str, str] = {}
    for member in members:
        named = operator_of(member.names, names)
        if named is not None:
            found[member.member_id] = named
    by_operator: dict[str, list[Member]] = {}
    for member in members:
        if member.member_id in found:
            by_operator.setdefault(found[member.member_id], []).append(member)
    if members and names and not found:
        return Matched(
            why_unknown="no member has the name of an operator as client id or static name"
        )
    doubled = sorted(name for name, each in by_operator.items() if len(each) > 1)
    if doubled:
        return Matched(why_unknown=f"several members have the name of {', '.join(doubled)}")
    return Matched(
        {name: each[0] for name, each in by_operator.items()},
        found,
        tuple(each for each in members if each.member_id not in found),
        tuple(name for name in names if name not in by_operator),
    )


def operator_of(called: Sequence[str], operators: Sequence[str]) -> str | None:
    """Return the operator that a member is called after; None where none, or several, fit."""
    for each in called:
        if each in operators:
            return each
    fitting = {
        name
        for name in operators
        for each in called
        if re.search(rf"(?:^|[-._/:]){re.escape(name)}(?:$|[-._/:])", each)
    }
    longest = max(map(len, fitting), default=0)
    best = [name for name in fitting if len(name) == longest]
    return best[0] if len(best) == 1 else None


@dataclass(frozen=True)
class Owned:
    """That a member had a partition for a time.

    Attributes:
        names: What it may be called by.
        start: Since when, in epoch milliseconds; None where not known.
        end: Until when; None while it lasts.
    """

    names: tuple[str, ...]
    start: int | None
    end: int | None


@dataclass(frozen=True)
class OwnersThen:
    """Who had which partitions when (`assignment_history`)."""

    owned: dict[tuple[str, Partition], list[Owned]]
    made_at: dict[CheckpointKey, int]

    def __call__(
        self, key: CheckpointKey, partition: Partition, operators: Sequence[str]
    ) -> str | None:
        """Return which operator had a partition when a checkpoint was made; None: not known."""
        at = self.made_at.get(key)
        if at is None or key.group_id is None:
            return None
        found = {
            operator_of(each.names, operators)
            for each in self.owned.get((key.group_id, partition), ())
            if each.start is not None and each.start <= at and (each.end is None or at < each.end)
        }
        return found.pop() if len(found) == 1 else None
