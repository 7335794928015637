"""Snapshots and updates of share partitions to the state they add up to.

The rules are those of ``ShareCoordinatorShard``. A snapshot replaces everything; an update moves
the start offset, the leader epoch and the delivery-complete count and brings ranges, which the
combiner merges after it has cut away what lies below the start offset then in force. So a range
survives down to the greatest start offset in force at or after its record, and all ranges of a
state are merged in one sweep. An update is applied whatever snapshot epoch it names, as brokers do;
one without anything before it is the state itself.

What the state of a share partition is made from, and what it is made into, as Arrow columns.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from analytics.contracts import arrow_rows, polars_rows
from analytics.time_columns import TIMESTAMP, times_of

if TYPE_CHECKING:
    from analytics.replay.log.log_times import Decoded


SNAPSHOT, TOMBSTONE, UPDATE = 0, 1, 2
UNCHANGED = -1  # of a start offset or a leader epoch in an update
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = range(5)

BATCHES = pa.list_(
    pa.struct(
        [
            ("first_offset", pa.int64()),
            ("last_offset", pa.int64()),
            ("delivery_state", pa.int8()),
            ("delivery_count", pa.int16()),
        ]
    )
)
_KEY_COLUMNS = [
    ("coordinator_partition", pa.int32()),
    ("group_id", pa.string()),
    ("topic_id", pa.string()),
    ("partition", pa.int32()),
]
KEY = tuple(name for name, _ in _KEY_COLUMNS)
RECORDS = pa.schema(
    [
        *_KEY_COLUMNS,
        ("record_offset", pa.int64()),
        ("kind", pa.int8()),
        ("is_early_layout", pa.bool_()),
        ("snapshot_epoch", pa.int32()),
        ("state_epoch", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("start_offset", pa.int64()),
        ("delivery_complete_count", pa.int32()),
        ("create_timestamp", pa.int64()),
        ("write_timestamp", pa.int64()),
        ("state_batches", BATCHES),
    ]
)
STATES = pa.schema(
    [
        *_KEY_COLUMNS,
        ("record_offset", pa.int64()),
        ("base_offset", pa.int64()),
        ("has_snapshot", pa.bool_()),
        ("is_early_layout", pa.bool_()),
        ("state_epoch", pa.int32()),
        ("snapshot_epoch", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("start_offset", pa.int64()),
        ("delivery_complete_count", pa.int32()),
        ("available_count", pa.int64()),
        ("acknowledged_count", pa.int64()),
        ("archiving_count", pa.int64()),
        ("archived_count", pa.int64()),
        ("max_delivery_count", pa.int32()),
        ("updates_since_snapshot", pa.int32()),
        ("epoch_mismatches", pa.int32()),
        ("create_timestamp", TIMESTAMP),
        ("write_timestamp", TIMESTAMP),
        ("fault", pa.string()),
        ("batches", BATCHES),
    ]
)


# The combiner of share state over whole columns (Kafka's ``PersisterStateBatchCombiner``).
#
# For every offset the range with the greatest delivery count wins, among equals the one with the
# greatest delivery state; which came first does not matter. That is a semilattice: however many
# ranges a key collected, they are merged at once. All boundaries of all keys are sorted once,
# which cuts the offsets into elementary pieces; each range then paints the pieces it covers with
# its rank, and the greatest rank stays.

_INT64 = np.iinfo(np.int64)
_UNPAINTED = np.int32(np.iinfo(np.int32).min)
# Offsets without a bound: below this nothing is clipped.
UNBOUNDED = _INT64.min


@dataclass(frozen=True)
class Ranges:
    """Ranges of offsets in a delivery state; ``last`` is included.

    ``key`` is a dense number of the share-partition, ``state`` int8 and ``count`` int16 as stored.
    """

    key: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    state: NDArray[np.int8]
    count: NDArray[np.int16]

    @property
    def sizes(self) -> NDArray[np.uint64]:
        """How many offsets each has: 2^63 of them are more than a number with a sign holds."""
        return (self.last - self.first).astype(np.uint64) + np.uint64(1)

    def counted(self, place: NDArray[np.int64], places: int) -> NDArray[np.int64]:
        """Return how many offsets lie in each place; more than an int64 holds is the largest.

        Args:
            place: Of each range; those of one place do not overlap.
            places: How many there are.
        """
        counts = np.zeros(places, np.uint64)
        np.add.at(counts, place, self.sizes)
        return np.minimum(counts, np.uint64(_INT64.max)).astype(np.int64)

    def where(self, chosen: NDArray[np.bool_]) -> Ranges:
        """Some of the ranges."""
        if chosen.all():
            return self
        return Ranges(*(getattr(self, each.name)[chosen] for each in fields(self)))


@dataclass(frozen=True)
class RankedRanges:
    """Ranges of offsets by key, ascending and not overlapping; ``last`` is included."""

    key: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    rank: NDArray[np.int32]


def merged(ranges: Ranges) -> Ranges:
    """Merge the ranges of each key: ascending, not overlapping, neighbours that differ.

    A range that ends before it begins covers no offset and is gone.
    """
    rank = ranges.count.astype(np.int32) << 8 | (ranges.state.astype(np.int32) + 128)
    found = greatest(ranges.key, ranges.first, ranges.last, rank)
    return Ranges(
        key=found.key,
        first=found.first,
        last=found.last,
        state=((found.rank & 0xFF) - 128).astype(np.int8),
        count=(found.rank >> 8).astype(np.int16),
    )


def greatest(
    key: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    rank: NDArray[np.int32],
) -> RankedRanges:
    """Return for every offset of each key the greatest rank of the ranges that cover it.

    Args:
        key: A dense number for each range.
        first: Its first offset.
        last: Its last offset, included; a range that ends before it begins covers nothing.
        rank: What is compared; the least number of 32 bits is not one.
    """
    covers = last >= first
    if not covers.all():
        key, first, last, rank = key[covers], first[covers], last[covers], rank[covers]
    if not key.size:
        return RankedRanges(key, first, last, rank)
    # Piece i of a key is what lies after boundary i up to and with boundary i + 1: a range from
    # first to last covers what lies after first - 1, and no sum leaves the 64 bits.
    before = np.maximum(first, _INT64.min + 1) - 1
    key, bound, index = _boundaries(np.concatenate([key, key]), np.concatenate([before, last]))
    start, end = np.split(index, 2)
    return _runs(key, bound, _painted(start, end, rank, bound.size))


def _boundaries(
    key: NDArray[np.int64], bound: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct boundaries by key and offset, and for each given one its place among them."""
    order = np.lexsort((bound, key))
    key, bound = key[order], bound[order]
    new = np.ones(order.size, np.bool_)
    new[1:] = (key[1:] != key[:-1]) | (bound[1:] != bound[:-1])
    index = np.empty(order.size, np.int64)
    index[order] = np.cumsum(new) - 1
    return key[new], bound[new], index


def _painted(
    start: NDArray[np.int64], end: NDArray[np.int64], rank: NDArray[np.int32], pieces: int
) -> NDArray[np.int32]:
    """Return the greatest rank over each piece; a range covers the pieces ``start <= i < end``.

    A range of n pieces is covered by two stretches of 2**k <= n pieces, one from its start and one
    up to its end. Stretches are painted from the longest down, each handing on what it has to its
    two halves: the work grows with the number of ranges and of pieces, not with their overlap.
    """
    level = np.frexp((end - start).astype(np.float64))[1] - 1
    greatest = np.full(pieces, _UNPAINTED, np.int32)
    for step in range(int(level.max()), -1, -1):
        here = np.flatnonzero(level == step)
        length = 1 << step
        np.maximum.at(greatest, start[here], rank[here])
        np.maximum.at(greatest, end[here] - length, rank[here])
        if step:
            half = length >> 1
            upper = greatest[:-half].copy()
            np.maximum(greatest[half:], upper, out=greatest[half:])
    return greatest


def _runs(
    key: NDArray[np.int64], bound: NDArray[np.int64], rank: NDArray[np.int32]
) -> RankedRanges:
    """Join pieces that follow each other with one rank.

    Behind the last boundary of a key lies a piece that nothing covers: no run crosses to the next.
    """
    painted = rank != _UNPAINTED
    differs = rank[1:] != rank[:-1]
    begins, ends = painted.copy(), painted.copy()
    begins[1:] &= differs
    ends[:-1] &= differs
    first, last = np.flatnonzero(begins), np.flatnonzero(ends)
    return RankedRanges(key[first], bound[first] + 1, bound[last + 1], rank[first])


_KNOWN_STATES = 5
_LARGEST = np.iinfo(np.int64).max
_NO_FAULT, _INVERTED, _UNKNOWN_STATE, _BELOW_START = range(4)
_FAULTS = np.array([None, "inverted_range", "unknown_delivery_state", "range_below_start"], object)
_EARLY_LAYOUT: Final = "4.0"
"""Snapshots without times, epochs of 16 bits."""
_RECORDS: Final = polars_rows(RECORDS.empty_table()).schema


@dataclass(frozen=True)
class _Living:
    """The records that make the states, by key and offset; ``head`` and ``tail`` index them.

    ``row`` is the index in the table of records; ``key`` is dense, ``head[key]`` its first record
    (the snapshot, if there is one) and ``tail[key]`` its last.
    """

    row: NDArray[np.int64]
    key: NDArray[np.int64]
    head: NDArray[np.int64]
    tail: NDArray[np.int64]


def share_states(decoded: Decoded, epoch_without_snapshot: int = 0) -> pl.DataFrame:
    """Replay ``share_snapshot`` and ``share_update``, already cut; the columns are `STATES`.

    Args:
        decoded: Those two of whole share partitions, in any order.
        epoch_without_snapshot: The state epoch where there are only updates, which name none.
    """
    is_gone = pl.col("is_tombstone")
    snapshots = decoded["share_snapshot"]
    # Brokers never write an update without a value, and could not replay one.
    updates = decoded["share_update"].filter(~is_gone)
    kind = pl.when(is_gone).then(TOMBSTONE).otherwise(SNAPSHOT)
    records = [_records(snapshots, kind), _records(updates, pl.lit(UPDATE))]
    states = polars_rows(fold(pa.concat_tables(arrow_rows(each) for each in records)))
    epoch = pl.when("has_snapshot").then("state_epoch").otherwise(epoch_without_snapshot)
    return states.with_columns(epoch.cast(pl.Int32).alias("state_epoch"))


def fold(records: pa.Table) -> pa.Table:
    """Fold records of any number of share partitions, in any order, to one row per live one.

    The columns of ``records`` are `RECORDS`, those of the result `STATES`; ``batches`` are
    ascending and joined. ``fault`` says why a leader would refuse to load the state.
    """
    records = records.combine_chunks()
    kind = _numbers(records, "kind")
    living = _living(_dense_keys(records), _numbers(records, "record_offset"), kind)
    start = _carried(_numbers(records, "start_offset")[living.row], living)
    ranges, inverted = _clipped(records, living, _clip(start, living))
    ranges = merged(ranges)
    return _states(records, kind, living, start, ranges, inverted)


def _numbers(records: pa.Table, name: str, null: int = -1) -> NDArray[np.int64]:
    column = records.column(name)
    if column.null_count:
        column = pc.fill_null(column, null)
    numbers: NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return numbers


def _dense_keys(records: pa.Table) -> NDArray[np.int64]:
    """Return a number for each distinct key, below the number of records."""
    dense = np.zeros(records.num_rows, np.int64)
    for name in KEY:
        encoded = pc.dictionary_encode(_one(records.column(name)), null_encoding="encode")
        codes = encoded.indices.to_numpy().astype(np.int64)
        both = pc.dictionary_encode(pa.array(dense * len(encoded.dictionary) + codes))
        dense = both.indices.to_numpy().astype(np.int64)
    return dense


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _living(key: NDArray[np.int64], offset: NDArray[np.int64], kind: NDArray[np.int64]) -> _Living:
    """Keep what comes after the last tombstone, from the last snapshot on."""
    order = np.lexsort((offset, key))
    key, kind = key[order], kind[order]
    place = np.arange(order.size)
    group, first = _groups(key)
    if not order.size:
        return _Living(order, group, first, first)
    base = np.maximum.reduceat(np.where(kind == UPDATE, -1, place), first)
    chosen = (place >= base[group]) & (kind != TOMBSTONE)
    row = order[chosen]
    group, first = _groups(key[chosen])
    return _Living(row, group, first, np.append(first[1:], row.size)[: first.size] - 1)


def _groups(key: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the runs of equal keys; also where each begins."""
    new = np.ones(key.size, np.bool_)
    new[1:] = key[1:] != key[:-1]
    return np.cumsum(new) - 1, np.flatnonzero(new)


def _carried(values: NDArray[np.int64], living: _Living) -> NDArray[np.int64]:
    """Return what is in force after each record: its own value, or the one before if unchanged."""
    set_at = np.where(values != UNCHANGED, np.arange(values.size), -1)
    set_at[living.head] = living.head
    in_force: NDArray[np.int64] = values[np.maximum.accumulate(set_at)]
    return in_force


def _clip(start: NDArray[np.int64], living: _Living) -> NDArray[np.int64]:
    """Return the greatest start offset that an update at or after each record cut with.

    A snapshot is taken as it is: its own start offset cuts nothing. A start offset may go back
    (before 4.4), so the last one need not be the greatest.
    """
    cut = np.where(start == UNCHANGED, UNBOUNDED, start)
    cut[living.head] = UNBOUNDED
    values, rank = np.unique(cut, return_inverse=True)
    # Ranks of later keys are lower as a whole, so that running backwards none of them is seen.
    keys_behind = living.head.size - 1 - living.key
    running = np.maximum.accumulate((keys_behind * values.size + rank)[::-1])[::-1]
    greatest: NDArray[np.int64] = values[running - keys_behind * values.size]
    return greatest


def _clipped(
    records: pa.Table, living: _Living, clip: NDArray[np.int64]
) -> tuple[Ranges, NDArray[np.bool_]]:
    """Return the ranges of all records above their clip, and which keys keep an inverted one."""
    lists = records.column("state_batches").combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    row = np.repeat(np.arange(records.num_rows), lengths)
    key_of, clip_of = np.full(records.num_rows, -1), np.full(records.num_rows, _LARGEST)
    key_of[living.row], clip_of[living.row] = living.key, clip
    first, last, state, count = (
        each.to_numpy(zero_copy_only=False) for each in lists.flatten().flatten()
    )
    key = key_of[row]
    kept = (key >= 0) & (last >= clip_of[row])
    inverted = np.zeros(living.head.size, np.bool_)
    inverted[key[kept & (last < first)]] = True
    ranges = Ranges(key, np.maximum(first, clip_of[row]), last, state, count)
    return ranges.where(kept), inverted


def _states(
    records: pa.Table,
    kind: NDArray[np.int64],
    living: _Living,
    start: NDArray[np.int64],
    ranges: Ranges,
    inverted: NDArray[np.bool_],
) -> pa.Table:
    head, tail = living.row[living.head], living.row[living.tail]
    has_snapshot = kind[head] == SNAPSHOT
    epoch = _numbers(records, "snapshot_epoch")[living.row]
    mismatch = np.add.accumulate(epoch != epoch[living.head][living.key], dtype=np.int64)
    mismatches = mismatch[living.tail] - mismatch[living.head]
    updates = living.tail - living.head + 1 - has_snapshot
    leader = _carried(_numbers(records, "leader_epoch")[living.row], living)
    complete_count = _numbers(records, "delivery_complete_count")[tail]
    counts = _counts(ranges, head.size)
    start = start[living.tail]
    columns = {name: records.column(name).take(pa.array(head)).combine_chunks() for name in KEY}
    columns |= {
        "record_offset": _numbers(records, "record_offset")[tail],
        "base_offset": _numbers(records, "record_offset")[head],
        "has_snapshot": has_snapshot,
        "is_early_layout": records.column("is_early_layout").take(pa.array(head)),
        "state_epoch": np.where(has_snapshot, _numbers(records, "state_epoch")[head], 0),
        "snapshot_epoch": epoch[living.head],
        "leader_epoch": leader[living.tail],
        "start_offset": _or_null(start),
        "delivery_complete_count": _or_null(complete_count),
        "available_count": counts[:, AVAILABLE],
        "acknowledged_count": counts[:, ACKNOWLEDGED],
        "archiving_count": counts[:, ARCHIVING],
        "archived_count": counts[:, ARCHIVED],
        "max_delivery_count": _max_delivery_count(ranges, head.size),
        "updates_since_snapshot": updates,
        "epoch_mismatches": mismatches,
        "create_timestamp": _times(records, "create_timestamp", head, has_snapshot),
        "write_timestamp": _times(records, "write_timestamp", head, has_snapshot),
        "fault": pa.array(_FAULTS[_faults(ranges, start, inverted)], pa.string()),
        "batches": _lists(ranges, head.size),
    }
    return pa.Table.from_pydict(columns, schema=STATES)


def _or_null(values: NDArray[np.int64]) -> pa.Array:
    """Absent, which Kafka writes as -1, to null."""
    return pa.array(values, mask=values == -1)


def _counts(ranges: Ranges, keys: int) -> NDArray[np.int64]:
    """Offsets by key and delivery state; more than an int64 holds is the largest."""
    known = ranges.where((ranges.state >= 0) & (ranges.state < _KNOWN_STATES))
    place = known.key * _KNOWN_STATES + known.state
    return known.counted(place, keys * _KNOWN_STATES).reshape(keys, _KNOWN_STATES)


def _max_delivery_count(ranges: Ranges, keys: int) -> pa.Array:
    greatest = np.full(keys, -(1 << 31), np.int32)
    np.maximum.at(greatest, ranges.key, ranges.count.astype(np.int32))
    return pa.array(greatest, mask=greatest == -(1 << 31))


def _times(
    records: pa.Table, name: str, head: NDArray[np.int64], has_snapshot: NDArray[np.bool_]
) -> pa.Array:
    """Milliseconds of the snapshots; null where there is none or its layout has no times."""
    return times_of(np.where(has_snapshot, _numbers(records, name)[head], -1))


def _faults(
    ranges: Ranges, start: NDArray[np.int64], inverted: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """What ``SharePartition`` refuses on load, by key."""
    fault = np.where(inverted, _INVERTED, _NO_FAULT)
    fault[ranges.key[(ranges.state < 0) | (ranges.state >= _KNOWN_STATES)]] = _UNKNOWN_STATE
    fault[ranges.key[ranges.first < start[ranges.key]]] = _BELOW_START
    return fault


def _lists(ranges: Ranges, keys: int) -> pa.Array:
    offsets = np.zeros(keys + 1, np.int32)
    np.cumsum(np.bincount(ranges.key, minlength=keys), out=offsets[1:])
    values = [pa.array(each) for each in (ranges.first, ranges.last, ranges.state, ranges.count)]
    structs = pa.StructArray.from_arrays(values, fields=list(BATCHES.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets), structs, type=BATCHES)


def _records(frame: pl.DataFrame, kind: pl.Expr) -> pl.DataFrame:
    """Return rows of a decoded table under the names of `RECORDS`."""
    key, value = pl.col("key").struct, pl.col("value").struct
    held = frame["value"].struct.fields
    named = {name: value.field(name) for name in held} | {
        "coordinator_partition": pl.col("partition"),
        "group_id": key.field("group_id"),
        "topic_id": key.field("topic_id"),
        "partition": key.field("partition"),
        "record_offset": pl.col("offset"),
        "kind": kind,
        "is_early_layout": pl.col("value_layout").eq_missing(_EARLY_LAYOUT),
    }
    return frame.select(
        named.get(name, pl.lit(None)).cast(type_).alias(name) for name, type_ in _RECORDS.items()
    )
