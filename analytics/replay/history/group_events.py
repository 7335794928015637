"""The table `group_events`: everything that happened to a group, told from the other tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.replay.contract import as_table
from analytics.replay.history.events_around import events_around
from analytics.replay.history.group_life_events import group_life_events, member_events
from analytics.replay.history.share_events import share_events
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.metadata.metadata_log import MetadataLog


@dataclass(frozen=True)
class Told:
    """The tables that events are told from."""

    group_steps: DataFrame
    group_epochs: DataFrame
    membership_changes: DataFrame
    assignment_history: DataFrame
    of_offsets: Mapping[str, DataFrame]
    offset_history: DataFrame
    share_partition_epochs: DataFrame
    coordinator_epochs: DataFrame
    topics: DataFrame


def group_events(
    decoded: Decoded,
    metadata: MetadataLog,
    told: Told,
    coverage: Coverage = WHOLE,
) -> DataFrame:
    """Return the table `group_events`.

    Args:
        decoded: Decoded tables, cut at an instant.
        metadata: The metadata log at that instant.
        told: The tables of the same instant.
        coverage: What the dump holds.
    """
    events = (
        group_life_events(told.group_steps, told.group_epochs, coverage),
        member_events(told.membership_changes),
        told.of_offsets["events"],
        share_events(told.share_partition_epochs, decoded, told.topics),
        events_around(
            decoded,
            metadata,
            told.topics,
            told.coordinator_epochs,
            told.offset_history,
            told.assignment_history,
            told.group_steps,
        ),
    )
    return as_table(union_all(events), "group_events")
