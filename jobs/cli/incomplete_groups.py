"""What a command reports of the groups it was asked for, beside the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.cli.exit_codes import CANNOT_TELL, DONE, NOT_THERE

if TYPE_CHECKING:
    from analytics.gaps.group_selection import GroupSelection
    from jobs.cli.console import Console


def report_groups(console: Console, selection: GroupSelection) -> None:
    """Say what the rows do not show."""
    for each in selection.errors:
        console.error(each)
    for each in selection.remarks:
        console.warn(each)


def groups_exit_code(selection: GroupSelection | None) -> int:
    """Return 3 where the answer about groups is incomplete, 1 where one is not there, else 0."""
    if selection is None:
        return DONE
    if selection.cannot_tell:
        return CANNOT_TELL
    return NOT_THERE if selection.missing else DONE
