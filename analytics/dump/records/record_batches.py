"""Records of magic 2 batches, all batches of a chunk together (``DefaultRecord``).

Nothing says where a record begins but the lengths of those before it, and within a record nothing
says where a field begins but those before it: one pass from the first byte to the last. A batch in
which one record does not fit is given up as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.dump.batches.damage import DamageReason
from analytics.dump.batches.headers import MIN_RECORD
from analytics.dump.records.raw_records import Spans
from analytics.dump.records.record_columns import RecordColumns
from analytics.dump.records.record_walk import BAD_COUNT, BAD_RECORD, COLUMNS, walk_records

if TYPE_CHECKING:
    from numpy.typing import NDArray

Failures = dict[int, DamageReason]
"""Why the batch in a row could not be read."""

_REASONS = {BAD_RECORD: DamageReason.BAD_RECORD, BAD_COUNT: DamageReason.BAD_RECORD_COUNT}


@dataclass(frozen=True)
class Regions:
    """Where the records of magic 2 batches lie, decompressed; one row a batch.

    Attributes:
        start: First byte in the buffer.
        end: After the last byte.
        count: Records claimed.
        base_offset: Of the batch.
        last_offset: Of the batch.
        base_timestamp: What the records' timestamps are relative to.
        append_time: Timestamp of all records where ``is_append_time``.
        is_append_time: The broker set the timestamps.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    count: NDArray[np.int64]
    base_offset: NDArray[np.int64]
    last_offset: NDArray[np.int64]
    base_timestamp: NDArray[np.int64]
    append_time: NDArray[np.int64]
    is_append_time: NDArray[np.bool_]


def read_batches(data: NDArray[np.uint8], regions: Regions) -> tuple[RecordColumns, Failures]:
    """Read all records; those of batches that fail are not among them.

    Args:
        data: The buffer; the regions lie in it.
        regions: Where the records lie.
    """
    # No more than fit: what is claimed beyond that fails, and must not cost memory.
    room = (regions.end - regions.start) // MIN_RECORD
    rows = np.empty((COLUMNS, int(np.clip(regions.count, 0, room).sum())), np.int64)
    outcome = np.empty(regions.count.size, np.int8)
    batches = np.stack(
        [regions.start, regions.end, regions.count, regions.base_offset, regions.last_offset]
    )
    found = walk_records(rows.size, data, batches, rows, outcome)
    batch, offset, timestamp, record_bytes, key, key_length, value, value_length = rows[:, :found]
    timestamp += regions.base_timestamp[batch]
    if regions.is_append_time.any():
        by_broker = regions.is_append_time[batch]
        timestamp = np.where(by_broker, regions.append_time[batch], timestamp)
    failed = np.flatnonzero(outcome)
    reasons = [_REASONS[each] for each in outcome[failed].tolist()]
    columns = RecordColumns(
        batch, offset, timestamp, record_bytes, Spans(key, key_length), Spans(value, value_length)
    )
    return columns, dict(zip(failed.tolist(), reasons, strict=True))
