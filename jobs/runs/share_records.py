"""The records of share state that count at the instant asked about, as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.share.share_log import COLUMNS, ShareLog, share_log
from jobs.records_at import records_at

if TYPE_CHECKING:
    from jobs.replayed import Replayed

STATE_TOPIC = "__share_group_state"


def share_log_at(state: Replayed, shares: pa.Table) -> ShareLog:
    """Return the records of share partitions up to the instant.

    What was deleted before the end of a dump does not count at its end.

    Args:
        state: Says the instant.
        shares: The share partitions that are asked about: `group_id`.
    """
    groups = pc.unique(shares["group_id"])
    starts = log_starts(state)
    found = [
        _of_groups(_above(records_at(state, name, COLUMNS), starts), groups)
        for name in ("share_snapshot", "share_update")
    ]
    return share_log(*found)


def log_starts(state: Replayed) -> dict[int, int]:
    """Return where the partitions of the topic begin, where records count only from there on."""
    if not state.is_end:
        return {}
    return {
        each["partition"]: each["log_start_offset"]
        for each in state.manifest["partitions"]
        if each["topic"] == STATE_TOPIC
        and each.get("is_leading", True)
        and each["log_start_offset"]
    }


def _above(records: pa.Table, starts: dict[int, int]) -> pa.Table:
    for partition, start in starts.items():
        is_below = pc.and_(
            pc.equal(records["partition"], partition), pc.less(records["offset"], start)
        )
        records = records.filter(pc.invert(is_below))
    return records


def _of_groups(records: pa.Table, groups: pa.Array) -> pa.Table:
    if not records.num_rows:
        return records
    group = pc.struct_field(records["key"].combine_chunks(), "group_id")
    return records.filter(pc.is_in(group, groups))
