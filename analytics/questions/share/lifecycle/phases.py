"""Since when share partitions are being initialised, and topics being deleted, in their groups.

Each ``ShareGroupStatePartitionMetadata`` record is the whole picture of its group: something is in
a phase since the first of those records, up to the last, that all name it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.replay.log.log_clocks import doubtful_times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.replay.log.log_clocks import LogClock

    Numbers = NDArray[np.int64]

COLUMNS: Final = ("partition", "offset", "timestamp", "is_tombstone", "key", "value")
"""What is needed of the decoded table ``share_group_state_partition_metadata``."""

INITIALIZING: Final = "initializing"
DELETING: Final = "deleting"
PHASES: Final = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("phase", pa.string()),
        ("phase_since", pa.timestamp("us", "UTC")),
        ("is_exact", pa.bool_()),
        ("coordinator_partition", pa.int32()),
        ("record_offset", pa.int64()),
    ]
)
"""Of topics that are being deleted `partition` is null. `record_offset` is the first record of the
phase; `is_exact` is false where the log of the group begins with it."""


def phases(pictures: pa.Table) -> pa.Table:
    """Return what each group initialises and deletes at the instant: `PHASES`.

    Args:
        pictures: `COLUMNS`, cut at the instant.
    """
    if not pictures.num_rows:
        return PHASES.empty_table()
    order = [("partition", "ascending"), ("offset", "ascending")]
    pictures = pictures.sort_by(order).combine_chunks()
    groups = pc.struct_field(pictures["key"].combine_chunks(), "group_id")
    code = groups.dictionary_encode().indices.to_numpy().astype(np.int64)
    by_group = np.argsort(code, kind="stable")
    pictures, code = pictures.take(pa.array(by_group)), code[by_group]
    found = [_of_phase(pictures, code, phase) for phase in (INITIALIZING, DELETING)]
    return pa.concat_tables(found)


def parted_by_clock(found: pa.Table, clocks: Mapping[int, LogClock]) -> tuple[pa.Table, pa.Table]:
    """Return the phases whose times measure something, and those whose times do not.

    Args:
        found: Of `phases`.
        clocks: By partition of `__consumer_offsets`, where its clocks were set or wrong.
    """
    places = (found[name].to_numpy() for name in ("coordinator_partition", "record_offset"))
    is_set = pa.array(doubtful_times(clocks, *places))
    return found.filter(pc.invert(is_set)), found.filter(is_set)


def _of_phase(pictures: pa.Table, code: Numbers, phase: str) -> pa.Table:
    value = pictures["value"].combine_chunks()
    if f"{phase}_topics" not in {field.name for field in value.type}:
        return PHASES.empty_table()
    topics = pc.struct_field(value, f"{phase}_topics")
    record = pc.list_parent_indices(topics).to_numpy().astype(np.int64)
    each = pc.list_flatten(topics)
    partition = pa.nulls(record.size, pa.int32())
    names = {name: pc.struct_field(each, name) for name in ("topic_id", "topic_name")}
    if phase == INITIALIZING:
        lists = pc.struct_field(each, "partitions")
        of_topic = pc.list_parent_indices(lists)
        partition = pc.list_flatten(lists).cast(pa.int32())
        names = {name: column.take(of_topic) for name, column in names.items()}
        record = record[of_topic.to_numpy()]
    what = _codes(names["topic_id"], pc.fill_null(partition, -1))
    rows, begin = _still(code, record, what)
    first = pa.array(begin)
    groups = pc.struct_field(pictures["key"].combine_chunks(), "group_id")
    new = np.ones(code.size, np.bool_)
    new[1:] = code[1:] != code[:-1]
    columns = {
        "group_id": groups.take(first),
        "topic_id": names["topic_id"].take(pa.array(rows)),
        "topic": names["topic_name"].take(pa.array(rows)),
        "partition": partition.take(pa.array(rows)),
        "phase": pa.repeat(phase, rows.size),
        "phase_since": pictures["timestamp"].take(first),
        "is_exact": pa.array(~new[begin]),
        "coordinator_partition": pictures["partition"].take(first),
        "record_offset": pictures["offset"].take(first),
    }
    return pa.table(columns).cast(PHASES)


def _codes(*columns: pa.Array) -> Numbers:
    """Return a number for each distinct row."""
    found = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode()
        codes = encoded.indices.to_numpy().astype(np.int64)
        found = np.unique(found * len(encoded.dictionary) + codes, return_inverse=True)[1]
    return found


def _still(code: Numbers, record: Numbers, what: Numbers) -> tuple[Numbers, Numbers]:
    """Return of what the last record of each group names its row, and the first record since.

    Args:
        code: The group of each record; a group's records follow each other.
        record: Of each row, the record that names it.
        what: What it names.
    """
    order = np.lexsort((record, what, code[record]))
    group, thing, at = code[record][order], what[order], record[order]
    # A run: the same thing named by records that follow each other.
    new = np.ones(order.size, np.bool_)
    new[1:] = (group[1:] != group[:-1]) | (thing[1:] != thing[:-1]) | (at[1:] > at[:-1] + 1)
    begin = at[np.maximum.accumulate(np.where(new, np.arange(order.size), 0))]
    last = np.zeros(int(code.max()) + 1, np.int64)
    np.maximum.at(last, code, np.arange(code.size))
    still = np.flatnonzero(at == last[group])
    # A record may name a thing twice.
    is_other = np.ones(still.size, np.bool_)
    is_other[1:] = (thing[still][1:] != thing[still][:-1]) | (group[still][1:] != group[still][:-1])
    still = still[is_other]
    return order[still], begin[still]
