"""What an incident did to groups: before and after, who else suffered, what can be given back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import polars_rows
from analytics.errors import SettingRefusedError
from analytics.gaps.group_selection import select_groups
from analytics.gaps.uncertain_metadata import uncertain_metadata
from analytics.questions.diff.changes import CANNOT_TELL as UNSURE_CHANGE
from analytics.questions.diff.changes import OFFSETS as CHANGED_OFFSETS
from analytics.questions.diff.question import DIFF, DiffSettings
from analytics.questions.forensics.causes import (
    CAUSES,
    COSTS,
    causes_of,
    costs_of_offsets,
    elections_of,
    group_costs,
    last_records,
    untold_reasons,
)
from analytics.questions.forensics.incident import (
    BROKERS,
    OTHERS,
    OWNERS,
    GroupPatterns,
    Window,
    brokers_of,
    groups_hit,
    groups_named,
    happenings,
    others_of,
    owners_of,
    time_around,
)
from analytics.questions.forensics.removals import removals_without_offsets
from analytics.questions.question import Answer, Question
from analytics.questions.restore.question import OF_GROUPS, RESTORE, RestoreSettings
from analytics.questions.restore.question import OFFSETS as RESTORE_PLAN
from analytics.questions.timeline.question import GROUP_EVENTS, TIMELINE, TimelineSettings
from analytics.questions.timeline.words import CANNOT_TELL, OFFSET_VERDICTS
from analytics.replay.dump.choices import BeforeEnd
from analytics.tables.parted_table import PartedTable, PartedTables

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

    StatesAround = Callable[[Window, Sequence[str]], tuple[ReplayedWorkspace, ReplayedWorkspace]]
    """Takes the time around an incident and the names of groups, and gives the state of these
    groups before it and after it."""

ROWS_OF_STATES: Final = tuple(dict.fromkeys((*DIFF.needs, *RESTORE.needs, "assignments")))
"""The tables that the states before and after need."""
AROUND, WINDOW, GROUPS, RESTORED = "around", "window", "groups", "restore"
"""Figures of an answer: when it was, the time around it, the groups it is about, and the answer to
`restore`, of the state before, for the present."""


@dataclass(frozen=True)
class ForensicsSettings:
    """What of an incident is asked.

    Attributes:
        around: When it was: a datetime, ISO 8601, epoch milliseconds, or a time before the end of
            the dump.
        window_minutes: So long before and after it.
        groups: Names and patterns; nothing is whoever suffered.
        exclude_groups: Likewise, left out.
        end_offsets: A file that says where logs end.
        states: Gives the states before and after; of a dump that was opened in a notebook they are
            replayed by default.
    """

    around: datetime | str | int | BeforeEnd | None = None
    window_minutes: float = 2.0
    groups: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    end_offsets: str | None = None
    states: StatesAround | None = None


def forensics(state: ReplayedWorkspace, settings: ForensicsSettings) -> Answer:
    """Return what an incident did to groups, those that it cost most first.

    Its figures are `AROUND`, `WINDOW`, `GROUPS` and `RESTORED`.

    Raises:
        SettingRefusedError: No time is given, or nothing that gives the states around it.
        CannotTellError: The time is not in the dump, or nothing happened to a group then.
        InputUnreadableError: `end_offsets` is not what it has to be.
        WorkspaceError: A table cannot be read.
    """
    if settings.around is None:
        raise SettingRefusedError("no incident: `around` has to be a time")
    if settings.states is None:
        raise SettingRefusedError("an incident is asked of a state at the end of a dump")
    time = time_around(state, settings.around, settings.window_minutes)
    timeline = TIMELINE.ask(state, TimelineSettings(end_offsets=settings.end_offsets))
    verdicts, events = timeline.rows(OFFSET_VERDICTS), timeline.rows(GROUP_EVENTS)
    happened = happenings(verdicts, events, time.window)
    patterns = GroupPatterns(settings.groups, settings.exclude_groups)
    groups = (
        groups_named(state, patterns, verdicts, events)
        if patterns.groups
        else groups_hit(patterns, happened, time.window)
    )
    before, after = settings.states(time.window, groups)
    difference = DIFF.ask(after, DiffSettings(before))
    restored = RESTORE.ask(before, RestoreSettings(state.of_groups(groups), settings.end_offsets))
    is_theirs = pl.col("group_id").is_in(groups)
    elections = elections_of(state, time.window)
    # Whoever may have suffered unseen belongs to an incident of which no group was named.
    is_untold = pl.lit(not patterns.groups) & (pl.col("verdict") == CANNOT_TELL)
    judged = happened.verdicts.where(is_theirs | is_untold)
    events_of_groups = happened.events.where(is_theirs)
    costs = costs_of_offsets(judged, elections)
    of_groups = group_costs(groups, costs, elections, polars_rows(restored.rows(OF_GROUPS).whole()))
    tables = {
        CAUSES: PartedTable.held(
            causes_of(
                costs,
                elections,
                last_records(state.manifest),
                untold_reasons(judged),
                removals_without_offsets(events_of_groups, costs),
            )
        ),
        COSTS: PartedTable.held(of_groups),
        OFFSET_VERDICTS: happened.verdicts.where(is_theirs),
        CHANGED_OFFSETS: difference.rows(CHANGED_OFFSETS),
        OWNERS: owners_of(before, after),
        GROUP_EVENTS: events_of_groups,
        BROKERS: PartedTable.held(brokers_of(state, time.window)),
        OTHERS: others_of(state, groups, happened.verdicts),
        RESTORE_PLAN: restored.rows(RESTORE_PLAN),
        OF_GROUPS: restored.rows(OF_GROUPS),
    }
    return Answer(
        PartedTables(tables),
        doubts=(
            *select_groups(before).without_missing(groups).gaps,
            *(each for one in (before, after) for each in uncertain_metadata(one, ROWS_OF_STATES)),
        ),
        warnings=time.warnings,
        figures={
            AROUND: time.at,
            WINDOW: time.window,
            RESTORED: restored,
            GROUPS: of_groups["group_id"].to_pylist(),
        },
        stored_tables=timeline.tables_to_keep,
        rows_cannot_tell=(
            _has(tables[OFFSET_VERDICTS], "verdict", CANNOT_TELL)
            or _has(tables[CHANGED_OFFSETS], "change", UNSURE_CHANGE)
        ),
    )


def _has(rows: PartedTable, column: str, word: str) -> bool:
    return any(word in piece[column].unique().to_pylist() for piece in rows.scan([column]))


FORENSICS: Final = Question(
    name="forensics",
    needs=tuple(dict.fromkeys((*TIMELINE.needs, *ROWS_OF_STATES, "assignment_history", "configs"))),
    tables=(
        *(CAUSES, COSTS, OFFSET_VERDICTS, CHANGED_OFFSETS, OWNERS, GROUP_EVENTS, BROKERS, OTHERS),
        *(RESTORE_PLAN, OF_GROUPS),
    ),
    settings=ForensicsSettings,
    answer=forensics,
    is_audited=False,
)
