"""The instant of a replay, of what its manifest says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from analytics.epoch_times import milliseconds_of
from analytics.replay.log.frames import frames_of_rows
from analytics.replay.log.instants import AsOf


def replayed_instant(
    manifest_entry: Mapping[str, Any], frames: Iterable[Mapping[str, Any]] = ()
) -> AsOf:
    """Return the instant that the manifest of a replay says.

    Args:
        manifest_entry: As answers have it.
        frames: Of partitions whose times go back, as `frame_rows` returns them.
    """
    time = manifest_entry["time"] and datetime.fromisoformat(manifest_entry["time"])
    offsets = {}
    for place, end in manifest_entry["offsets"].items():
        topic, _, number = place.rpartition("-")
        offsets[topic, int(number)] = end
    time_ms = milliseconds_of(time) if time else None
    return AsOf(offsets, time_ms, frames_of_rows(frames))
