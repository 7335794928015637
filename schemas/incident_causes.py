"""Which findings share a cause, read from `rules/incidents.json`: they are one incident."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal

from schemas.finding_rules import finding_rules
from schemas.reading import Explained, Minutes, load

LINE, COPY, TOPIC, GROUP, RULE = "line", "copy", "topic", "group", "rule"
"""What findings of one incident share."""

_FILE: Final = "rules/incidents.json"


class Cause(Explained, frozen=True):
    """A cause that findings of several rules, or several of one, may share.

    Attributes:
        rules: The rules; the command of the first that found something is the one to begin with.
        shared: What their findings have to share.
        title: What all of them come to: a template of the counts `groups` and, by the names of
            `rules`, of findings; of `topic`, `copy` or `group` where it is shared; and of a line
            `records`, `partitions`, `copies` and `at_least`.
        needs: Those of the rules without whose findings the title would say too much.
        titles: By rule the title, a template likewise, where no other rule found anything.
    """

    rules: tuple[str, ...]
    shared: Literal["line", "copy", "topic", "group", "rule"]
    title: str
    needs: tuple[str, ...] = ()
    titles: Mapping[str, str] = {}


class MostGroups(Explained, frozen=True):
    """Of how many groups each is told for itself."""

    groups: int


class IncidentCauses(Explained, frozen=True):
    """All of them.

    Attributes:
        elections_within: How soon after each other elections are one failure of a broker.
        groups_at_most: Of how many groups, each with a cause of its own, each is an incident.
        causes: By name.
    """

    elections_within: Minutes
    groups_at_most: MostGroups
    causes: Mapping[str, Cause]

    def __post_init__(self) -> None:
        """Refuse what could not be applied.

        Raises:
            ValueError: A rule is none, or of two causes, or needed and not one of its cause's.
        """
        known = {each.name for each in finding_rules()}
        named = [rule for each in self.causes.values() for rule in each.rules]
        if unknown := sorted(set(named) - known):
            raise ValueError(f"unknown rules: {', '.join(unknown)}")
        if twice := sorted({each for each in named if named.count(each) > 1}):
            raise ValueError(f"rules of two causes: {', '.join(twice)}")
        for name, each in self.causes.items():
            if not {*each.needs, *each.titles} <= set(each.rules):
                raise ValueError(f"{name} needs or titles rules that are not its own")


@cache
def incident_causes() -> IncidentCauses:
    """Return the causes.

    Raises:
        SchemaError: The file is not what it has to be.
    """
    return load(IncidentCauses, _FILE)
