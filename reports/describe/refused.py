"""Groups that Kafka's tools cannot describe: a saved output never has them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from reports.describe.columns import CONSUMER, OFFSETS, View

if TYPE_CHECKING:
    from reports.describe.source import Source

EMPTY_ID = "Kafka's tools refuse the empty group id"
NUL = "no command line can name a group with a NUL in it"
NO_COMMITS = "tools of old releases print nothing of a group without committed offsets"


def refused_by_kafka(
    view: View,
    source: Source,
    topics: Collection[str] | None = None,
    *,
    is_old: bool = False,
) -> dict[str, str]:
    """Return the groups that a tool cannot describe in a view, each with why.

    Args:
        view: What is described.
        source: Tables at the instant asked about.
        topics: Those that exist; None where that is not known.
        is_old: The tool is of a release that prints no column GROUP.
    """
    found: dict[str, str] = {}
    if is_old and view == View(CONSUMER, OFFSETS):
        committed = set(source.committed["group_id"].to_pylist())
        found |= dict.fromkeys({*source.groups["group_id"].to_pylist()} - committed, NO_COMMITS)
    if view == View(CONSUMER, OFFSETS) and topics is not None:
        for each in source.assignments.select(["group_id", "topic"]).to_pylist():
            if each["topic"] is not None and each["topic"] not in topics:
                found[each["group_id"]] = (
                    f"the tool fails as topic {each['topic']}, which a member owns, does not exist"
                )
    if view.family == CONSUMER:
        for each in _unread_by_kafka(source):
            found[each] = "the tool fails as it cannot read what a member was given"
    for group in source.groups["group_id"].to_pylist():
        if not group:
            found[group] = EMPTY_ID
        elif "\0" in group:
            found[group] = NUL
    return found


def _unread_by_kafka(source: Source) -> list[str]:
    members = source.members
    refused = pc.or_(
        pc.is_valid(members["assignment_fields_written"]), pc.is_valid(members["unread"])
    )
    groups: list[str] = members.filter(refused)["group_id"].to_pylist()
    return groups
