"""Decoded records, table by table, into what is known of each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.usage.cleaning.transaction_ends import ABORTED, OPEN, TransactionEnds
from analytics.questions.usage.keys.key_fold import (
    BATCH,
    BYTES,
    FLAGS,
    IS_ABORTED,
    IS_CLEANABLE,
    IS_COMPLETE,
    IS_OPEN,
    IS_TOMBSTONE,
    KEPT,
    METADATA,
    NO_VALUE,
    OFFSET,
    PLACE,
    REST,
    TIME,
    TOLD,
    VALUE,
    find_again,
    fold_records,
)
from schemas import record_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS: Final = (
    *("partition", "offset", "timestamp", "record_type", "is_tombstone"),
    *("is_transactional", "producer_id", "batch_offset", "record_bytes"),
)
"""The columns of every decoded table that are read."""
KEY: Final = "key"
VALUE_FIELDS: Final = "value"
COMMITS: Final = "offset_commit"
COMMIT_COLUMNS: Final = ("value.offset", "value.metadata")
"""Those of commits, besides."""

_GROUP_BITS: Final = 32
_PLACE_BITS: Final = 20
_GROUP_FIELDS: Final = ("group", "group_id", "transactional_id")
_FIELDS_A_RECORD: Final = 9
_LEAST_SLOTS: Final = 1 << 10
_NO_BATCH: Final = -1
_NOWHERE: Final = (1 << 63) - 1


class Place(NamedTuple):
    """A partition of an internal topic."""

    topic: str
    partition: int


class Kind(NamedTuple):
    """A record type: two numbers of one table are two kinds of key."""

    topic: str
    table: str
    number: int


@dataclass
class Codes:
    """Numbers for names, in the order in which they were met."""

    numbers: dict[object, int] = field(default_factory=dict)
    _names: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))

    def of(self, name: object) -> int:
        """Return the number of a name."""
        return self.numbers.setdefault(name, len(self.numbers))

    def of_column(self, column: pa.Array) -> NDArray[np.int64]:
        """Return the number of each text; Python looks only at those that are new."""
        if not pa.types.is_dictionary(column.type):
            column = pc.dictionary_encode(column)
        texts = column.dictionary
        if not len(texts):
            return np.zeros(len(column), np.int64)
        places = pc.index_in(texts, value_set=self._names)
        if places.null_count:
            for name in texts.filter(pc.is_null(places)).to_pylist():
                self.of(name)
            self._names = pa.array(list(self.numbers), pa.string())
            places = pc.index_in(texts, value_set=self._names)
        codes = places.to_numpy().astype(np.int64)
        found: NDArray[np.int64] = codes[column.indices.to_numpy(zero_copy_only=False)]
        return found

    @property
    def names(self) -> list[object]:
        """The names, by their numbers."""
        return list(self.numbers)


@dataclass
class KeyStates:
    """What every key adds up to, record after record.

    Attributes:
        bounds: By partition the offset from which on the cleaner may not go; absent: nowhere.
        ends: How transactions ended.
        complete_from: By partition the offset from which on every record is there; absent: none.
        lacks_bytes: Some records are archived rows, which do not say how many bytes they took.
        kinds: Record types.
        places: Partitions.
        groups: Groups, and transactional ids.
        without_keys: Numbers of the kinds whose records have no key.
    """

    bounds: Mapping[Place, int]
    ends: TransactionEnds
    complete_from: Mapping[Place, int] = field(default_factory=dict)
    lacks_bytes: bool = False
    kinds: Codes = field(default_factory=Codes)
    places: Codes = field(default_factory=Codes)
    groups: Codes = field(default_factory=Codes)
    without_keys: set[int] = field(default_factory=set)
    _names: Codes = field(default_factory=Codes)
    _known: int = 0
    _kept: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _slots: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_LEAST_SLOTS, np.int64))

    @property
    def rows(self) -> NDArray[np.int64]:
        """What is kept: a row a key, `KEPT` columns."""
        return self._kept[: self._known * KEPT].reshape(-1, KEPT)

    def add(self, topic: str, table: str, records: pa.RecordBatch) -> None:
        """Take records of a decoded table: `COLUMNS`, `key`, and of commits `COMMIT_COLUMNS`.

        Raises:
            KeyError: A column is not there.
        """
        _check_columns(topic, table, records)
        if not records.num_rows:
            return
        told = np.empty((records.num_rows, TOLD), np.int64)
        told[:, PLACE] = self._places_of(topic, table, records)
        told[:, REST] = self._rest_of(records)
        told[:, OFFSET] = records["offset"].to_numpy()
        self.lacks_bytes |= records["record_bytes"].null_count > 0
        told[:, BYTES] = _numbers(records["record_bytes"], 0)
        told[:, TIME] = _milliseconds(records["timestamp"])
        told[:, BATCH] = _numbers(records["batch_offset"], _NO_BATCH)
        told[:, FLAGS] = self._flags_of(topic, records)
        told[:, VALUE], told[:, METADATA] = _committed(table, records)
        self._make_room(len(told))
        self._known = fold_records(
            told.size * _FIELDS_A_RECORD // TOLD,
            told.reshape(-1),
            self._kept,
            self._slots,
            self._known,
        )

    def kind_of(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the kind that `PLACE` names."""
        return place >> (_GROUP_BITS + _PLACE_BITS)

    def partition_of(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the partition that `PLACE` names."""
        return (place >> _GROUP_BITS) & ((1 << _PLACE_BITS) - 1)

    def group_of(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the group that `PLACE` names."""
        return place & ((1 << _GROUP_BITS) - 1)

    def _places_of(self, topic: str, table: str, records: pa.RecordBatch) -> NDArray[np.int64]:
        kind = _each(
            records["record_type"].to_numpy(),
            lambda number: self.kinds.of(Kind(topic, table, number)),
        )
        partition = _each(
            records["partition"].to_numpy(),
            lambda number: self.places.of(Place(topic, number)),
        )
        place = (kind << (_GROUP_BITS + _PLACE_BITS)) | (partition << _GROUP_BITS)
        name = next((name for name in _GROUP_FIELDS if name in _fields(records)), None)
        if not _fields(records):
            self.without_keys.update(np.unique(kind).tolist())
        if name is None:
            return place | self.groups.of(None)
        return place | self.groups.of_column(pc.struct_field(records[KEY], name))

    def _rest_of(self, records: pa.RecordBatch) -> NDArray[np.int64]:
        """Return what of the key is neither type nor group: at most a name and a number."""
        rest = np.zeros(records.num_rows, np.int64)
        taken = set()
        for name in _fields(records):
            if name in _GROUP_FIELDS:
                continue
            column = pc.struct_field(records[KEY], name)
            is_number = pa.types.is_integer(column.type)
            if is_number in taken:
                raise KeyError(f"{name}: a key has one name and one number beside its group")
            taken.add(is_number)
            if is_number:
                rest |= column.to_numpy().astype(np.int64) & 0xFFFFFFFF
            else:
                rest |= self._names.of_column(column) << 32
        return rest

    def _flags_of(self, topic: str, records: pa.RecordBatch) -> NDArray[np.int64]:
        partition, offset = records["partition"].to_numpy(), records["offset"].to_numpy()
        flags = records["is_tombstone"].to_numpy(zero_copy_only=False) * IS_TOMBSTONE
        bound = _each(partition, lambda number: self.bounds.get(Place(topic, number), 0))
        flags = flags | (offset < bound) * IS_CLEANABLE
        whole = _each(partition, lambda n: self.complete_from.get(Place(topic, n), _NOWHERE))
        flags |= (offset >= whole) * IS_COMPLETE
        in_transactions = np.flatnonzero(
            pc.fill_null(records["is_transactional"], fill_value=False).to_numpy(
                zero_copy_only=False
            )
        )
        if in_transactions.size:
            producer = _numbers(records["producer_id"], -1)
            state = self.ends.outcome(
                topic,
                partition[in_transactions],
                producer[in_transactions],
                offset[in_transactions],
            )
            flags[in_transactions] |= (state == ABORTED) * IS_ABORTED + (state == OPEN) * IS_OPEN
        found: NDArray[np.int64] = flags
        return found

    def _make_room(self, more: int) -> None:
        needed = (self._known + more) * KEPT
        if needed > self._kept.size:
            # Memory that is never touched is never there: room costs nothing, copying does.
            kept = np.empty(max(needed, 4 * self._known * KEPT), np.int64)
            kept[: self._known * KEPT] = self._kept[: self._known * KEPT]
            self._kept = kept
        size = self._slots.size
        while size < 2 * (self._known + more):
            size *= 4
        if size > self._slots.size:
            self._slots = np.zeros(size, np.int64)
            find_again(self._known, self._kept, self._slots, self._known)


def _fields(records: pa.RecordBatch) -> Sequence[str]:
    """Return the fields of the key: none where records of the table have no key."""
    return [each.name for each in _struct(records, KEY)]


def _each(values: NDArray[np.int64], number_of: object) -> NDArray[np.int64]:
    """Return a number for each value; each distinct one is asked for once."""
    assert callable(number_of)
    # Nearly always a batch has one: no need to sort it.
    if (values == values[0]).all():
        return np.full(values.size, number_of(int(values[0])), np.int64)
    distinct, inverse = np.unique(values, return_inverse=True)
    numbers = np.array([number_of(each) for each in distinct.tolist()], np.int64)
    found: NDArray[np.int64] = numbers[inverse]
    return found


def _numbers(column: pa.Array, otherwise: int) -> NDArray[np.int64]:
    if column.null_count:
        column = pc.fill_null(column, otherwise)
    found: NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return found


def _milliseconds(column: pa.Array) -> NDArray[np.int64]:
    micros = column.view(pa.int64())
    times = micros.fill_null(-1000) if micros.null_count else micros
    found: NDArray[np.int64] = times.to_numpy() // 1000
    return found


def _check_columns(topic: str, table: str, records: pa.RecordBatch) -> None:
    """Raise where a column is not there: what is not read would count as nothing."""
    expected = {*COLUMNS, *([KEY] if _has_key(topic, table) else [])}
    lacking = sorted(expected - set(records.schema.names))
    if table == COMMITS:
        wanted = {name.removeprefix(f"{VALUE_FIELDS}.") for name in COMMIT_COLUMNS}
        present = {each.name for each in _struct(records, VALUE_FIELDS)}
        lacking += sorted(f"{VALUE_FIELDS}.{name}" for name in wanted - present)
    if lacking:
        raise KeyError(f"{table} lacks {', '.join(lacking)}")


def _has_key(topic: str, table: str) -> bool:
    return any(each.table == table and each.key.fields for each in record_types(topic).values())


def _struct(records: pa.RecordBatch, name: str) -> Sequence[pa.Field]:
    return list(records.schema.field(name).type) if name in records.schema.names else []


def _committed(
    table: str, records: pa.RecordBatch
) -> tuple[NDArray[np.int64] | int, NDArray[np.int64] | int]:
    """Return the committed offset, and the bytes of the metadata."""
    if table != COMMITS:
        return NO_VALUE, 0
    value = records[VALUE_FIELDS]
    metadata = pc.struct_field(value, "metadata")
    if not pa.types.is_dictionary(metadata.type):
        metadata = pc.dictionary_encode(metadata)
    sizes = np.append(pc.binary_length(metadata.dictionary).to_numpy(), 0)
    number = _numbers(metadata.indices, -1)
    return _numbers(pc.struct_field(value, "offset"), NO_VALUE), sizes[number].astype(np.int64)
