"""The history tables: what each is made of (`replay_tables` makes them beside the state)."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from analytics.replay.graph import Step
from analytics.replay.groups.coordinator_log import COORDINATOR_LOG
from analytics.replay.history.assignment_history import assignment_history
from analytics.replay.history.coordinator_epochs import coordinator_epochs
from analytics.replay.history.data_partitions import births, elections, losses
from analytics.replay.history.group_epochs import group_epochs
from analytics.replay.history.group_events import Told, group_events
from analytics.replay.history.holdings import holdings, runs
from analytics.replay.history.load_faults import load_faults
from analytics.replay.history.membership_changes import membership_changes
from analytics.replay.history.ownership import group_moments, owners
from analytics.replay.history.share_partition_epochs import share_partition_epochs
from analytics.replay.history.steps_in_lives import steps_in_lives
from analytics.replay.history.takeovers import with_takeovers
from analytics.replay.history.topic_names import with_topic_names
from analytics.replay.log.arrow_rows import polars_rows
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.rules import ReplayRules
from analytics.replay.offsets.commit_groups import commit_frames, made_of_offsets
from analytics.replay.offsets.offset_history import OfTopics
from analytics.replay.offsets.removal_frames import removals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.metadata.metadata_log import MetadataLog


def _steps(log: DataFrame, cut: Decoded, rules: ReplayRules) -> DataFrame:
    commits = cut["offset_commit"] if rules.groups_end_by_tombstones else None
    steps = with_takeovers(log.drop(*_OF_STATE), commits)
    return steps_in_lives(steps, rules.initial_epoch).localCheckpoint()


def _held(steps: DataFrame, topics: DataFrame) -> DataFrame:
    return with_topic_names(holdings(steps), topics).localCheckpoint()


def _elections(metadata: MetadataLog, topics: DataFrame) -> DataFrame:
    return elections(metadata, topics).localCheckpoint()


def _around_offsets(
    cut: Decoded, steps: DataFrame, held: DataFrame, owned: DataFrame, removed: DataFrame
) -> dict[str, DataFrame]:
    moments = group_moments(steps, owned)
    return {"moments": moments, "owners": owners(held, cut), "removals": removed}


def _of_topics(topics: DataFrame, elected: DataFrame) -> OfTopics:
    return OfTopics(polars_rows(births(topics).toArrow()), polars_rows(losses(elected).toArrow()))


_OF_STATE = ("kind", "previous_epoch", "state_ms", "members")
"""Columns of the coordinator's log that history makes nothing of."""
_AROUND = ("cut", "group_steps", "held", "owned", "removals")
_OF_OFFSETS = ("commits", "around_offsets", "of_topics", "rules", "coverage")
_TOLD = (
    "group_steps",
    "group_epochs",
    "membership_changes",
    "assignment_history",
    "of_offsets",
    "offset_history",
    "share_partition_epochs",
    "coordinator_epochs",
    "topics",
)

HISTORY = (
    COORDINATOR_LOG,
    Step("group_steps", _steps, ("coordinator_log", "cut", "rules")),
    Step("load_faults", load_faults, ("group_steps", "cut", "rules")),
    Step("held", _held, ("group_steps", "topics")),
    Step("removals", removals, ("cut", "commits", "topics", "rules", "coverage")),
    Step("owned", lambda held: runs(held).localCheckpoint(), ("held",)),
    Step("around_offsets", _around_offsets, _AROUND),
    Step("of_topics", _of_topics, ("topics", "elections")),
    Step("commits", commit_frames, ("cut",)),
    Step("of_offsets", made_of_offsets, _OF_OFFSETS),
    Step("offset_history", itemgetter("offset_history"), ("of_offsets",)),
    Step("group_epochs", group_epochs, ("group_steps", "owned", "rules", "coverage")),
    Step("membership_changes", membership_changes, ("owned", "group_epochs", "coverage")),
    Step("assignment_history", assignment_history, ("owned", "coverage")),
    Step("elections", _elections, ("metadata", "topics")),
    Step("coordinator_epochs", coordinator_epochs, ("cut", "coordinator_log", "elections")),
    Step("share_partition_epochs", share_partition_epochs, ("cut", "topics")),
    Step("told", Told, _TOLD),
    Step("group_events", group_events, ("cut", "metadata", "told", "coverage")),
)
"""Besides these it takes what `STATE` makes."""
