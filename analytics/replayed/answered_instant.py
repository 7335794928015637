"""The instant of an answer as JSON has it: never without a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from analytics.epoch_times import EPOCH
from analytics.replay.dump.times import end_of, last_record_time
from analytics.replay.dump.written_instants import iso_time
from analytics.workspace import DECODED, reading

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


def answered_instant(state: ReplayedWorkspace) -> dict[str, Any]:
    """Return `time`, `is_end` and `offsets`, and `notes` where a time is not believed.

    Where no time was asked for, it is that of the last record that counts. It is null only where no
    record has a time.
    """
    asked = state.as_of
    end = end_of(state.manifest)
    notes = [*end.notes, *([] if end.doubt is None else [f"cannot tell {end.doubt}"])]
    return {
        "time": asked["time"] or _last_time(state),
        "is_end": state.is_end,
        "offsets": asked["offsets"],
        **({"notes": notes} if notes else {}),
    }


def instant_of(state: ReplayedWorkspace) -> datetime:
    """Return the instant asked about; at the end of a dump, the time of its last record."""
    said = answered_instant(state)["time"]
    return EPOCH if said is None else datetime.fromisoformat(said)


def _last_time(state: ReplayedWorkspace) -> str | None:
    ends: Mapping[str, int] = state.as_of["offsets"]
    partitions = state.manifest.get("partitions", ())
    whole = last_record_time(
        (each for each in partitions if f"{each['topic']}-{each['partition']}" not in ends),
        state.manifest.get("leader_clocks", ()),
    )
    cut = (_last_time_below(state, place, end) for place, end in ends.items())
    return max((each for each in (whole, *cut) if each is not None), default=None)


def _last_time_below(state: ReplayedWorkspace, place: str, end: int) -> str | None:
    """Return the time of the last record of a partition below an offset."""
    topic, _, partition = place.rpartition("-")
    wanted = (
        (pc.field("topic") == topic)
        & (pc.field("partition") == int(partition))
        & (pc.field("offset") < end)
    )
    source = state.source
    folder = fs.FileSelector(source.path(DECODED), allow_not_found=True)
    times: list[datetime] = []
    for table in source.filesystem.get_file_info(folder):
        with reading(table.path):
            records = ds.dataset(table.path, filesystem=source.filesystem, format="parquet")
            found = records.to_table(columns=["timestamp"], filter=wanted)["timestamp"]
        if (latest := pc.max(found).as_py()) is not None:
            times.append(latest)
    whole = end_of(state.manifest).time
    believed = [each for each in times if whole is None or each <= whole]
    return iso_time(max(believed)) if believed else None
