"""What differs between two states: of one dump, of two lines of it, or of two dumps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow.compute as pc

from analytics.contracts import polars_rows
from analytics.decode.selection import is_name
from analytics.engine.part_runs import PartAnswer, PartAnswers
from analytics.errors import SettingRefusedError
from analytics.gaps.gap import Gap, gap
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import pattern_gaps
from analytics.gaps.internal_topics import topics_left_out
from analytics.gaps.uncertain_metadata import uncertain_metadata
from analytics.questions.diff.changes import (
    CANNOT_TELL,
    GROUP_COLUMNS,
    GROUPS,
    LEFT_OUT_TOPICS,
    MEMBER_COLUMNS,
    MEMBERS,
    OFFSET_COLUMNS,
    OFFSETS,
    SHARE_COLUMNS,
    SHARE_PARTITIONS,
    changed_groups,
    changed_members,
    changed_offsets,
    changed_share_partitions,
    followed_copies,
    incomplete_in_either,
    lost_lines,
    topics_born_again,
)
from analytics.questions.question import Answer, Question
from analytics.replayed.whole_groups import parts_of_both
from analytics.tables.parted_table import PartedTables
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import Manifest

DIFFERS, MISSING = "differs", "missing"
AT_ONCE: Final = 600_000
"""So many rows of whole groups of both states are compared together, about."""
_NEEDED: Final = {
    "groups": (*GROUP_COLUMNS, "complete", "missing"),
    "members": MEMBER_COLUMNS,
    "committed_offsets": OFFSET_COLUMNS,
    "share_partitions": SHARE_COLUMNS,
}
"""What is read of each group in both states."""
_IN_FORCE: Final = {"committed_offsets": pc.is_valid(pc.field("committed_offset"))}
"""A commit below 0 is none: where there was one, the offset vanished."""
_HOME: Final = ("group_id", "coordinator_partition")


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
    made = _compared(before, after)
    sums: Sequence[_PartSums] = made.sums
    changes = {each for some in sums for each in some.changes}
    there = {each for some in sums for each in some.there}
    doubts = [gap("in_earlier_state", why=each) for each in _gaps(before)]
    doubts += [gap("in_later_state", why=each) for each in _gaps(after)]
    doubts += [gap("in_earlier_state", why=each) for each in uncertain_metadata(before, DIFF.needs)]
    return Answer(
        PartedTables(made.tables),
        doubts=tuple(doubts),
        figures={
            DIFFERS: bool(changes - {CANNOT_TELL}),
            MISSING: [name for name in _names(before) if name not in there],
        },
        rows_cannot_tell=CANNOT_TELL in changes,
    )


class _PartSums(NamedTuple):
    """What parts are asked for together.

    Attributes:
        changes: What became of any row.
        there: The groups asked for by name that are in one of the states.
    """

    changes: frozenset[str]
    there: frozenset[str]


@dataclass(frozen=True)
class _Side:
    """What of a state is the same for all groups.

    Attributes:
        manifest: Of the workspace.
        completeness: What is not known of groups.
        share_homes: The partitions of the share state topic of which something is known.
    """

    manifest: Manifest
    completeness: GroupCompleteness
    share_homes: frozenset[int]


@dataclass(frozen=True)
class _Comparison:
    """What is the same for all groups.

    Attributes:
        before: Of the first state.
        after: Of the second.
        born_again: As `topics_born_again` returns it.
        lost: Lines by topic that the second state lost (`LOST_LINES`).
        names: The groups that were asked for by name.
    """

    before: _Side
    after: _Side
    born_again: pl.DataFrame
    lost: Mapping[str, pl.DataFrame]
    names: Sequence[str]


def _compared(before: ReplayedWorkspace, after: ReplayedWorkspace) -> PartAnswers:
    """Return the rows that differ, by the name of their table."""
    divergences = before.manifest.get("divergences", ())
    followed = followed_copies(before), followed_copies(after)
    comparison = _Comparison(
        _side(before),
        _side(after),
        topics_born_again(_topics(before), _topics(after)),
        {
            topic: lost_lines(divergences, *followed, topic)
            for topic in (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
        },
        _names(before),
    )
    work = partial(differences_of_part, comparison)
    states, runner = (before.tables, after.tables), after.runner
    with parts_of_both(states, _NEEDED, _IN_FORCE, AT_ONCE, runner.folder) as parts:
        return runner.run(work, parts)


def differences_of_part(comparison: _Comparison, rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    """Return what differs of some whole groups.

    Args:
        comparison: What is the same for all groups.
        rows: `_NEEDED` of them in both states, as `parts_of_both` names them.
    """
    before, after = comparison.before, comparison.after
    old, new = rows["from_groups"], rows["to_groups"]
    incomplete = incomplete_in_either(
        incomplete_groups(before.completeness, old, new),
        incomplete_groups(after.completeness, new, old),
    )
    offsets = rows["from_committed_offsets"], rows["to_committed_offsets"]
    shares = rows["from_share_partitions"], rows["to_share_partitions"]
    homes = {each for some in shares for each in some["coordinator_partition"].drop_nulls()}
    lost = comparison.lost
    made = {
        OFFSETS: changed_offsets(
            *offsets,
            incomplete,
            comparison.born_again,
            lost[CONSUMER_OFFSETS],
            _left_out_topics(before, after, offsets),
        ),
        GROUPS: changed_groups(old, new, incomplete, lost[CONSUMER_OFFSETS]),
        SHARE_PARTITIONS: changed_share_partitions(
            *shares,
            incomplete,
            lost[SHARE_GROUP_STATE],
            homes - before.share_homes,
            homes - after.share_homes,
        ),
        MEMBERS: changed_members(rows["from_members"], rows["to_members"], incomplete),
    }
    names = pl.concat([old["group_id"], new["group_id"]])
    return PartAnswer(
        made,
        _PartSums(
            frozenset(each for table in made.values() for each in table["change"].unique()),
            frozenset(names.filter(names.is_in(list(comparison.names)))),
        ),
    )


def incomplete_groups(
    completeness: GroupCompleteness, groups: pl.DataFrame, others: pl.DataFrame
) -> pl.DataFrame:
    """Return why a state does not tell all of groups, of those of which it does not.

    Args:
        completeness: Of the state.
        groups: Rows of its table `groups`.
        others: Those of the state it is compared with: whether a group that is only there was here
            too is asked.

    Returns:
        `INCOMPLETE_GROUPS`.
    """
    found = groups.filter(~pl.col("complete")).select("group_id", pl.col("missing").alias("reason"))
    lacking = sorted({*completeness.lost_before, *completeness.losses})
    here = groups.select(_HOME).filter(pl.col("coordinator_partition").is_in(lacking))
    absent = others.select(_HOME).join(groups, "group_id", "anti")
    absent = absent.with_columns(pl.lit(None, pl.Int32()).alias("coordinator_partition"))
    asked = pl.concat([here, absent]).join(found, "group_id", "anti")
    if asked.is_empty():
        return found
    gaps = completeness.gaps_in_offsets(completeness.homes_of(asked))
    return pl.concat([found, gaps.rename({"gap": "reason"})])


def _side(state: ReplayedWorkspace) -> _Side:
    share_homes = frozenset(
        each["partition"]
        for each in state.manifest["partitions"]
        if each["topic"] == SHARE_GROUP_STATE and each.get("is_leading", True)
    )
    return _Side(state.manifest, GroupCompleteness(state), share_homes)


def _left_out_topics(
    before: _Side, after: _Side, offsets: tuple[pl.DataFrame, pl.DataFrame]
) -> pl.DataFrame:
    """Return the topics of which one state has offsets, and which the other was made without."""
    topics = pl.concat([each["topic"] for each in offsets]).unique().to_list()
    reasons = {
        topic: f"{word}: {why}"
        for side, word in ((before, "from"), (after, "to"))
        for topic, why in topics_left_out(side.manifest, topics).items()
    }
    return pl.DataFrame(list(reasons.items()), LEFT_OUT_TOPICS, orient="row")


def _names(state: ReplayedWorkspace) -> list[str]:
    return [each for each in state.tables.selection.groups if is_name(each)]


def _gaps(state: ReplayedWorkspace) -> list[Gap]:
    """Return what a state does not tell of the groups asked for."""
    completeness = GroupCompleteness(state)
    found = [each for name in _names(state) if (each := completeness.of_group(name)) is not None]
    if not state.tables.selection.groups:
        found += completeness.of_all()
    return found + pattern_gaps(completeness)


def _topics(state: ReplayedWorkspace) -> pl.DataFrame:
    everything = StoredTables(state.tables.workspace)
    return polars_rows(everything.read("topics", ["topic", "topic_id", "deleted_at"]))


DIFF: Final = Question(
    name="diff",
    needs=("groups", "members", "committed_offsets", "share_partitions", "topics"),
    tables=(OFFSETS, GROUPS, SHARE_PARTITIONS, MEMBERS),
    settings=DiffSettings,
    answer=diff,
    is_audited=False,
)
