"""Which member of a group is which operator, and who had a partition when.

An operator registers itself by its name; a member is known by its client id and its static name.
They are one where one of these is the operator's name, or has it as a part of its own between
separators (`C-J7-orders-consumer`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from analytics.seeds.region.contributions import CheckpointKey, Partition

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
