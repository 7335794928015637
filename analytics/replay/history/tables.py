"""All history tables up to an instant, from what was kept of a few tables they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.replay.as_of import Decoded
from analytics.replay.coverage import WHOLE, Coverage
from analytics.replay.history.assignment_history import assignment_history
from analytics.replay.history.group_epochs import group_epochs
from analytics.replay.history.group_steps import group_steps
from analytics.replay.history.holdings import holdings, runs
from analytics.replay.history.membership_changes import membership_changes
from analytics.replay.history.steps_in_lives import steps_in_lives
from analytics.replay.history.topic_names import with_topic_names
from analytics.replay.rules import ReplayRules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.state import Keep


def history_tables(
    decoded: Decoded,
    topics: DataFrame,
    rules: ReplayRules,
    *,
    coverage: Coverage = WHOLE,
    keep: Keep = lambda _, frame: frame,
) -> dict[str, DataFrame]:
    """Return every history table by name.

    Args:
        decoded: The decoded tables, cut at the instant.
        topics: The table `topics` at the instant.
        rules: Of the release.
        coverage: What the dump holds.
        keep: Called for each table as soon as it is defined.
    """
    found: dict[str, DataFrame] = {}

    def kept(name: str, frame: DataFrame) -> DataFrame:
        found[name] = keep(name, frame)
        return found[name]

    steps = steps_in_lives(group_steps(decoded)).localCheckpoint()
    held = with_topic_names(holdings(steps), topics).localCheckpoint()
    owned = runs(held).localCheckpoint()
    kept("group_epochs", group_epochs(steps, owned, rules, coverage))
    kept("membership_changes", membership_changes(owned))
    kept("assignment_history", assignment_history(owned, coverage))
    return found
