"""What `diff` does: two states held against each other, table by table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import is_name
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import pattern_limits
from analytics.gaps.workspace_filters import left_out_of, topics_left_out
from analytics.questions.diff import groups as of_groups
from analytics.questions.diff import offsets as of_offsets
from analytics.questions.diff import share_partitions as of_shares
from analytics.questions.diff.elections import lost_lines
from analytics.questions.diff.groups import changed_groups, changed_members
from analytics.questions.diff.incomplete_groups import (
    incomplete_groups,
    incomplete_in_either,
    lost_share_partitions,
)
from analytics.questions.diff.offsets import changed_offsets, topics_born_again
from analytics.questions.diff.paired import LEFT_OUT_TOPICS
from analytics.questions.diff.share_partitions import changed_share_partitions
from analytics.replay.dump.followed_lines import lines_metadata
from analytics.replayed.answered_instant import answered_instant
from analytics.tables.stored_tables import StoredTables
from jobs.cli.exit_codes import CANNOT_TELL, DIFFERENT, DONE, NOT_THERE
from jobs.runs.diff.compared_states import Side, compared_states
from jobs.spark.session import one_session
from jobs.workspaces.followed_lines import followed_copies
from reports.diff.sections import Difference, render_difference
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE

if TYPE_CHECKING:
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed

NEEDS = ("groups", "members", "committed_offsets", "share_partitions", "topics")
_GROUPS = (*of_groups.GROUP_COLUMNS, "complete", "missing")


@one_session()
def diff_sides(
    console: Console,
    first: Side,
    second: Side,
    output_format: str,
    *,
    fail_on_difference: bool,
    **options: Any,  # noqa: ANN401 - of `compared_states`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT is not what it has to be.
    """
    with compared_states(console, first, second, needs=NEEDS, **options) as (before, after):
        console.say(f"from {_named(before, first)}")
        console.say(f"to {_named(after, second)}")
        difference = difference_of(before, after)
        reasons = [
            f"{word}: {reason}"
            for state, word in ((before, "from"), (after, "to"))
            for reason in _limitations(state)
        ]
        for each in reasons:
            console.error(f"cannot tell: {each}")
        reasons += [
            f"{word}: {each}"
            for state, word in ((before, "from"), (after, "to"))
            for each in state.uncertain
        ]
        said = {
            "as_of": {"from": answered_instant(before), "to": answered_instant(after)},
            "input": [*before.given, *(each for each in after.given if each not in before.given)],
            "kafka_version": {"from": before.release, "to": after.release},
            "lines": {"from": lines_metadata(before.lines), "to": lines_metadata(after.lines)},
            "cannot_tell": reasons,
            "left_out": {
                word: left_out_of(state.manifest, state.tables.selection)
                for state, word in ((before, "from"), (after, "to"))
            },
        }
        answer = render_difference(difference, output_format, said)
        if difference.is_unsure:
            console.error("cannot tell of some rows whether they differ; they say why")
        if difference.is_unsure or reasons:
            return answer, CANNOT_TELL
        missing = _missing(before, after)
        for name in missing:
            console.error(f"group {name} does not exist in either")
        if missing:
            return answer, NOT_THERE
        code = DIFFERENT if fail_on_difference and difference.is_there else DONE
        # What one state was made without may differ, whatever else does.
        return answer, before.exit_code or after.exit_code or code


def difference_of(before: Replayed, after: Replayed) -> Difference:
    """Return what differs between two states, in the order of `reports.diff.sections.KINDS`."""
    old, new = before.tables.read("groups", _GROUPS), after.tables.read("groups", _GROUPS)
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
    return Difference(
        [
            changed_offsets(
                *both("committed_offsets", of_offsets.COLUMNS, is_in_force),
                incomplete,
                topics_born_again(_topics(before), _topics(after)),
                lost,
                _left_out_topics(before, after),
            ),
            changed_groups(old, new, incomplete, lost),
            changed_share_partitions(
                *shares,
                incomplete,
                _lost_lines(before, after, SHARE_GROUP_STATE),
                lost_share_partitions(before, homes),
                lost_share_partitions(after, homes),
            ),
            changed_members(*both("members", of_groups.MEMBER_COLUMNS), incomplete),
        ]
    )


def _lost_lines(before: Replayed, after: Replayed, topic: str) -> pa.Table:
    divergences = before.manifest.get("divergences", ())
    return lost_lines(divergences, followed_copies(before), followed_copies(after), topic)


def _left_out_topics(before: Replayed, after: Replayed) -> pa.Table:
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


def _names(state: Replayed) -> list[str]:
    return [each for each in state.tables.selection.groups if is_name(each)]


def _limitations(state: Replayed) -> list[str]:
    """Return what a state does not tell of the groups asked for."""
    completeness = GroupCompleteness(state)
    found = [reason for name in _names(state) if (reason := completeness.of_group(name))]
    if not state.tables.selection.groups:
        found += completeness.of_all()
    return found + pattern_limits(completeness)


def _missing(before: Replayed, after: Replayed) -> list[str]:
    """Return the groups that were asked for by name and are in neither state."""
    there = {
        name
        for state in (before, after)
        for name in state.tables.read("groups", ["group_id"])["group_id"].to_pylist()
    }
    return [name for name in _names(before) if name not in there]


def _topics(state: Replayed) -> pa.Table:
    return StoredTables(state.tables.workspace).read("topics", ["topic", "topic_id", "deleted_at"])


def _named(state: Replayed, side: Side) -> str:
    line = f", as {side.prefer_copy} has it" if side.prefer_copy else ""
    return f"{', '.join(state.given)}: {state.instant}{line}"
