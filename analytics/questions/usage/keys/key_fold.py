"""The loop over records that keeps, of every key, what it adds up to and which record is its last.

What survives compaction is the last record of each key. Records may come in any order: the one with
the highest offset is the last. Keys are found by open addressing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.wire.compiled import compiled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analytics.wire.compiled import Numbers as Given

    Numbers = NDArray[np.int64]

# fmt: off
(
    PLACE, REST, OFFSET, BYTES, FLAGS, TIME, VALUE, METADATA, BATCH,
) = range(9)
# fmt: on
"""What is told of each record: kind of record, partition and group as one number; the rest of its
key as one number; its offset; its bytes; `FLAGS`; its time in milliseconds, -1 none; the committed
offset; bytes of the commit's metadata; the offset of its batch."""
TOLD: Final = 9

IS_TOMBSTONE, IS_ABORTED, IS_OPEN, IS_CLEANABLE, IS_COMPLETE = 1, 2, 4, 8, 16
"""The record deletes its key; its transaction was aborted; or has not ended; it lies where the
cleaner may go; or where every record is still there."""

NO_VALUE: Final = -(1 << 62)
"""In place of a committed offset: the record commits none."""

# fmt: off
(
    KEY_PLACE, KEY_REST, RECORDS, ALL_BYTES, FIRST_TIME, LAST_TIME, MOST_BYTES, MOST_METADATA,
    LAST_OFFSET, LAST_BYTES, LAST_IS_TOMBSTONE, LAST_VALUE, UNCHANGED, UNCHANGED_BYTES,
    SEEN, SEEN_BYTES, SEEN_FROM,
    TOMBSTONES, TOMBSTONE_BYTES, ABORTED, ABORTED_BYTES, OPEN, OPEN_BYTES,
    CLEAN_OFFSET, CLEAN_BYTES, CLEAN_IS_TOMBSTONE, CLEAN_BATCH,
) = range(27)
# fmt: on
"""What is kept of each key. `SEEN*` is of values where every record is still there, `LAST_*` of its
last record that counts, `CLEAN_*` of the last of those where the cleaner may go; offsets and times
are -1 where there is none. What every record touches comes first: keys lie far apart in memory."""
KEPT: Final = 27


def _slot_of(place: int, rest: int, mask: int) -> int:
    # Products of 30 bits: no more than 64 are needed.
    mixed = ((place ^ (place >> 30)) & 0x3FFFFFFF) * 0x2545F491
    mixed += ((rest ^ (rest >> 30)) & 0x3FFFFFFF) * 0x1B873593
    return (mixed ^ (mixed >> 27)) & mask


def _put_last(at: int, records: Given, base: int, kept: Numbers) -> None:
    """Make a record the last of its key where it is."""
    flags, offset = records[at + FLAGS], records[at + OFFSET]
    is_tombstone = flags & IS_TOMBSTONE
    if offset > kept[base + LAST_OFFSET]:
        value = records[at + VALUE]
        if value != NO_VALUE and value == kept[base + LAST_VALUE]:
            kept[base + UNCHANGED] += 1
            kept[base + UNCHANGED_BYTES] += records[at + BYTES]
        kept[base + LAST_OFFSET] = offset
        kept[base + LAST_BYTES] = records[at + BYTES]
        kept[base + LAST_IS_TOMBSTONE] = is_tombstone
        kept[base + LAST_VALUE] = value
    if flags & IS_CLEANABLE and offset > kept[base + CLEAN_OFFSET]:
        kept[base + CLEAN_OFFSET] = offset
        kept[base + CLEAN_BYTES] = records[at + BYTES]
        kept[base + CLEAN_IS_TOMBSTONE] = is_tombstone
        kept[base + CLEAN_BATCH] = records[at + BATCH]


def _add(at: int, records: Given, base: int, kept: Numbers) -> None:
    """Add a record to its key."""
    flags, size, time = records[at + FLAGS], records[at + BYTES], records[at + TIME]
    kept[base + RECORDS] += 1
    kept[base + ALL_BYTES] += size
    kept[base + MOST_BYTES] = max(kept[base + MOST_BYTES], size)
    kept[base + MOST_METADATA] = max(kept[base + MOST_METADATA], records[at + METADATA])
    if time >= 0:
        if kept[base + FIRST_TIME] < 0 or time < kept[base + FIRST_TIME]:
            kept[base + FIRST_TIME] = time
        kept[base + LAST_TIME] = max(kept[base + LAST_TIME], time)
    if flags & IS_COMPLETE and not flags & IS_TOMBSTONE:
        kept[base + SEEN] += 1
        kept[base + SEEN_BYTES] += size
        if time >= 0 and (kept[base + SEEN_FROM] < 0 or time < kept[base + SEEN_FROM]):
            kept[base + SEEN_FROM] = time
    if flags & IS_ABORTED:
        kept[base + ABORTED] += 1
        kept[base + ABORTED_BYTES] += size
    elif flags & IS_OPEN:
        kept[base + OPEN] += 1
        kept[base + OPEN_BYTES] += size
    else:
        if flags & IS_TOMBSTONE:
            kept[base + TOMBSTONES] += 1
            kept[base + TOMBSTONE_BYTES] += size
        _put_last(at, records, base, kept)


_READ: Final = "Array(int64, 1, 'C', readonly=True)"


@compiled(f"int64({_READ}, int64[::1], int64[::1], int64)", _slot_of, _put_last, _add)
def fold_records(records: Given, kept: Numbers, slots: Numbers, known: int) -> int:
    """Add records to their keys; return how many keys there are now.

    Args:
        records: `TOLD` numbers for each record.
        kept: `KEPT` numbers for each key; changed. There must be room for every record's own.
        slots: Where keys are found: 0, or the number of a key plus 1; changed. A power of two of
            them, more than there will be keys.
        known: How many keys there are.
    """
    mask = len(slots) - 1
    for record in range(len(records) // TOLD):
        at = record * TOLD
        place, rest = records[at + PLACE], records[at + REST]
        slot = _slot_of(place, rest, mask)
        while True:
            key = slots[slot] - 1
            if key < 0:
                key = known
                known += 1
                slots[slot] = known
                base = key * KEPT
                for each in range(KEPT):
                    kept[base + each] = 0
                kept[base + KEY_PLACE] = place
                kept[base + KEY_REST] = rest
                kept[base + SEEN_FROM] = -1
                kept[base + FIRST_TIME] = -1
                kept[base + LAST_TIME] = -1
                kept[base + LAST_OFFSET] = -1
                kept[base + CLEAN_OFFSET] = -1
                kept[base + LAST_VALUE] = NO_VALUE
                break
            if kept[key * KEPT + KEY_PLACE] == place and kept[key * KEPT + KEY_REST] == rest:
                break
            slot = (slot + 1) & mask
        _add(at, records, key * KEPT, kept)
    return known


@compiled(f"int64({_READ}, int64[::1], int64)", _slot_of)
def find_again(kept: Given, slots: Numbers, known: int) -> int:
    """Put keys into new slots, all 0 before; return how many."""
    mask = len(slots) - 1
    for key in range(known):
        slot = _slot_of(kept[key * KEPT + KEY_PLACE], kept[key * KEPT + KEY_REST], mask)
        while slots[slot] != 0:
            slot = (slot + 1) & mask
        slots[slot] = key + 1
    return known
