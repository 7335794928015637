"""Where compaction or deletion has been: of what was there before, nothing may be left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import is_name
from analytics.dump.inspection.limitations import ranges
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.replay.log.ends_at import leading, what_took_history
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import PartitionEntry

Row = Mapping[str, Any]


def compacted_history(state: ReplayedWorkspace) -> list[Row]:
    """Return the partitions of the offsets topic that were compacted, where groups asked for lie.

    A pattern may match groups of which nothing is left, in any partition.

    Returns:
        `partition`; `before_offset`, before which records may have been removed; `before_time`, a
        time from which on none was, null where the manifest has none; `what`, what became of
        them, in words.
    """
    asked = state.tables.selection.groups
    completeness = GroupCompleteness(state)
    homes = {completeness.home(each) for each in asked}
    is_known = bool(asked) and None not in homes and all(map(is_name, asked))
    return [
        {
            "partition": each["partition"],
            "before_offset": each["complete_from"],
            "before_time": _time_of(each),
            "what": what_took_history(each),
        }
        for each in sorted(leading(state.manifest_of_history), key=lambda each: each["partition"])
        if each["topic"] == CONSUMER_OFFSETS
        and each.get("complete_from")
        and (not is_known or each["partition"] in homes)
    ]


def groups_lacking_history(state: ReplayedWorkspace, groups: pa.Table) -> pa.Table:
    """Return `group_id` and `why` of the groups whose earlier commits may be missing.

    Args:
        state: At the instant asked about.
        groups: `group_id`, `coordinator_partition`.
    """
    lacking = {
        each["partition"]: f"history before offset {each['complete_from']} of "
        f"{CONSUMER_OFFSETS}-{each['partition']} {what_took_history(each)}"
        for each in leading(state.manifest_of_history)
        if each["topic"] == CONSUMER_OFFSETS and each.get("complete_from")
    }
    place = pc.index_in(groups["coordinator_partition"], pa.array(list(lacking), pa.int32()))
    why = pa.array(list(lacking.values()), pa.string()).take(place.combine_chunks())
    rows = pa.table({"group_id": groups["group_id"], "why": why})
    return rows.filter(pc.is_valid(rows["why"]))


def compacted_sentence(rows: list[Row]) -> str | None:
    """Return what cannot be told because history is not whole; None where all of it is."""
    if not rows:
        return None
    by_what: dict[str, list[Row]] = {}
    for row in rows:
        by_what.setdefault(row["what"], []).append(row)
    taken = "; ".join(f"history before {_where(of)} {what}" for what, of in by_what.items())
    return (
        f"Cannot tell: {taken}. There may have been other partitions of these groups, and other "
        f"groups, of which nothing is left."
    )


def _where(rows: list[Row]) -> str:
    """Return before which offset of which partitions history is not whole."""
    (first, *more) = rows
    if more:
        numbers = ranges(row["partition"] for row in rows)
        return f"offset complete_from of each of {CONSUMER_OFFSETS} {numbers}"
    time = f" ({first['before_time']})" if first["before_time"] else ""
    return f"offset {first['before_offset']} of {CONSUMER_OFFSETS}-{first['partition']}{time}"


def _time_of(partition: PartitionEntry) -> str | None:
    """Return the first time of a file that lies wholly behind what was compacted."""
    start = partition["complete_from"]
    times = [
        first
        for file in partition.get("files", ())
        if file.get("kind") == "log"
        and (first := file.get("first_timestamp"))
        and start is not None
        and _base_offset(file["name"]) >= start
    ]
    return min(times, default=None)


def _base_offset(name: str) -> int:
    stem = name.rpartition("/")[2].partition(".")[0]
    return int(stem) if stem.isdigit() else -1
