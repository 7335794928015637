"""What a replayed workspace's dump holds, as far as it matters at the instant of the replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.replay.dump.assumptions import assumed_in
from analytics.replay.dump.coverage import coverage_of
from analytics.replayed.replayed_instant import replayed_instant

if TYPE_CHECKING:
    from analytics.replay.log.coverage import Coverage
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


def known_coverage(state: ReplayedWorkspace) -> Coverage:
    """Return where the dump's edges are at the instant."""
    instant = replayed_instant(state.as_of, state.frames)
    return coverage_of(
        state.manifest, instant, state.source, state.lines, assumed_in(state.manifest)
    )
