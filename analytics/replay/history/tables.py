"""The history tables: what each is made of (`replay_tables` makes them beside the state)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.replay.as_of import Decoded
from analytics.replay.graph import Step
from analytics.replay.history.assignment_history import assignment_history
from analytics.replay.history.group_epochs import group_epochs
from analytics.replay.history.group_steps import group_steps
from analytics.replay.history.holdings import holdings, runs
from analytics.replay.history.membership_changes import membership_changes
from analytics.replay.history.steps_in_lives import steps_in_lives
from analytics.replay.history.topic_names import with_topic_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _steps(cut: Decoded) -> DataFrame:
    return steps_in_lives(group_steps(cut)).localCheckpoint()


def _owned(steps: DataFrame, topics: DataFrame) -> DataFrame:
    held = with_topic_names(holdings(steps), topics).localCheckpoint()
    return runs(held).localCheckpoint()


HISTORY = (
    Step("group_steps", _steps, ("cut",)),
    Step("owned", _owned, ("group_steps", "topics")),
    Step("group_epochs", group_epochs, ("group_steps", "owned", "rules", "coverage")),
    Step("membership_changes", membership_changes, ("owned",)),
    Step("assignment_history", assignment_history, ("owned", "coverage")),
)
"""Besides these it takes what `STATE` makes."""
