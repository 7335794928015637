"""What differs between two states: of one dump, of two lines of it, or of two dumps."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_schema
from analytics.decode.selection import is_name
from analytics.errors import SettingRefusedError
from analytics.gaps.gap import Gap, gap, joined
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import pattern_gaps
from analytics.gaps.uncertain_metadata import uncertain_metadata
from analytics.gaps.workspace_parts import topics_left_out
from analytics.questions.answer import Answer
from analytics.questions.diff import groups as of_groups
from analytics.questions.diff import offsets as of_offsets
from analytics.questions.diff import share_partitions as of_shares
from analytics.questions.diff.elections import followed_copies, lost_lines
from analytics.questions.diff.groups import changed_groups, changed_members
from analytics.questions.diff.offsets import changed_offsets, topics_born_again
from analytics.questions.diff.paired import CANNOT_TELL, INCOMPLETE_GROUPS, LEFT_OUT_TOPICS
from analytics.questions.diff.share_partitions import changed_share_partitions
from analytics.questions.question import Question
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

# Groups of which one of two states does not tell all, with the reason: nothing is guessed.


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


DIFFERS, MISSING = "differs", "missing"
OFFSETS, GROUPS = "changed_offsets", "changed_groups"
SHARE_PARTITIONS, MEMBERS = "changed_share_partitions", "changed_members"
_GROUP_COLUMNS: Final = (*of_groups.GROUP_COLUMNS, "complete", "missing")


@dataclass(frozen=True)
class DiffSettings:
    """What a state is compared with.

    Attributes:
        since: The other state, which is the first of both: what is only there has vanished.
    """

    since: ReplayedWorkspace | None = None


def diff(state: ReplayedWorkspace, settings: DiffSettings) -> Answer:
    """Return what differs between the state before and this one.

    Its figures are `DIFFERS`, whether something surely does, and `MISSING`, the groups that were
    asked for by name and are in neither.

    Raises:
        SettingRefusedError: There is no state before.
        WorkspaceError: A table cannot be read.
    """
    if settings.since is None:
        raise SettingRefusedError("nothing to compare: `since` has to be another state")
    before, after = settings.since, state
    tables = {
        name: rows.select(arrow_schema(name).names).cast(arrow_schema(name))
        for name, rows in _differences(before, after).items()
    }
    changes = {each for rows in tables.values() for each in rows["change"].unique().to_pylist()}
    doubts = [gap("in_earlier_state", why=each) for each in _gaps(before)]
    doubts += [gap("in_later_state", why=each) for each in _gaps(after)]
    doubts += [gap("in_earlier_state", why=each) for each in uncertain_metadata(before, DIFF.needs)]
    return Answer(
        tables,
        doubts=tuple(doubts),
        figures={DIFFERS: bool(changes - {CANNOT_TELL}), MISSING: _missing(before, after)},
        rows_cannot_tell=CANNOT_TELL in changes,
    )


def _differences(before: ReplayedWorkspace, after: ReplayedWorkspace) -> dict[str, pa.Table]:
    """Return the rows that differ, by the name of their table."""
    old, new = (each.tables.read("groups", _GROUP_COLUMNS) for each in (before, after))
    incomplete = incomplete_in_either(
        incomplete_groups(before, old, new), incomplete_groups(after, new, old), ("from", "to")
    )

    def both(
        name: str, columns: tuple[str, ...], where: pc.Expression | None = None
    ) -> tuple[pa.Table, pa.Table]:
        return before.tables.read(name, columns, where), after.tables.read(name, columns, where)

    # A commit below 0 is none: where there was one, the offset vanished.
    is_in_force = pc.is_valid(pc.field("committed_offset"))
    shares = both("share_partitions", of_shares.COLUMNS)
    homes = pc.unique(
        pa.chunked_array([c for each in shares for c in each["coordinator_partition"].chunks])
    ).to_pylist()
    lost = _lost_lines(before, after, CONSUMER_OFFSETS)
    return {
        OFFSETS: changed_offsets(
            *both("committed_offsets", of_offsets.COLUMNS, is_in_force),
            incomplete,
            topics_born_again(_topics(before), _topics(after)),
            lost,
            _left_out_topics(before, after),
        ),
        GROUPS: changed_groups(old, new, incomplete, lost),
        SHARE_PARTITIONS: changed_share_partitions(
            *shares,
            incomplete,
            _lost_lines(before, after, SHARE_GROUP_STATE),
            lost_share_partitions(before, homes),
            lost_share_partitions(after, homes),
        ),
        MEMBERS: changed_members(*both("members", of_groups.MEMBER_COLUMNS), incomplete),
    }


def _lost_lines(before: ReplayedWorkspace, after: ReplayedWorkspace, topic: str) -> pa.Table:
    divergences = before.manifest.get("divergences", ())
    return lost_lines(divergences, followed_copies(before), followed_copies(after), topic)


def _left_out_topics(before: ReplayedWorkspace, after: ReplayedWorkspace) -> pa.Table:
    """Return the topics of which one state has offsets, and which the other was made without."""
    topics = {
        name
        for state in (before, after)
        for name in pc.unique(
            state.tables.read("committed_offsets", ["topic"])["topic"]
        ).to_pylist()
    }
    reasons = {
        topic: f"{word}: {why}"
        for state, word in ((before, "from"), (after, "to"))
        for topic, why in topics_left_out(state.manifest, topics).items()
    }
    return pa.table(
        {"topic": list(reasons), "left_out": list(reasons.values())}, schema=LEFT_OUT_TOPICS
    )


def _names(state: ReplayedWorkspace) -> list[str]:
    return [each for each in state.tables.selection.groups if is_name(each)]


def _gaps(state: ReplayedWorkspace) -> list[Gap]:
    """Return what a state does not tell of the groups asked for."""
    completeness = GroupCompleteness(state)
    found = [each for name in _names(state) if (each := completeness.of_group(name)) is not None]
    if not state.tables.selection.groups:
        found += completeness.of_all()
    return found + pattern_gaps(completeness)


def _missing(before: ReplayedWorkspace, after: ReplayedWorkspace) -> list[str]:
    """Return the groups that were asked for by name and are in neither state."""
    there = {
        name
        for state in (before, after)
        for name in state.tables.read("groups", ["group_id"])["group_id"].to_pylist()
    }
    return [name for name in _names(before) if name not in there]


def _topics(state: ReplayedWorkspace) -> pa.Table:
    return StoredTables(state.tables.workspace).read("topics", ["topic", "topic_id", "deleted_at"])


DIFF: Final = Question(
    name="diff",
    needs=("groups", "members", "committed_offsets", "share_partitions", "topics"),
    tables=(OFFSETS, GROUPS, SHARE_PARTITIONS, MEMBERS),
    settings=DiffSettings,
    answer=diff,
    is_audited=False,
)
