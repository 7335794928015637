"""The groups a question is about: those that are there, and what is to be said of the others."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import as_regex, is_name, names_wanted
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.internal_topics import by_which_setting
from analytics.gaps.misplaced_groups import why_not_there
from analytics.gaps.refused_partitions import refused_partitions
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

CLASSIC_TYPES = ("classic", "simple")


@dataclass(frozen=True)
class GroupSelection:
    """What was found.

    Attributes:
        rows: Rows of the table `groups`.
        cannot_tell: What the dump does not hold the answer to, one sentence each.
        missing: What was asked for, by name or pattern, and is known not to have been there.
        instant: The instant asked about, in words.
        refused: Which partitions of theirs a broker refuses to load.
        why_missing: By group, a sentence that says more than that it is not there.
        names_like_patterns: What was asked for looks like a pattern, and a group is called so.
        by_setting: What the number of partitions rests on, where that is a setting.
    """

    rows: pa.Table
    cannot_tell: tuple[str, ...]
    missing: tuple[str, ...]
    instant: str = ""
    refused: tuple[str, ...] = ()
    why_missing: Mapping[str, str] = field(default_factory=dict)
    names_like_patterns: tuple[str, ...] = ()
    by_setting: str | None = None

    def without_missing(self, names: Iterable[str]) -> GroupSelection:
        """Return the same, with groups of these names not missing: something is known of them."""
        known = list(dict.fromkeys(names))
        missing = tuple(each for each in self.missing if not names_wanted(known, (each,)))
        return replace(self, missing=missing)

    @property
    def errors(self) -> list[str]:
        """Why the answer is not whole, and what is not there, one sentence each."""
        absent = [self.why_missing.get(each) or self._not_there(each) for each in self.missing]
        return [*(f"cannot tell: {each}" for each in self.cannot_tell), *absent]

    @property
    def remarks(self) -> list[str]:
        """What else to know of the groups that were chosen, one sentence each."""
        return [
            *self.refused,
            *([] if self.by_setting is None else [self.by_setting]),
            *(
                f"--group {each!r} was taken for the group of that very name, which is there; as a "
                f"pattern it is --group {shlex.quote(as_regex(each))}"
                for each in self.names_like_patterns
            ),
        ]

    def _not_there(self, name: str) -> str:
        if is_name(name):
            return f"group {name} does not exist at {self.instant}"
        return f"no group matches {name!r} at {self.instant}"


def select_groups(
    replayed: ReplayedWorkspace, group_type: str | None = None, *, with_offsets: bool = True
) -> GroupSelection:
    """Return the groups that `--group` and `--type` ask for, as far as the dump tells.

    Args:
        replayed: Its selection says which groups are wanted.
        group_type: Only groups of this type; classic has the simple ones with it, as in Kafka.
        with_offsets: The question is about their offsets, too.
    """
    found = replayed.tables.read("groups")
    asked = replayed.tables.selection.groups
    there = set(found["group_id"].to_pylist()) if asked else set()
    if group_type is not None:
        wanted = CLASSIC_TYPES if group_type == "classic" else (group_type,)
        found = found.filter(pc.is_in(found["group_type"], pa.array(wanted)))
    completeness = GroupCompleteness(replayed)
    names = [each for each in asked if is_name(each)]
    unknown = {name: reason for name in names if (reason := completeness.of_group(name))}
    cannot_tell = completeness.in_sentences(unknown)
    if not asked:
        cannot_tell += completeness.of_all()
    cannot_tell += [
        reason
        for name in completeness.may_have_gaps(found)
        if name not in unknown and (reason := _gap(completeness, name, with_offsets=with_offsets))
    ]
    unmatched = [each for each in asked if not is_name(each) and not names_wanted(there, (each,))]
    unsure = pattern_limits(completeness, unmatched)
    cannot_tell += unsure
    missing = [name for name in names if name not in there and name not in unknown]
    return GroupSelection(
        found,
        tuple(cannot_tell),
        (*missing, *(each for each in unmatched if not unsure)),
        replayed.instant,
        _refused(replayed, found),
        why_not_there(replayed, missing),
        names_like_patterns=tuple(each for each in asked if not is_name(each) and each in there),
        by_setting=by_which_setting(replayed, CONSUMER_OFFSETS),
    )


def pattern_limits(completeness: GroupCompleteness, unmatched: Container[str] = ()) -> list[str]:
    """Return why groups that match a pattern of `--group` may be missing, one sentence each.

    Args:
        completeness: Of the replay that is asked.
        unmatched: Patterns that match no group that is there.
    """
    asked = completeness.replayed.tables.selection.groups
    patterns = [each for each in asked if not is_name(each)]
    reasons = completeness.of_all() if patterns else []
    return [
        f"whether {'a group matches' if each in unmatched else 'more groups match'} {each!r}: {why}"
        for each in patterns
        for why in reasons
    ]


def _gap(completeness: GroupCompleteness, group: str, *, with_offsets: bool) -> str | None:
    """Return what cannot be told of a group that is there.

    Of all groups together it is said once which records their partitions lack.
    """
    if not completeness.replayed.tables.selection.groups:
        return completeness.incomplete(group)
    gaps = completeness.gaps_of(group)
    return gaps.membership or (gaps.offsets if with_offsets else None)


def _refused(replayed: ReplayedWorkspace, groups: pa.Table) -> tuple[str, ...]:
    homes = pc.unique(groups["coordinator_partition"]).to_pylist()
    every = StoredTables(replayed.tables.workspace)
    return tuple(refused_partitions(every, replayed.release, homes))
