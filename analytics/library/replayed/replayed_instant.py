"""The instant of a replay, of what its manifest says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from analytics.replay.dump.written_instants import EPOCH
from analytics.replay.log.instants import AsOf


def replayed_instant(said: Mapping[str, Any]) -> AsOf:
    """Return the instant that the manifest of a replay says."""
    time = said["time"] and datetime.fromisoformat(said["time"])
    offsets = {}
    for place, end in said["offsets"].items():
        topic, _, number = place.rpartition("-")
        offsets[topic, int(number)] = end
    return AsOf(offsets, round((time - EPOCH).total_seconds() * 1000) if time else None)
