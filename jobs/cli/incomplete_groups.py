"""What is said of the groups that were asked for, beside the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.library.limits.group_selection import AskedGroups
    from jobs.cli.console import Console


def report_groups(console: Console, asked: AskedGroups) -> None:
    """Say what the rows do not show."""
    for each in asked.errors:
        console.error(each)
    for each in asked.warnings:
        console.warn(each)
