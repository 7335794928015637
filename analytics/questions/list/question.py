"""The groups there are at the instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analytics.gaps.group_selection import select_groups
from analytics.questions.question import Answer, Question

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


@dataclass(frozen=True)
class ListSettings:
    """Nothing of it can be set: it lists the groups that the workspace is asked about."""


def list_groups(state: ReplayedWorkspace, _settings: ListSettings) -> Answer:
    """Return the groups there are.

    Its figure `groups` has rows of the table `groups`.

    Raises:
        WorkspaceError: A table cannot be read.
    """
    groups = select_groups(state, with_offsets=False)
    return Answer({}, groups, figures={"groups": groups.rows})


LIST: Final = Question(
    name="list",
    needs=("groups", "topics"),
    tables=(),
    settings=ListSettings,
    answer=list_groups,
    is_audited=False,
)
