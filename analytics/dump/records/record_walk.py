"""The walk over the records of magic 2 batches, byte after byte (``DefaultRecord.readFrom``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.batches.headers import MIN_RECORD
from analytics.wire.compiled import BYTES, compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.wire.compiled import Bytes

VARINT: Final = 5
"""Bytes of the longest varint of 32 bits."""
VARLONG: Final = 10
"""Bytes of the longest of 64 bits."""

START, END, COUNT, BASE_OFFSET, LAST_OFFSET = range(5)
"""What `walk_records` is told of each batch."""

SOUND, BAD_RECORD, BAD_COUNT = 0, 1, 2
"""How the walk over a batch ended."""

_INT64_MAX: Final = 2**63 - 1

BATCH, OFFSET, TIMESTAMP, RECORD_BYTES, KEY, KEY_LENGTH, VALUE, VALUE_LENGTH = range(8)
COLUMNS: Final = 8
"""What `walk_records` fills in for each record."""


def read_varint(data: Bytes, at: int, end: int, longest: int) -> tuple[int, int]:
    """Read a signed varint: base 128, least significant first, zigzag (``ByteUtils``).

    Returns the value and the place after it; 0 and a place beyond ``end`` where it does not end
    before that or within ``longest`` bytes, and where it would begin there.
    """
    sign = value = 0
    for group in range(longest):
        if at >= end:
            break
        byte = data[at]
        at += 1
        if group == 0:
            sign, value = byte & 1, (byte & 0x7F) >> 1
        else:
            value |= (byte & 0x7F) << (7 * group - 1)
        if byte < 0x80:
            return (value & _INT64_MAX) ^ -sign, at
    return 0, end + 1


def pass_headers(data: Bytes, at: int, end: int) -> int:
    """Return where the headers of a record end, a place beyond ``end`` where they do not fit."""
    count, at = read_varint(data, at, end, VARINT)
    if count < 0:
        return end + 1
    for part in range(2 * count):
        length, at = read_varint(data, at, end, VARINT)
        # A header's key is never null, its value may be.
        if length < -(part & 1):
            return end + 1
        at += max(length, 0)
        if at > end:
            break
    return at


@compiled(f"int64({BYTES}, int64[:, ::1], int64[:, ::1], int8[::1])", read_varint, pass_headers)
def walk_records(
    data: Bytes,
    batches: NDArray[np.int64],
    records: NDArray[np.int64],
    outcome: NDArray[np.int8],
) -> int:
    """Find the fields of every record of every batch that is sound from end to end.

    Args:
        data: The buffer.
        batches: Of each batch: where its records begin in the buffer, where they end, how many it
            claims, its first offset, its last.
        records: Filled: `COLUMNS` rows, with room for as many records as are claimed and could fit.
            Timestamps are relative to the batch's; a null key or value has length -1, place 0.
        outcome: Filled: how the walk over each batch ended.

    Returns:
        The number of records found.
    """
    found = 0
    for batch in range(outcome.size):
        first = found
        place, limit = int(batches[START, batch]), int(batches[END, batch])
        base_offset, count = int(batches[BASE_OFFSET, batch]), int(batches[COUNT, batch])
        before = -1
        why = SOUND
        if count < 0 or count > (limit - place) // MIN_RECORD:
            outcome[batch] = BAD_COUNT
            continue
        for _ in range(count):
            length, body = read_varint(data, place, limit, VARINT)
            stop = body + length
            if length < MIN_RECORD - 1 or stop > limit:
                why = BAD_COUNT if place >= limit else BAD_RECORD
                break
            # Behind the length one byte of attributes, of which none is in use.
            timestamp, at = read_varint(data, body + 1, stop, VARLONG)
            delta, at = read_varint(data, at, stop, VARINT)
            key_length, key = read_varint(data, at, stop, VARINT)
            value_length, value = read_varint(data, key + max(key_length, 0), stop, VARINT)
            at = pass_headers(data, value + max(value_length, 0), stop)
            # Two records of one offset, or out of order, would be taken for a compacted log's.
            offset = base_offset + delta
            sound = at == stop and key_length >= -1 and value_length >= -1
            sound = sound and before < delta and base_offset <= offset
            if not sound or offset > batches[LAST_OFFSET, batch]:
                why = BAD_RECORD
                break
            records[BATCH, found] = batch
            records[OFFSET, found] = offset
            records[TIMESTAMP, found] = timestamp
            records[RECORD_BYTES, found] = stop - place
            records[KEY, found] = 0 if key_length < 0 else key
            records[KEY_LENGTH, found] = key_length
            records[VALUE, found] = 0 if value_length < 0 else value
            records[VALUE_LENGTH, found] = value_length
            before, place = delta, stop
            found += 1
        if why == SOUND and place != limit:
            why = BAD_COUNT
        if why != SOUND:
            found = first
        outcome[batch] = why
    return found
