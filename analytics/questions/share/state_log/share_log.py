"""The log of share state as columns: every snapshot, update and tombstone, by share partition.

A share partition's history falls into *runs*. Within one its start offset only moves forward, and
what is finally dealt with stays so: a run ends where the state is deleted, where it is initialised
anew (``ShareCoordinatorShard.initializeState``: another state epoch, or no leader and no ranges),
and where a start offset goes back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.replay.share.share_ranges import Ranges, merged
from analytics.replay.share.share_records import SNAPSHOT, TOMBSTONE, UNCHANGED, UPDATE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

KEY: Final = ("group_id", "topic_id", "partition")
COLUMNS: Final = ("partition", "offset", "timestamp", "is_tombstone", "key", "value")
"""What is needed of the decoded tables ``share_snapshot`` and ``share_update``."""

_NUMBERS: Final = (
    *("snapshot_epoch", "state_epoch", "leader_epoch", "start_offset"),
    "delivery_complete_count",
)
_NONE: Final = -1
NO_TIME: Final = np.iinfo(np.int64).min


@dataclass(frozen=True)
class ShareLog:
    """Records in order of share partition and offset; all columns but `shares` are int64.

    Attributes:
        shares: `group_id`, `topic_id`, `partition`, `coordinator_partition`: one row for each.
        share: Of each record, the row in `shares`.
        offset: Its offset in the internal partition.
        at: When it was written, in epoch milliseconds; `NO_TIME` where it has no time.
        kind: SNAPSHOT, TOMBSTONE or UPDATE.
        snapshot_epoch: As stored; -1 of a tombstone, as all that follow.
        state_epoch: As stored; -1 of an update.
        leader_epoch: As stored; -1 is unchanged.
        start_offset: As stored; -1 is unchanged in an update, and not known yet in a snapshot.
        delivery_complete_count: As stored; -1 is not counted.
        start: The start offset in force after the record.
        run: Of each record, the number of its run.
        ranges: Of all records, by record: ascending and not overlapping; `key` is the record.
        stored: The same as stored, in the order they are stored.
    """

    shares: pa.Table
    share: Numbers
    offset: Numbers
    at: Numbers
    kind: Numbers
    snapshot_epoch: Numbers
    state_epoch: Numbers
    leader_epoch: Numbers
    start_offset: Numbers
    delivery_complete_count: Numbers
    start: Numbers
    run: Numbers
    ranges: Ranges
    stored: Ranges

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Whether a record is the first of its share partition."""
        return begins(self.share)


def begins(numbers: Numbers) -> NDArray[np.bool_]:
    """Return where another number begins than the one before."""
    new = np.ones(numbers.size, np.bool_)
    new[1:] = numbers[1:] != numbers[:-1]
    return new


def share_log(snapshots: pa.Table, updates: pa.Table) -> ShareLog:
    """Bring decoded records into order.

    Args:
        snapshots: `COLUMNS` of ``share_snapshot``, cut at the instant.
        updates: The same of ``share_update``; those without a value are none (no broker writes
            them).
    """
    records = _records(snapshots, updates)
    if records is None:
        return _empty()
    code, shares = _shares(records)
    order = np.lexsort((_numbers(records, "offset"), code))
    records = records.take(pa.array(order))
    share = code[order]
    told = {name: _numbers(records, name) for name in ("offset", "at", "kind", *_NUMBERS)}
    start = _in_force(told["start_offset"], told["kind"], begins(share))
    stored = _ranges(records["state_batches"].combine_chunks())
    run = _runs(share, told, start, stored)
    return ShareLog(
        shares=shares, share=share, start=start, run=run, ranges=_disjoint(stored), stored=stored,
        **told,
    )  # fmt: skip


def _records(snapshots: pa.Table, updates: pa.Table) -> pa.Table | None:
    """Return all records under the same columns; None where there are none."""
    updates = updates.filter(pc.invert(updates["is_tombstone"])) if updates.num_rows else updates
    parts = [
        _columns(table, is_update=is_update)
        for table, is_update in ((snapshots, False), (updates, True))
        if table.num_rows
    ]
    return pa.concat_tables(parts).combine_chunks() if parts else None


def _columns(table: pa.Table, *, is_update: bool) -> pa.Table:
    """Return a decoded table's columns side by side; numbers are int64, absent ones -1."""
    table = table.combine_chunks()
    key, value = (table[name].combine_chunks() for name in ("key", "value"))
    here = {field.name for field in value.type}
    columns = {
        "group_id": pc.struct_field(key, "group_id"),
        "topic_id": pc.struct_field(key, "topic_id"),
        "partition": _filled(pc.struct_field(key, "partition")),
        "coordinator_partition": _filled(table["partition"]),
        "offset": _filled(table["offset"]),
        "at": _milliseconds(table["timestamp"]),
        "kind": pa.repeat(UPDATE, table.num_rows).cast(pa.int64())
        if is_update
        else pc.if_else(table["is_tombstone"], TOMBSTONE, SNAPSHOT).cast(pa.int64()),
        **{
            name: _filled(pc.struct_field(value, name))
            if name in here
            else pa.array(np.full(table.num_rows, _NONE))
            for name in _NUMBERS
        },
        "state_batches": pc.struct_field(value, "state_batches"),
    }
    return pa.table(columns)


def _filled(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.fill_null(column.cast(pa.int64()), _NONE)


def _milliseconds(times: pa.ChunkedArray) -> pa.ChunkedArray:
    micros = times.cast(pa.int64())
    return pc.fill_null(pc.divide(micros, 1000), NO_TIME)


def _numbers(table: pa.Table, name: str) -> Numbers:
    numbers: Numbers = table[name].to_numpy().astype(np.int64, copy=False)
    return numbers


def _shares(records: pa.Table) -> tuple[Numbers, pa.Table]:
    """Number the share partitions; also return them, in the order of their numbers."""
    names = [*KEY, "coordinator_partition"]
    code = np.zeros(records.num_rows, np.int64)
    for name in names:
        encoded = records[name].combine_chunks().dictionary_encode()
        both = code * len(encoded.dictionary) + encoded.indices.to_numpy()
        code = np.unique(both, return_inverse=True)[1].astype(np.int64, copy=False)
    _, first = np.unique(code, return_index=True)
    return code, records.select(names).take(pa.array(first))


def _in_force(stored: Numbers, kind: Numbers, is_first: NDArray[np.bool_]) -> Numbers:
    """Return the start offset after each record: an update may leave it unchanged."""
    says = (stored != UNCHANGED) | (kind != UPDATE) | is_first
    told: Numbers = np.maximum.accumulate(np.where(says, np.arange(stored.size), 0))
    return stored[told]


def _ranges(lists: pa.Array) -> Ranges:
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    record = np.repeat(np.arange(len(lists)), lengths)
    first, last, state, count = (
        each.to_numpy(zero_copy_only=False) for each in lists.flatten().flatten()
    )
    return Ranges(record, first, last, state.astype(np.int8), count.astype(np.int16))


def _disjoint(stored: Ranges) -> Ranges:
    """Return ranges by record, ascending and not overlapping; coordinators write them so."""
    is_new = begins(stored.key)
    follows = np.ones(stored.key.size, np.bool_)
    follows[1:] = stored.first[1:] > stored.last[:-1]
    is_sound = (is_new | follows) & (stored.last >= stored.first)
    return stored if is_sound.all() else merged(stored)


def _runs(share: Numbers, told: dict[str, Numbers], start: Numbers, stored: Ranges) -> Numbers:
    """Number the runs."""
    kind, epoch = told["kind"], told["state_epoch"]
    places = np.arange(share.size)
    is_first = begins(share)
    # The snapshot before each record, as far as it is of the same share partition.
    is_snapshot = kind == SNAPSHOT
    before = np.concatenate([[-1], np.maximum.accumulate(np.where(is_snapshot, places, -1))[:-1]])
    known = (before >= 0) & (share[before] == share)
    renewed = is_snapshot & known & (epoch != epoch[before])
    lengths = np.bincount(stored.key, minlength=share.size)
    blank = is_snapshot & (told["leader_epoch"] == 0) & (lengths == 0)
    back = np.zeros(share.size, np.bool_)
    back[1:] = (start[1:] < start[:-1]) & (start[:-1] >= 0)
    gone = np.zeros(share.size, np.bool_)
    gone[1:] = kind[:-1] == TOMBSTONE
    led = np.zeros(share.size, np.bool_)
    led[1:] = told["leader_epoch"][:-1] > 0
    return np.cumsum(is_first | renewed | (blank & led) | back | gone) - 1


def _empty() -> ShareLog:
    none = np.zeros(0, np.int64)
    ranges = Ranges(none, none, none, none.astype(np.int8), none.astype(np.int16))
    names = pa.schema(
        [("group_id", pa.string()), ("topic_id", pa.string()), ("partition", pa.int64()),
         ("coordinator_partition", pa.int64())]
    )  # fmt: skip
    return ShareLog(
        names.empty_table(), none, none, none, none, none, none, none, none, none, none, none,
        ranges, ranges,
    )  # fmt: skip
