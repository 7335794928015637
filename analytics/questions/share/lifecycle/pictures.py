"""What share groups say of their partitions, record by record, as columns.

Each ``ShareGroupStatePartitionMetadata`` record is the whole picture of its group: which partitions
are about to get state, which have it, and which topics are about to lose it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

INITIALIZING, INITIALIZED, DELETING = "initializing", "initialized", "deleting"
WHOLE_TOPIC: Final = -1
NONE: Final = -1


@dataclass(frozen=True)
class Pictures:
    """Records in order of group and offset.

    Attributes:
        group: Of each record its group's number.
        partition: Its partition of `__consumer_offsets`.
        offset: Its offset there.
        at: When it was written, in epoch milliseconds; `NONE` where it has no time.
        is_tombstone: Whether it is one.
        group_ids: By number of a group.
        things: By number of a thing `topic_id`, `topic`, `partition` (`WHOLE_TOPIC` of a topic).
        named: By phase, which record (its place) names which thing, by numbers.
    """

    group: Numbers
    partition: Numbers
    offset: Numbers
    at: Numbers
    is_tombstone: NDArray[np.bool_]
    group_ids: pa.Array
    things: pa.Table
    named: dict[str, tuple[Numbers, Numbers]]

    def names(self, phase: str, record: Numbers, thing: Numbers) -> NDArray[np.bool_]:
        """Return whether records (places; `NONE` is none) name things in a phase."""
        count = self.things.num_rows
        known_record, known_thing = self.named[phase]
        found = np.isin(record * count + thing, known_record * count + known_thing)
        here: NDArray[np.bool_] = found & (record >= 0)
        return here

    def before(self) -> Numbers:
        """Return the place of the same group's record before each; `NONE` where it is first."""
        places = np.arange(self.group.size) - 1
        is_first = np.ones(self.group.size, np.bool_)
        is_first[1:] = self.group[1:] != self.group[:-1]
        return np.where(is_first, NONE, places)

    def after(self) -> Numbers:
        """Return the place of the record after each; `NONE` where it is the last of its group."""
        places = np.arange(self.group.size) + 1
        is_last = np.ones(self.group.size, np.bool_)
        is_last[:-1] = self.group[1:] != self.group[:-1]
        return np.where(is_last, NONE, places)


def pictures_of(records: pa.Table) -> Pictures:
    """Bring decoded records into order.

    Args:
        records: `phases.COLUMNS` of ``share_group_state_partition_metadata``, cut at the instant.
    """
    if not records.num_rows:
        # Where a workspace holds no decoded tables, columns have no types either.
        return _nothing()
    records = records.combine_chunks()
    ids = pc.struct_field(_flat(records["key"]), "group_id").dictionary_encode()
    group = ids.indices.to_numpy().astype(np.int64)
    order = np.lexsort((records["offset"].to_numpy(), group))
    records, group = records.take(pa.array(order)), group[order]
    value = _flat(records["value"])
    lists = {phase: _listed(value, phase) for phase in (INITIALIZING, INITIALIZED, DELETING)}
    every = pa.concat_tables([each for _, each in lists.values()])
    numbers, things = _numbered(every)
    bounds = np.cumsum([each.num_rows for _, each in lists.values()])
    parts = np.split(numbers, bounds[:-1])
    at = pc.fill_null(records["timestamp"].cast(pa.int64()), NONE).to_numpy()
    return Pictures(
        group=group,
        partition=records["partition"].to_numpy().astype(np.int64),
        offset=records["offset"].to_numpy().astype(np.int64),
        at=np.where(at == NONE, NONE, at // 1000),
        is_tombstone=records["is_tombstone"].to_numpy(),
        group_ids=ids.dictionary,
        things=things,
        named={
            phase: (record, number)
            for (phase, (record, _)), number in zip(lists.items(), parts, strict=True)
        },
    )


def _nothing() -> Pictures:
    none = np.zeros(0, np.int64)
    named = dict.fromkeys((INITIALIZING, INITIALIZED, DELETING), (none, none))
    ids = pa.array([], pa.string())
    gone = np.zeros(0, np.bool_)
    return Pictures(none, none, none, none, gone, ids, _THING.empty_table(), named)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


_THING: Final = pa.schema(
    [("topic_id", pa.string()), ("topic", pa.string()), ("partition", pa.int64())]
)


def _listed(value: pa.StructArray, phase: str) -> tuple[Numbers, pa.Table]:
    """Return which record names which thing in a phase; a layout may not have the phase."""
    if f"{phase}_topics" not in {field.name for field in value.type}:
        return np.zeros(0, np.int64), _THING.empty_table()
    topics = pc.struct_field(value, f"{phase}_topics")
    record = pc.list_parent_indices(topics).to_numpy().astype(np.int64)
    each = pc.list_flatten(topics)
    names = {name: pc.struct_field(each, name) for name in ("topic_id", "topic_name")}
    partition = pa.repeat(WHOLE_TOPIC, record.size)
    if phase != DELETING:
        lists = pc.struct_field(each, "partitions")
        of_topic = pc.list_parent_indices(lists)
        names = {name: column.take(of_topic) for name, column in names.items()}
        record, partition = record[of_topic.to_numpy()], pc.list_flatten(lists)
    columns = {
        "topic_id": names["topic_id"],
        "topic": names["topic_name"],
        "partition": partition,
    }
    return record, pa.table(columns).cast(_THING)


def _numbered(rows: pa.Table) -> tuple[Numbers, pa.Table]:
    """Number things by topic id and partition; also return them, by their number."""
    topic = rows["topic_id"].combine_chunks().dictionary_encode()
    number = topic.indices.to_numpy().astype(np.int64)
    pairs = np.stack([number, rows["partition"].to_numpy()])
    _, first, codes = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    return codes.reshape(-1).astype(np.int64), rows.take(pa.array(first))
