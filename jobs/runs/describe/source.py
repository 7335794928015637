"""`share --against FILE` describes groups from here until it is a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.questions.describe.description import NEEDS, described_groups
from reports.describe.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed


__all__ = ["NEEDS", "describe_source"]


def describe_source(
    replayed: Replayed, groups: pa.Table, end_offsets: str | None, console: Console
) -> Source:
    """Return what describes the groups, and say which topics have no name."""
    described = described_groups(replayed, groups, end_offsets)
    for each in described.warnings:
        console.warn(each)
    return Source(**vars(described.description))
