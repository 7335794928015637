"""What `list` does: the groups at the instant, under the columns of Kafka's own tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.asked_groups import asked_groups
from jobs.replayed import replayed
from reports.describe.columns import HEADS
from reports.describe.listed import listed_rows
from reports.row_formats import Section, shown

if TYPE_CHECKING:
    from jobs.console import Console

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
        names = ["group", *(["type"] if with_type else []), *(["state"] if with_state else [])]
    else:
        names = ["group", "type", "protocol"]
    with replayed(console, needs=NEEDS, **options) as state:
        asked = asked_groups(state)
        asked.tell(console)
        said = {
            **state.said,
            "cannot_tell": list(asked.cannot_tell),
        }
        rows = Section(listed_rows(asked.found), {name: HEADS[name] for name in names}, _ALSO)
        return shown([rows], output_format, said), asked.exit_code or state.exit_code


_ALSO = ("group_type",)
