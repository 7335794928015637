"""Groups of which one of two states does not tell all, with the reason: nothing is guessed."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analytics.gaps.gap import joined
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.diff.paired import INCOMPLETE_GROUPS
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


def incomplete_groups(
    state: ReplayedWorkspace, groups: pa.Table, others: pa.Table
) -> dict[str, str]:
    """Return by group why a state does not tell all of it.

    Args:
        state: The state.
        groups: Its table `groups`.
        others: That of the state it is compared with: whether a group that is only there was here
            too is asked.
    """
    completeness = GroupCompleteness(state)
    incomplete = groups.filter(pc.invert(groups["complete"]))
    found = {
        str(name): str(why)
        for name, why in zip(
            incomplete["group_id"].to_pylist(), incomplete["missing"].to_pylist(), strict=True
        )
    }
    lacking = {*completeness.lost_before, *completeness.losses}
    asked = set(
        _alone(others, groups)["group_id"].to_pylist()
        + _in_partitions(groups, lacking)["group_id"].to_pylist()
    )
    for name in asked - set(found):
        why = joined(completeness.gaps_of(name).offsets)
        if why is not None:
            found[name] = why
    return found


def incomplete_in_either(
    first: dict[str, str], second: dict[str, str], words: tuple[str, str]
) -> pa.Table:
    """Return the groups of which either state does not tell all, as `INCOMPLETE_GROUPS`."""
    names = sorted({*first, *second})
    reasons = [
        "; ".join(
            f"{word}: {found[name]}"
            for word, found in zip(words, (first, second), strict=True)
            if name in found
        )
        for name in names
    ]
    return pa.table({"group_id": names, "reason": reasons}, schema=INCOMPLETE_GROUPS)


def lost_share_partitions(state: ReplayedWorkspace, homes: Collection[int | None]) -> list[int]:
    """Return the partitions of share state, among these, of which a state knows nothing."""
    there = {
        each["partition"]
        for each in state.manifest["partitions"]
        if each["topic"] == SHARE_GROUP_STATE and each.get("is_leading", True)
    }
    return sorted({each for each in homes if each is not None} - there)


def _alone(rows: pa.Table, others: pa.Table) -> pa.Table:
    known = pc.is_in(rows["group_id"], others["group_id"].combine_chunks())
    return rows.filter(pc.invert(known))


def _in_partitions(groups: pa.Table, partitions: Collection[int]) -> pa.Table:
    home = groups["coordinator_partition"]
    return groups.filter(pc.is_in(home, pa.array(sorted(partitions), home.type)))
