"""What lag is evaluated from, put together from a replayed workspace and side files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from analytics.gaps.compacted_history import groups_lacking_history
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.lag.data_logs import EXACT, data_logs
from analytics.questions.lag.log_retention import topic_retention
from analytics.questions.lag.loss import files_of
from analytics.questions.lag.read_partitions import GroupTables
from analytics.questions.lag.table import LagQuestion
from analytics.replay.log.log_clocks import clocks_of_topic
from analytics.replayed.answered_instant import instant_of
from analytics.replayed.end_offset_samples import SAMPLES, EndOffsetSamples
from analytics.replayed.end_offsets import end_offset_samples, end_offsets_at
from analytics.replayed.known_coverage import known_coverage
from analytics.replayed.subtopology_inputs import subtopology_inputs
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS
from schemas.evaluation_rules import lag_rules

if TYPE_CHECKING:
    from analytics.gaps.group_selection import GroupSelection
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


def lag_question(
    state: ReplayedWorkspace, asked: GroupSelection, end_offsets: str | None
) -> LagQuestion:
    """Return what lag is evaluated from.

    Args:
        state: A replay.
        asked: The groups.
        end_offsets: A file that says where logs ended.

    Raises:
        GroupscopeError: A side file is not what it has to be.
    """
    tables = state.tables
    settings = state.settings
    as_of = instant_of(state)
    logs = data_logs(state)
    ends = end_offsets_at(state, end_offsets)
    if not state.is_end:
        ends = _with_indexed(ends, logs.ends_at(as_of))
    samples = [end_offset_samples(state, end_offsets, as_of), logs.samples(as_of)]
    written = logs.written() if state.is_end else SAMPLES.empty_table()
    topics = StoredTables(tables.workspace).read("topics")
    return LagQuestion(
        GroupTables(
            asked.found,
            tables.read("members"),
            tables.read("assignments"),
            tables.read("committed_offsets"),
            topics,
            subtopology_inputs(state),
            GroupCompleteness(state).lost_offsets_of(asked.found),
        ),
        ends,
        EndOffsetSamples.of(pa.concat_tables(samples)),
        as_of,
        lag_rules(settings.given.thresholds("lag")),
        EndOffsetSamples.of(written),
        files_of(logs.segments),
        topic_retention(topics, tables.read("configs"), settings),
        state.is_end,
        logs.stable,
        groups_lacking_history(state, asked.found),
        clocks_of_topic(known_coverage(state).clocks, CONSUMER_OFFSETS),
    )


def _with_indexed(given: pa.Table, indexed: pa.Table) -> pa.Table:
    """Return ends that were given, and where there are none those of time indexes."""
    place = ["topic", "partition"]
    exact = pa.repeat(pa.scalar(EXACT), given.num_rows)
    others = indexed.join(given.select(place), place, join_type="left anti")
    return pa.concat_tables(
        [given.append_column("log_end_bound", exact), others.select(indexed.column_names)],
        promote_options="default",
    )
