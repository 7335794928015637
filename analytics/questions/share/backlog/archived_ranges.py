"""The table `share_archived_ranges`: what share groups have given up or rejected, and when.

A record is archived when a member rejects it, when there is none at its offset (a transaction's
marker, a compacted record: clients acknowledge it as a gap), and when it would be available again
after its last delivery (``InFlightState.tryUpdateState``). No record says which. But what is
archived after fewer deliveries than the limit was not given up; how often that may be shows in the
log, too: what is available after a delivery has another one left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from analytics.questions.share.backlog.progress import current_records, first_covers
from analytics.questions.share.backlog.status import CANNOT_TELL
from analytics.questions.share.places import places_in
from analytics.questions.share.settings import ALWAYS, ASSUMED
from analytics.questions.share.state_log.share_log import KEY, NO_TIME
from analytics.replay.share.share_records import ARCHIVED, AVAILABLE
from analytics.time_columns import times_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.questions.share.state_log.share_log import ShareLog

    Numbers = NDArray[np.int64]

REJECTED: Final = "rejected_or_gap"
AT_LIMIT: Final = "at_limit"
LEAST_LIMIT: Final = 2
"""What brokers take for the limit at the least (``ShareGroupConfig``)."""


def archived_ranges(rows: pa.Table, log: ShareLog) -> pa.Table:
    """Return the ranges that were archived since the state was initialised, as far as it is told.

    Args:
        rows: The table `share_backlog`.
        log: The records up to the instant.

    Returns:
        The table `share_archived_ranges`, in order of its key.
    """
    place = places_in(rows, log.shares, KEY)
    is_current, _ = current_records(log)
    share = log.share[log.ranges.key]
    chosen = is_current[log.ranges.key] & (log.ranges.state == ARCHIVED) & (place[share] >= 0)
    ranges = log.ranges.where(chosen)
    found = first_covers(ranges, share[chosen])
    row = place[found.share]
    count = ranges.count[found.range].astype(np.int64)
    next_offset = rows["next_offset"].fill_null(-1).to_numpy()[row]
    at = log.at[found.record]
    columns = {
        **{name: rows[name].take(row) for name in ("group_id", "topic_id", "topic", "partition")},
        "first_offset": found.first,
        "last_offset": found.last,
        "delivery_count": pa.array(count, pa.int32()),
        "archived_at": times_of(np.where(at == NO_TIME, -1, at)),
        "archived_bound": pa.array(np.where(_is_told(log, found.record), "exact", "at_latest")),
        "cause": _causes(rows, log, place, row, found.record, count),
        "is_passed": pa.array(found.last < next_offset),
        "coordinator_partition": log.shares["coordinator_partition"]
        .take(found.share)
        .cast(pa.int32()),
        "record_offset": log.offset[found.record],
    }
    order = [(name, "ascending") for name in ("group_id", "topic_id", "partition", "first_offset")]
    return pa.table(columns).sort_by(order)


def _is_told(log: ShareLog, record: Numbers) -> NDArray[np.bool_]:
    """Return whether what a record stores was not so before: it is not the first one there is."""
    initialised = (log.snapshot_epoch[record] == 0) & (log.state_epoch[record] >= 0)
    found: NDArray[np.bool_] = ~log.is_first[record] | initialised
    return found


def _causes(
    rows: pa.Table, log: ShareLog, place: Numbers, row: Numbers, record: Numbers, count: Numbers
) -> pa.Array:
    limit = rows["delivery_count_limit"].to_numpy()[row]
    source = rows["delivery_count_limit_source"].take(row)
    is_known = np.array([each != ASSUMED for each in source.to_pylist()], np.bool_)
    # What held before a limit was set, nothing tells.
    is_known &= _is_in_force(rows, log, row, record)
    at_least = _seen_limits(rows, log, place)[row]
    is_below = (count < at_least) | (is_known & (count < limit))
    words = np.where(is_below, REJECTED, np.where(is_known, AT_LIMIT, CANNOT_TELL))
    return pa.array(words.tolist(), pa.string())


def _is_in_force(rows: pa.Table, log: ShareLog, row: Numbers, record: Numbers) -> NDArray[np.bool_]:
    """Return whether the limit of deliveries was in force when a range was archived."""
    since = rows["delivery_count_limit_since"].to_numpy()[row]
    was_set = (log.at[record] >= since) & _is_told(log, record)
    found: NDArray[np.bool_] = was_set | (since == ALWAYS)
    return found


def _seen_limits(rows: pa.Table, log: ShareLog, place: Numbers) -> Numbers:
    """Return by row what the limit of its group is at the least, as far as the log shows."""
    groups = rows["group_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    seen = np.full(int(groups.max(initial=-1)) + 1, LEAST_LIMIT)
    of_range = place[log.share[log.ranges.key]]
    free = (log.ranges.state == AVAILABLE) & (of_range >= 0)
    np.maximum.at(seen, groups[of_range[free]], log.ranges.count[free].astype(np.int64) + 1)
    of_row: Numbers = seen[groups]
    return of_row
