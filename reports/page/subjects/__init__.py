"""Subjects of a page: of each its question, charts and table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reports.page.model import Subject
from reports.page.subjects.internal_topics import capacity, consistency, internal_topics
from reports.page.subjects.members import assignment, rebalances
from reports.page.subjects.offsets import expiry, lag, removals, share
from reports.page.workspace_tables import WorkspaceTables

_ALL: Final[tuple[Callable[[WorkspaceTables, frozenset[str]], Subject | None], ...]] = (
    *(expiry, removals, lag, assignment, rebalances, share),
    *(internal_topics, capacity, consistency),
)


def subjects_of(read: WorkspaceTables, stories: frozenset[str]) -> tuple[Subject, ...]:
    """Return the subjects that were asked.

    Args:
        read: The tables.
        stories: Groups that have a story to lead to.
    """
    found = (each(read, stories) for each in _ALL)
    return tuple(each for each in found if each is not None)
