"""The exit codes of `groupscope`, as `--help` lists them, and that of the groups asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from analytics.gaps.group_selection import GroupSelection
    from jobs.cli.console import Console

DONE: Final = 0

SEVERE_FINDING: Final = 1
"""Findings are as severe as `--fail-on` asks."""

DIFFERENT: Final = 1
"""Two states that were compared are not the same."""

NOT_THERE: Final = 1
"""A group that was named does not exist."""

CALLED_WRONGLY: Final = 2

CANNOT_TELL: Final = 3
"""The answer is incomplete, or a part of the input is unreadable."""

INTERNAL_ERROR: Final = 4

INTERRUPTED: Final = 130


# What a command reports of the groups it was asked for, beside the answer.


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
