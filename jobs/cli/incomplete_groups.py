"""What a command reports of the groups it was asked for, beside the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.cli.exit_codes import CANNOT_TELL, DONE, NOT_THERE

if TYPE_CHECKING:
    from analytics.gaps.group_selection import GroupSelection
    from jobs.cli.console import Console


def report_groups(console: Console, asked: GroupSelection) -> None:
    """Say what the rows do not show."""
    for each in asked.errors:
        console.error(each)
    for each in asked.remarks:
        console.warn(each)


def groups_exit_code(asked: GroupSelection | None) -> int:
    """Return 3 where the answer about groups is incomplete, 1 where one is not there, else 0."""
    if asked is None:
        return DONE
    if asked.cannot_tell:
        return CANNOT_TELL
    return NOT_THERE if asked.missing else DONE
