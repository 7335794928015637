"""A dump decoded and replayed into a workspace by this process, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.dump.inspection.found_losses import with_archived_losses
from analytics.engine.replay_work import ReplayWork, replay_workspace
from analytics.replay.dump.choices import assumed_of, moment
from analytics.replay.dump.followed_lines import followed_lines
from analytics.replay.log.log_times import AsOf
from analytics.replay.log.rules import NEWEST
from analytics.tables.decoded_records import absolute
from analytics.workspace import EVALUATIONS, HISTORY, STATE, Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def replayed_here(
    source: Workspace,
    folder: Path,
    time_ms: int | None = None,
    assume: Sequence[str] = (),
    needs: Sequence[str] | None = None,
) -> Workspace:
    """Replay a workspace with decoded tables into another one.

    Args:
        source: As `decoded_here` makes it.
        folder: Of the other workspace.
        time_ms: The instant in epoch milliseconds; None is the end of the dump.
        assume: What a person vouches for.
        needs: The tables that are made; None is all.
    """
    manifest = source.manifest()
    lines = followed_lines(manifest, None if time_ms is None else moment(time_ms))
    release = manifest["kafka_version"].get("at_least") or NEWEST
    work = ReplayWork(
        AsOf({}, time_ms), release, (), {}, needs, lines, assumed_of(manifest, assume)
    )
    manifest = with_archived_losses(manifest, is_whole=False)
    space = Workspace(str(folder))
    staging = space.prepare()
    parts = replay_workspace(source, staging, work, manifest)
    manifest["replay"] = {**work.metadata(parts), "decoded_in": absolute(source)}
    staging.publish(parts, [STATE, HISTORY, EVALUATIONS], manifest)
    return space
