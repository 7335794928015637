"""What was pending at an instant before that of a replay: made as a replay at that instant does."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.engine.cut_tables import cut_of, framed
from analytics.engine.replay_tasks import replay_here
from analytics.engine.replay_work import ReplayWork
from analytics.replay.dump.choices import assumed_in
from analytics.replay.dump.coverage import coverage_of
from analytics.replay.dump.followed_lines import followed_lines, of_history, read_before_swaps
from analytics.replay.dump.times import milliseconds
from analytics.replay.log.rules import replay_rules
from analytics.replay.state import replay_given
from analytics.replayed.replayed_workspace import replayed_instant

if TYPE_CHECKING:
    from analytics.replay.dump.followed_lines import FollowedLine
    from analytics.replay.log.log_times import AsOf, Frames
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_TABLE: Final = "pending_offsets"


def pending_at(state: ReplayedWorkspace, until: datetime) -> pl.DataFrame:
    """Return the rows of `pending_offsets` of the groups asked about, as they were at a time.

    Args:
        state: A replayed workspace.
        until: The time.
    """
    wanted = state.tables.selection
    of_replay = state.manifest["replay"].get("filters", {})
    filters = {
        "topics": tuple(of_replay.get("topics", ())),
        "partitions": tuple(of_replay.get("partitions", ())),
        "groups": wanted.groups,
        "exclude_groups": wanted.exclude_groups,
        "data_topics": wanted.topics,
    }
    instant, lines = _instant_at(state, until)
    work = ReplayWork(
        instant=instant,
        release=state.release,
        side_file=(),
        filters=filters,
        needs=(_TABLE,),
        lines=lines,
        assumed=assumed_in(state.manifest),
    )
    manifest = of_history(state.manifest)
    coverage = coverage_of(manifest, instant, state.source, work.lines, work.assumed)
    given = replay_given(replay_rules(work.release), coverage)
    kept: list[pl.DataFrame] = []

    def keep(name: str, rows: pl.DataFrame) -> None:
        if name == _TABLE:
            kept.append(rows)

    reader = work.reader(state.source, read_before_swaps(manifest))
    replay_here(work.steps, given, cut_of(reader, instant, {}), keep)
    return pl.concat(kept)


def frames_until(state: ReplayedWorkspace, until: datetime) -> Frames:
    """Return where the logs whose times go back are cut at a time, as a replay at it does."""
    return _instant_at(state, until)[0].frames


def _instant_at(state: ReplayedWorkspace, until: datetime) -> tuple[AsOf, tuple[FollowedLine, ...]]:
    own = replayed_instant(state.as_of, state.frames)
    asked = milliseconds(until)
    time_ms = asked if own.timestamp_ms is None else min(asked, own.timestamp_ms)
    lines = followed_lines(state.manifest, until)
    # An earlier instant than the end: swap files took no place yet.
    swapped = read_before_swaps(state.manifest_of_history)
    return framed(replace(own, timestamp_ms=time_ms), state.source, lines, swapped), lines
