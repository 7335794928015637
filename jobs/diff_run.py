"""What `diff` does: two states held against each other, table by table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.diff import groups as of_groups
from analytics.evaluate.diff import offsets as of_offsets
from analytics.evaluate.diff import share_partitions as of_shares
from analytics.evaluate.diff.groups import changed_groups, changed_members
from analytics.evaluate.diff.offsets import changed_offsets, topics_born_again
from analytics.evaluate.diff.share_partitions import changed_share_partitions
from jobs.asked_groups import CANNOT_TELL, DONE
from jobs.cannot_tell import Untold
from jobs.stored_tables import StoredTables
from jobs.two_states import Side, two_states
from jobs.untold_groups import lost_share_partitions, untold_groups, untold_of_two
from reports.diff.sections import Difference, told

if TYPE_CHECKING:
    from jobs.console import Console
    from jobs.replayed import Replayed

NEEDS = ("groups", "members", "committed_offsets", "share_partitions", "topics")
DIFFERENT = 1
_GROUPS = (*of_groups.GROUP_COLUMNS, "coordinator_partition", "complete", "missing")


def diff_sides(
    console: Console,
    first: Side,
    second: Side,
    output_format: str,
    *,
    fail_on_difference: bool,
    **options: Any,  # noqa: ANN401 - of `two_states`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT is not what it has to be.
    """
    with two_states(console, first, second, needs=NEEDS, **options) as (before, after):
        console.say(f"from {_named(before, first)}")
        console.say(f"to {_named(after, second)}")
        difference = difference_of(before, after)
        for state, word in ((before, "from"), (after, "to")):
            reason = Untold(state).absent()
            if reason is not None:
                console.warn(f"cannot tell: {word}: {reason}")
        said = {
            "as_of": {"from": before.as_of, "to": after.as_of},
            "input": [*before.given, *(each for each in after.given if each not in before.given)],
            "kafka_version": {"from": before.release, "to": after.release},
        }
        answer = told(difference, output_format, said)
        if difference.is_unsure:
            console.error("cannot tell of some rows whether they differ; they say why")
            return answer, CANNOT_TELL
        code = DIFFERENT if fail_on_difference and difference.is_there else DONE
        return answer, code or before.exit_code or after.exit_code


def difference_of(before: Replayed, after: Replayed) -> Difference:
    """Return what differs between two states, in the order of `reports.diff.sections.KINDS`."""
    old, new = before.tables.read("groups", _GROUPS), after.tables.read("groups", _GROUPS)
    untold = untold_of_two(
        untold_groups(before, old, new), untold_groups(after, new, old), ("from", "to")
    )

    def both(name: str, columns: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
        return before.tables.read(name, columns), after.tables.read(name, columns)

    shares = both("share_partitions", of_shares.COLUMNS)
    homes = pc.unique(
        pa.chunked_array([c for each in shares for c in each["coordinator_partition"].chunks])
    ).to_pylist()
    return Difference(
        [
            changed_groups(old, new, untold),
            changed_offsets(
                *both("committed_offsets", of_offsets.COLUMNS),
                untold,
                topics_born_again(_topics(before), _topics(after)),
            ),
            changed_members(*both("members", of_groups.MEMBER_COLUMNS), untold),
            changed_share_partitions(
                *shares,
                untold,
                lost_share_partitions(before, homes),
                lost_share_partitions(after, homes),
            ),
        ]
    )


def _topics(state: Replayed) -> pa.Table:
    return StoredTables(state.tables.workspace).read("topics", ["topic", "topic_id", "deleted_at"])


def _named(state: Replayed, side: Side) -> str:
    line = f", as {side.prefer_copy} has it" if side.prefer_copy else ""
    return f"{', '.join(state.given)}: {state.instant}{line}"
