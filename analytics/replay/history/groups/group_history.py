"""What the records of whole groups tell of their past: every table that follows them one by one."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analytics.contracts import contract_frame, contract_schema
from analytics.replay.history.events.group_life_events import group_life_events, member_events
from analytics.replay.history.groups.assignment_history import assignment_history
from analytics.replay.history.groups.group_epochs import group_epochs
from analytics.replay.history.groups.group_incarnations import group_incarnations
from analytics.replay.history.groups.held_items import held_items
from analytics.replay.history.groups.load_faults import load_faults
from analytics.replay.history.groups.membership_changes import membership_changes
from analytics.replay.history.groups.ownership import (
    MOMENTS,
    OWNERS,
    group_moments,
    owners,
    source_topics,
)
from analytics.replay.history.groups.unread_records import UnreadRecords
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.marks import with_marks_of_records
from analytics.replay.log.rules import ReplayRules

Frames = Mapping[str, pl.DataFrame]

OF_GROUPS: Mapping[str, pl.Schema] = {
    **{
        name: contract_schema(name)
        for name in ("group_epochs", "membership_changes", "assignment_history")
    },
    "events": contract_schema("group_events"),
    "moments": MOMENTS,
    "owners": OWNERS,
}
"""What `group_history` makes."""


def group_steps(rows: Frames, rules: ReplayRules) -> pl.DataFrame:
    """Return the records of groups, each with where it belongs: of `group_incarnations`.

    Args:
        rows: All of some groups: `log` of `coordinator_log`, and `commits` (`GROUP_KEY` and
            `offset` of those that are no tombstones, at least of groups that are not classic only).
        rules: Of the release.
    """
    commits = rows["commits"] if rules.groups_end_by_tombstones else None
    return group_incarnations(rows["log"], commits, rules.initial_epoch)


def group_history(
    steps: pl.DataFrame, rows: Frames, names: pl.DataFrame, rules: ReplayRules, coverage: Coverage
) -> dict[str, pl.DataFrame]:
    """Return the tables `group_epochs`, `membership_changes` and `assignment_history`, and more.

    Args:
        steps: Of `group_steps`.
        rows: Of the same groups: `topologies` (`GROUP_KEY` and `subtopologies`).
        names: Of topics: `topic_id` and `name`, each id once.
        rules: Of the release.
        coverage: What the dump holds.

    Returns:
        `OF_GROUPS`: `events` are those of groups and their members, `moments` of `group_moments`,
        `owners` of `owners`.
    """
    held = held_items(steps, names)
    epochs = group_epochs(held, rules, coverage)
    changes = membership_changes(held, epochs, coverage)
    events = [group_life_events(steps, epochs, coverage), member_events(changes)]
    return {
        "group_epochs": contract_frame(
            with_marks_of_records(epochs, coverage, "from_offset", "to_offset"), "group_epochs"
        ),
        "membership_changes": changes,
        "assignment_history": assignment_history(held, epochs, coverage),
        "events": pl.concat(events),
        "moments": group_moments(held),
        "owners": owners(held, source_topics(rows["topologies"])),
    }


def faults_of(
    steps: pl.DataFrame,
    rows: Frames,
    decoded: Frames,
    rules: ReplayRules,
    coverage: Coverage = WHOLE,
) -> pl.DataFrame:
    """Return the table `load_faults`.

    Args:
        steps: Of `group_steps`.
        rows: What they are made of.
        decoded: The decoded tables, `undecoded` among them.
        rules: Of the release.
        coverage: What the dump holds.
    """
    unread = UnreadRecords(decoded["undecoded"], decoded)
    return load_faults(steps, rows["commits"], unread, rules, coverage)
