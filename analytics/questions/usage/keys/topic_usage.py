"""The table `topic_usage`: what is known of keys, added up by partition, group and record type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.usage.keys.key_fold import (
    ABORTED,
    ABORTED_BYTES,
    ALL_BYTES,
    FIRST_TIME,
    KEY_PLACE,
    LAST_BYTES,
    LAST_IS_TOMBSTONE,
    LAST_OFFSET,
    LAST_TIME,
    MOST_BYTES,
    MOST_METADATA,
    OPEN,
    OPEN_BYTES,
    RECORDS,
    TOMBSTONE_BYTES,
    TOMBSTONES,
    UNCHANGED,
    UNCHANGED_BYTES,
)
from analytics.time_columns import times_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.questions.usage.keys.key_states import KeyStates


_SUMS: Final = (
    *("keys", "records", "bytes", "live_records", "live_bytes"),
    *("superseded_records", "superseded_bytes", "tombstoned_records", "tombstoned_bytes"),
    *("aborted_records", "aborted_bytes", "open_records", "open_bytes"),
    *("tombstones", "standing_tombstones", "standing_tombstone_bytes"),
    *("unchanged_commits", "unchanged_bytes"),
)
BYTES: Final = tuple(name for name in _SUMS if name.endswith("bytes"))
"""Columns of bytes: null where records are archived rows."""


def topic_usage(states: KeyStates, others: pa.Table) -> pa.Table:
    """Return records and bytes by partition, group and record type.

    Of every key the last record that was not aborted, and whose transaction is not open, is live if
    it has a value, and a standing tombstone if it has none. The others are superseded; or, where
    a tombstone stands, and they had a value, tombstoned. So

        records = live + superseded + tombstoned + standing_tombstones + aborted + open

    Args:
        states: What is known of keys.
        others: Records that are in no decoded table (`untabled_usage`).

    Returns:
        `topic`, `partition`, `group_id`, `record_type`, sums of `_SUMS`, `first_timestamp`,
        `last_timestamp`, `max_record_bytes`, `max_metadata_bytes`; the most bytes first.
    """
    rows = states.rows
    order = np.argsort(rows[:, KEY_PLACE], kind="stable")
    rows = rows[order]
    place = rows[:, KEY_PLACE]
    first = np.flatnonzero(np.diff(place, prepend=-1))
    columns = _of_keys(rows)
    found: dict[str, pa.Array] = _named(states, place[first])
    for name in _SUMS:
        found[name] = pa.array(_reduced(np.add, columns[name], first))
    times = np.where(rows[:, FIRST_TIME] < 0, np.iinfo(np.int64).max, rows[:, FIRST_TIME])
    latest = _reduced(np.maximum, rows[:, LAST_TIME], first)
    found["first_timestamp"] = times_of(_reduced(np.minimum, times, first), latest < 0)
    found["last_timestamp"] = times_of(latest, latest < 0)
    found["max_record_bytes"] = pa.array(_reduced(np.maximum, rows[:, MOST_BYTES], first))
    found["max_metadata_bytes"] = pa.array(_reduced(np.maximum, rows[:, MOST_METADATA], first))
    table = _without_keys(pa.table(found), states, place[first])
    if states.lacks_bytes:
        table = _without_bytes(table)
    table = pa.concat_tables([table, others], promote_options="default")
    return table.sort_by([("bytes", "descending"), ("records", "descending"), *_KEY])


_KEY: Final = tuple(
    (name, "ascending") for name in ("topic", "partition", "group_id", "record_type")
)


def _of_keys(rows: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Return what each key adds to each column."""
    counted = rows[:, RECORDS] - rows[:, ABORTED] - rows[:, OPEN]
    counted_bytes = rows[:, ALL_BYTES] - rows[:, ABORTED_BYTES] - rows[:, OPEN_BYTES]
    has_last = rows[:, LAST_OFFSET] >= 0
    stands = has_last & (rows[:, LAST_IS_TOMBSTONE] != 0)
    live = has_last & ~stands
    last_bytes = rows[:, LAST_BYTES]
    values = counted - rows[:, TOMBSTONES]
    value_bytes = counted_bytes - rows[:, TOMBSTONE_BYTES]
    tombstoned = np.where(stands, values, 0)
    tombstoned_bytes = np.where(stands, value_bytes, 0)
    return {
        "keys": np.ones(len(rows), np.int64),
        "records": rows[:, RECORDS],
        "bytes": rows[:, ALL_BYTES],
        "live_records": live.astype(np.int64),
        "live_bytes": np.where(live, last_bytes, 0),
        "superseded_records": counted - has_last - tombstoned,
        "superseded_bytes": counted_bytes - np.where(has_last, last_bytes, 0) - tombstoned_bytes,
        "tombstoned_records": tombstoned,
        "tombstoned_bytes": tombstoned_bytes,
        "aborted_records": rows[:, ABORTED],
        "aborted_bytes": rows[:, ABORTED_BYTES],
        "open_records": rows[:, OPEN],
        "open_bytes": rows[:, OPEN_BYTES],
        "tombstones": rows[:, TOMBSTONES],
        "standing_tombstones": stands.astype(np.int64),
        "standing_tombstone_bytes": np.where(stands, last_bytes, 0),
        "unchanged_commits": rows[:, UNCHANGED],
        "unchanged_bytes": rows[:, UNCHANGED_BYTES],
    }


def _named(states: KeyStates, place: NDArray[np.int64]) -> dict[str, pa.Array]:
    kinds, places = states.kinds.names, states.places.names
    groups = pa.array(states.groups.names, pa.string())
    of_place = [places[each] for each in states.partition_of(place).tolist()]
    return {
        "topic": pa.array([each.topic for each in of_place], pa.string()),
        "partition": pa.array([each.partition for each in of_place], pa.int32()),
        "group_id": groups.take(pa.array(states.group_of(place))),
        "record_type": pa.array(
            [kinds[each].table for each in states.kind_of(place).tolist()],
            pa.string(),
        ),
    }


def _reduced(
    how: np.ufunc, values: NDArray[np.int64], first: NDArray[np.int64]
) -> NDArray[np.int64]:
    found: NDArray[np.int64] = how.reduceat(values, first) if first.size else values[:0]
    return found


def _without_keys(table: pa.Table, states: KeyStates, place: NDArray[np.int64]) -> pa.Table:
    """Without keys there is no last record of one."""
    lacks = pa.array(np.isin(states.kind_of(place), sorted(states.without_keys)))
    for name in _SUMS:
        if name not in {"records", "bytes", "tombstones"}:
            column = pc.if_else(lacks, None, table[name])
            table = table.set_column(table.column_names.index(name), name, column)
    return table


def _without_bytes(table: pa.Table) -> pa.Table:
    for name in (*BYTES, "max_record_bytes"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.nulls(table.num_rows, pa.int64()))
    return table
