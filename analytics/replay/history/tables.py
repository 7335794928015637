"""The history tables: what each is made of (`replay_tables` makes them beside the state)."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING

from analytics.replay.graph import TableStep
from analytics.replay.groups.coordinator_log import COORDINATOR_LOG
from analytics.replay.history.data_partitions import births, elections, losses
from analytics.replay.history.gathered_coordinators import coordinator_table, coordinators
from analytics.replay.history.gathered_dependencies import dependency_events
from analytics.replay.history.gathered_groups import (
    gathered_groups,
    load_faults,
    made_of_groups,
    owned,
)
from analytics.replay.history.gathered_share import made_of_share_state
from analytics.replay.history.group_events import group_events
from analytics.replay.history.topic_names import named_topics, topic_names
from analytics.replay.log.arrow_rows import polars_rows
from analytics.replay.offsets.commit_groups import commit_frames, made_of_offsets
from analytics.replay.offsets.offset_history import OfTopics
from analytics.replay.offsets.removal_frames import removals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.metadata.metadata_log import MetadataLog


def _elections(metadata: MetadataLog, topics: DataFrame) -> DataFrame:
    return elections(metadata, topics).localCheckpoint()


def _around_offsets(
    of_groups: Mapping[str, DataFrame], removals: DataFrame
) -> dict[str, DataFrame]:
    return {
        "moments": of_groups["moments"],
        "owners": of_groups["owners"],
        "removals": removals,
    }


def _of_topics(topics: DataFrame, elected: DataFrame) -> OfTopics:
    return OfTopics(polars_rows(births(topics).toArrow()), polars_rows(losses(elected).toArrow()))


_OF_OFFSETS = ("commits", "around_offsets", "of_topics", "rules", "coverage")
_DEPENDENCIES = (
    "metadata",
    "named_topics",
    "coordinators",
    "offset_history",
    "assignment_history",
)
_EVENTS = ("of_groups", "of_offsets", "of_share_state", "of_dependencies")


def _one_of(made: str, name: str) -> TableStep:
    return TableStep(name, itemgetter(name), (made,))


HISTORY = (
    COORDINATOR_LOG,
    TableStep("group_rows", gathered_groups, ("coordinator_log", "cut")),
    TableStep("named_topics", named_topics, ("topics",)),
    TableStep("topic_names", topic_names, ("named_topics",)),
    TableStep("of_groups", made_of_groups, ("group_rows", "topic_names", "rules", "coverage")),
    TableStep("owned", owned, ("group_rows", "topic_names", "rules")),
    TableStep("load_faults", load_faults, ("group_rows", "cut", "rules")),
    TableStep("removals", removals, ("cut", "commits", "topics", "rules", "coverage")),
    TableStep("around_offsets", _around_offsets, ("of_groups", "removals")),
    TableStep("of_topics", _of_topics, ("topics", "elections")),
    TableStep("commits", commit_frames, ("cut",)),
    TableStep("of_offsets", made_of_offsets, _OF_OFFSETS),
    _one_of("of_offsets", "offset_history"),
    _one_of("of_groups", "group_epochs"),
    _one_of("of_groups", "membership_changes"),
    _one_of("of_groups", "assignment_history"),
    TableStep("elections", _elections, ("metadata", "topics")),
    TableStep("coordinators", coordinators, ("cut", "coordinator_log", "elections")),
    TableStep("coordinator_epochs", coordinator_table, ("coordinators", "coordinator_log")),
    TableStep("of_share_state", made_of_share_state, ("cut", "topic_names")),
    _one_of("of_share_state", "share_partition_epochs"),
    TableStep("of_dependencies", dependency_events, _DEPENDENCIES),
    TableStep("group_events", group_events, _EVENTS),
)
"""Besides these it takes what `STATE` makes."""
