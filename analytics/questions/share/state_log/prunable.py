"""The table `share_prunable`: what brokers may delete of `__share_group_state`, and what keeps it.

Below the least of the last snapshots of all share partitions nothing is needed any more: the share
coordinator deletes it every few minutes (``ShareCoordinatorOffsetsManager``). One share partition
without a new snapshot keeps the records of all others of its internal partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.marks import marked
from analytics.questions.share.places import places_in
from analytics.questions.share.state_log.share_log import KEY
from analytics.replay.log.losses import HOME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

SNAPSHOT_COLUMNS: Final = ("partition", "offset", "timestamp", "is_tombstone", "key")
"""What is needed of ``share_snapshot``."""
UPDATE_COLUMNS: Final = ("partition", "offset")
"""What is needed of ``share_update``."""


@dataclass(frozen=True)
class StateRecords:
    """The records of `__share_group_state` that count at the instant.

    Attributes:
        snapshots: `SNAPSHOT_COLUMNS`.
        updates: `UPDATE_COLUMNS`.
        log_starts: By internal partition, where it begins; absent where that is not known.
    """

    snapshots: pa.Table
    updates: pa.Table
    log_starts: Mapping[int, int]


def prunable(
    records: StateRecords, topics: pa.Table, gaps: Mapping[int, str] = MappingProxyType({})
) -> pa.Table:
    """Return a row for each internal partition with a snapshot: the table `share_prunable`.

    Args:
        records: Of all groups.
        topics: The table `topics`: `topic_id`, `topic`.
        gaps: By internal partition, what the dump lacks of it, in words.
    """
    numbers, words = pa.array(gaps, pa.int32()), pa.array(gaps.values(), pa.string())
    lacking = pa.table([numbers, words], names=[HOME, "missing"])
    return marked(_prunable(records, topics), lacking, [HOME])


def _prunable(records: StateRecords, topics: pa.Table) -> pa.Table:
    snapshots = records.snapshots
    if not snapshots.num_rows:
        return EMPTY.empty_table()
    offsets = np.concatenate([_column(snapshots, "offset"), _column(records.updates, "offset")])
    homes = np.concatenate([_column(snapshots, "partition"), _column(records.updates, "partition")])
    held = _holders(snapshots)
    rows = []
    for number in np.unique(_column(snapshots, "partition")).tolist():
        here = np.sort(offsets[homes == number])
        least = held.get(number)
        until = _redundant_below(snapshots, number, least)
        start = records.log_starts.get(number)
        count = int(np.searchsorted(here, until)) if until is not None else 0
        rows.append(
            {
                "coordinator_partition": number,
                "log_start_offset": start,
                "log_end_offset": int(here[-1]) + 1,
                "records": here.size,
                "prunable_to": until,
                "prunable_records": count,
                "prunable_offsets": None
                if start is None
                else max((until if until is not None else start) - start, 0),
                **(least or {}),
            }
        )
    found = pa.Table.from_pylist(rows, EMPTY)
    named = topics.filter(pc.is_valid(topics["topic_id"]))
    named = named.group_by("topic_id").aggregate([("topic", "min")])
    place = places_in(
        named, found.select(["held_by_topic_id"]).rename_columns(["topic_id"]), ["topic_id"]
    )
    names = pa.array([*named["topic_min"].to_pylist(), None], pa.string()).take(
        pa.array(np.where(place >= 0, place, named.num_rows))
    )
    where = found.column_names.index("held_by_topic")
    filled = pc.coalesce(names, found["held_by_topic_id"].combine_chunks())
    return found.set_column(where, "held_by_topic", filled)


EMPTY: Final = pa.schema(
    [
        ("coordinator_partition", pa.int32()),
        ("log_start_offset", pa.int64()),
        ("log_end_offset", pa.int64()),
        ("records", pa.int64()),
        ("prunable_to", pa.int64()),
        ("prunable_records", pa.int64()),
        ("prunable_offsets", pa.int64()),
        ("held_by_group", pa.string()),
        ("held_by_topic", pa.string()),
        ("held_by_topic_id", pa.string()),
        ("held_by_partition", pa.int32()),
        ("held_by_offset", pa.int64()),
        ("held_since", pa.timestamp("us", "UTC")),
    ]
)
"""The columns of `share_prunable` without marks."""


def _column(rows: pa.Table, name: str) -> Numbers:
    if not rows.num_rows:
        return np.zeros(0, np.int64)
    numbers: Numbers = rows[name].to_numpy().astype(np.int64)
    return numbers


def _holders(snapshots: pa.Table) -> dict[int, dict[str, object]]:
    """Return by internal partition the live share partition with the oldest last snapshot."""
    key = snapshots["key"].combine_chunks()
    rows = pa.table(
        {
            **{name: pc.struct_field(key, name) for name in KEY},
            **{name: snapshots[name] for name in ("offset", "timestamp", "is_tombstone")},
            "home": snapshots["partition"],
        }
    ).sort_by("offset")
    names = [*KEY, "home"]
    told = ["offset", "timestamp", "is_tombstone"]
    last = rows.group_by(names, use_threads=False).aggregate([(name, "last") for name in told])
    living = last.filter(pc.invert(last["is_tombstone_last"])).sort_by("offset_last")
    found: dict[int, dict[str, object]] = {}
    for row in living.to_pylist():
        found.setdefault(
            row["home"],
            {
                "held_by_group": row["group_id"],
                "held_by_topic_id": row["topic_id"],
                "held_by_partition": row["partition"],
                "held_by_offset": row["offset_last"],
                "held_since": row["timestamp_last"],
            },
        )
    return found


def _redundant_below(
    snapshots: pa.Table, number: int, least: dict[str, object] | None
) -> int | None:
    """Return the offset below which nothing is needed; None where there is no such.

    Where no share partition lives, it is the last tombstone's.
    """
    if least is not None:
        offset = int(str(least["held_by_offset"]))
    else:
        here = snapshots.filter(pc.equal(snapshots["partition"], number))
        offset = int(pc.max(here["offset"]).as_py())
    return offset if offset > 0 else None
