"""What `restore` does: offsets of the past judged against the present, and files for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.gaps.group_selection import select_groups
from analytics.gaps.workspace_filters import left_out_of, topics_left_out
from analytics.questions.diff.incomplete_groups import incomplete_groups
from analytics.questions.diff.paired import INCOMPLETE_GROUPS
from analytics.questions.restore.plan import PLAN, restore_plan, share_plan
from analytics.questions.restore.refusals import UNSURE
from analytics.replay.dump.followed_lines import lines_metadata
from analytics.replayed.answered_instant import answered_instant
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.incomplete_groups import groups_exit_code, report_groups
from jobs.runs.restore.folder import check_folder, write_folder
from jobs.runs.restore.restored_groups import restored_groups, unfit_groups
from jobs.runs.restore.state import (
    GROUPS,
    NEEDS,
    SHARES,
    past_logs,
    present_logs,
    restore_state,
    unclean_elections,
)
from jobs.spark.session import one_session
from jobs.workspaces.compared_states import Side, compared_states
from jobs.workspaces.followed_lines import sentences
from reports.restore.commands import commands_text
from reports.restore.files import offsets_text, refused_text
from reports.restore.summary import counts_of, render_plan
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.gaps.group_selection import GroupSelection
    from jobs.cli.console import Console
    from jobs.runs.restore.restored_groups import RestoredGroup
    from jobs.workspaces.replayed import Replayed

SCHEMA_VERSION = 1
COMMANDS, REFUSED = "commands.sh", "refused.csv"


@dataclass(frozen=True)
class Wanted:
    """What is wanted back, and how it is said.

    Attributes:
        out: The folder of the files.
        end_offsets: A side file with the ends of logs at present, or None.
        include_live: Groups that have moved on since are rewound.
        output_format: Of the summary.
    """

    out: str
    end_offsets: str | None
    include_live: bool
    output_format: str


@one_session()
def restore_into(
    console: Console,
    then: Side,
    now: Side,
    wanted: Wanted,
    **options: Any,  # noqa: ANN401 - of `compared_states`, handed through
) -> tuple[str, int]:
    """Write the folder; return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT or the folder is not what it has to be.
    """
    check_folder(wanted.out)
    with compared_states(console, then, now, needs=NEEDS, **options) as (past, present):
        asked = select_groups(past)
        report_groups(console, asked)
        return restored(console, past, present, wanted, asked)


def restored(
    console: Console, past: Replayed, present: Replayed, wanted: Wanted, asked: GroupSelection
) -> tuple[str, int]:
    """Do the same of two states that are there.

    Raises:
        OutputRefusedError: The folder holds something else.
    """
    check_folder(wanted.out)
    console.say(f"as of {past.instant} of {', '.join(past.given)}")
    console.say(f"against {present.instant} of {', '.join(present.given)}")
    plan, groups = _planned(past, present, wanted)
    said = {
        "as_of": answered_instant(past),
        "input": list(past.given),
        "against": {
            "as_of": answered_instant(present),
            "input": list(present.given),
            "left_out": left_out_of(present.manifest, present.tables.selection),
        },
        "kafka_version": past.release,
        "lines": lines_metadata(past.lines),
        **({"uncertain": list(past.uncertain)} if past.uncertain else {}),
        "include_live": wanted.include_live,
        "cannot_tell": list(asked.cannot_tell),
        "left_out": left_out_of(past.manifest, past.tables.selection),
    }
    title = f"Committed offsets of {', '.join(past.given)} as of {past.instant}"
    followed = _followed(past)
    counts = counts_of(plan)
    write_folder(
        wanted.out,
        _files(plan, groups, "; ".join([title, *followed])),
        {"schema_version": SCHEMA_VERSION, **said, "counts": counts},
    )
    answer = render_plan(
        [each.said for each in groups],
        plan,
        wanted.output_format,
        said,
        with_offsets=console.verbose,
    )
    if wanted.output_format not in ("json", "csv"):
        answer = "\n".join([answer, *followed])
    unsure = CANNOT_TELL if any(each in counts["reasons"] for each in UNSURE) else DONE
    return answer, groups_exit_code(asked) or unsure or past.exit_code or present.exit_code


def _followed(past: Replayed) -> list[str]:
    """Say which lines the offsets are from, where these did not survive."""
    homes = past.tables.read("groups", ["coordinator_partition"])["coordinator_partition"]
    wanted = set(homes.to_pylist())
    lines = [each for each in past.lines if each.topic == CONSUMER_OFFSETS]
    return list(sentences((each for each in lines if each.partition in wanted), past.instant))


def _planned(
    past: Replayed, present: Replayed, wanted: Wanted
) -> tuple[pa.Table, list[RestoredGroup]]:
    old, new = past.tables.read("groups", GROUPS), present.tables.read("groups", GROUPS)
    then = restore_state(past, _as_table(incomplete_groups(past, old, old[:0])), past_logs(past))
    topics = (
        then.committed["topic"].unique().to_pylist() + then.pending["topic"].unique().to_pylist()
    )
    untold = incomplete_groups(present, new, old)
    now = restore_state(
        present,
        _as_table(untold),
        present_logs(present, wanted.end_offsets),
        topics_left_out(present.manifest, topics),
    )
    plan = restore_plan(
        then,
        now,
        unfit_groups(old, new, present.release),
        unclean_elections(present),
        include_live=wanted.include_live,
    )
    shares = share_plan(*(each.tables.read("share_partitions", SHARES) for each in (past, present)))
    plan = pa.concat_tables([plan.select(PLAN), shares.select(PLAN)], promote_options="permissive")
    return plan, restored_groups(plan, old, new, untold)


def _as_table(reasons: Mapping[str, str]) -> pa.Table:
    return pa.table(
        {"group_id": list(reasons), "reason": list(reasons.values())}, schema=INCOMPLETE_GROUPS
    )


def _files(plan: pa.Table, groups: Sequence[RestoredGroup], title: str) -> dict[str, str]:
    files = {
        COMMANDS: commands_text(title, [each.reset for each in groups if each.reset]),
        REFUSED: refused_text(plan.filter(pc.equal(plan["verdict"], "refused"))),
    }
    restored = plan.filter(pc.equal(plan["verdict"], "restore"))
    starts = _starts(restored["group_id"])
    for each in groups:
        if each.reset:
            start, length = starts[each.reset.group]
            files[each.reset.file] = offsets_text(restored.slice(start, length))
    return files


def _starts(names: pa.ChunkedArray) -> dict[str, tuple[int, int]]:
    """Return where the rows of each group start, and how many there are; they are sorted."""
    runs = pc.run_end_encode(names.combine_chunks()) if len(names) else None
    found: dict[str, tuple[int, int]] = {}
    start = 0
    if runs is not None:
        for name, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            found[name] = (start, end - start)
            start = end
    return found
