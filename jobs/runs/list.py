"""What `list` does: the groups at the instant, under the columns of Kafka's own tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.gaps.group_selection import select_groups
from jobs.cli.incomplete_groups import groups_exit_code, report_groups
from jobs.workspaces.replayed import replayed
from reports.describe.listed import ALSO, HEADS, PROBLEM, listed_rows
from reports.row_formats import Section, render

if TYPE_CHECKING:
    from jobs.cli.console import Console

NEEDS = ("groups", "topics")


def list_inputs(
    console: Console,
    output_format: str,
    *,
    with_state: bool,
    with_type: bool,
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT is not what it has to be.
    """
    if with_state or with_type:
        names = ["group_id", *(["type"] if with_type else []), *(["state"] if with_state else [])]
    else:
        names = ["group_id", "type", "protocol_type"]
    with replayed(console, needs=NEEDS, **options) as state:
        asked = select_groups(state, with_offsets=False)
        report_groups(console, asked)
        said = {
            **state.response_metadata,
            "cannot_tell": list(asked.cannot_tell),
        }
        also = [name for name in ALSO if name not in names]
        rows = Section(
            listed_rows(asked.found), {name: HEADS[name] for name in names}, also, problem=PROBLEM
        )
        return render([rows], output_format, said), groups_exit_code(asked) or state.exit_code
