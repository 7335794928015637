"""Groups that are not there for clients, though records of them lie where none is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.dump.inspection.limitations import ranges
from analytics.engine.cut_tables import tables_of
from analytics.engine.key_places import homes_in
from analytics.replay.dump.written_instants import iso_time
from analytics.replay.log.topic_homes import NOT_SEEN
from analytics.tables.record_keys import GROUPS, key_columns
from analytics.tables.record_reader import RecordReader
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.replay.log.topic_homes import TopicHomes
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


def why_not_there(state: ReplayedWorkspace, groups: Sequence[str]) -> dict[str, str]:
    """Return by group a sentence on where its records lie, of groups with records elsewhere.

    Args:
        state: A replayed workspace.
        groups: Names of groups that its state does not have.
    """
    homes = homes_in(state.manifest).get(CONSUMER_OFFSETS)
    if homes is None or not homes.misplaced or homes.perhaps is not None or not groups:
        return {}
    return {
        group: (
            f"group {group} does not exist at {state.instant}: records of it lie in "
            f"{CONSUMER_OFFSETS} {ranges(elsewhere)}, where no client is sent{_since(homes)}"
        )
        for group, places in _places(state, groups).items()
        if (elsewhere := {*places} - {homes.home(group)})
    }


def _places(state: ReplayedWorkspace, groups: Sequence[str]) -> Mapping[str, list[int]]:
    """Return in which partitions groups have records."""
    everything = RecordReader(state.source, state.lines, before_swaps=state.before_swaps)
    pieces = [
        rows.filter(pl.col("key").is_in(list(groups))).select("key", "partition").unique()
        for name in sorted(tables_of((CONSUMER_OFFSETS,)) & key_columns(GROUPS).keys())
        for rows in everything.key_places(name, CONSUMER_OFFSETS)
    ]
    every = pl.concat(pieces) if pieces else pl.DataFrame(schema={"key": str, "partition": int})
    found = every.group_by("key").agg(pl.col("partition").unique().sort())
    return dict(found.iter_rows())


def _since(homes: TopicHomes) -> str:
    if homes.since is None or homes.since == NOT_SEEN:
        return ""
    return f" since {iso_time(homes.since)}"
