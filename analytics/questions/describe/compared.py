"""What a comparison with the output of Kafka's own tool has to know of the state."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from analytics.decode.selection import names_wanted
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.timeline.topic_lives import METADATA_LOG
from analytics.tables.stored_tables import StoredTables

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


class AskedNames(NamedTuple):
    """The names, among those that a file has, that are asked about."""

    groups: frozenset[str]
    topics: frozenset[str]


def asked_names(
    state: ReplayedWorkspace, groups: Iterable[str], topics: Iterable[str]
) -> AskedNames:
    """Return the groups and the topics of a file that are asked about."""
    selection = state.tables.selection
    wanted = names_wanted(groups, selection.groups, selection.exclude_groups)
    return AskedNames(frozenset(wanted), frozenset(names_wanted(topics, selection.topics)))


def why_not_described(state: ReplayedWorkspace, groups: Collection[str]) -> dict[str, str]:
    """Return why groups that are not there may be in what the dump lacks, by group.

    Of a group that is known not to have been there it has nothing.
    """
    if not groups:
        return {}
    completeness = GroupCompleteness(state)
    reasons = {group: completeness.of_group(group) for group in sorted(groups)}
    return {
        group: f"cannot tell: {each.reason}" for group, each in reasons.items() if each is not None
    }


def existing_topics(state: ReplayedWorkspace) -> frozenset[str] | None:
    """Return the topics that were there, None where the dump does not tell."""
    stored = StoredTables(state.tables.workspace)
    topics = stored.read("topics", ["topic", "source", "deleted_at"]).to_pylist()
    if all(each["source"] != METADATA_LOG for each in topics):
        return None
    return frozenset(each["topic"] for each in topics if each["deleted_at"] is None)
