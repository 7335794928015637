"""Logs of a few records as the decoded tables would have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from analytics.questions.usage.cleaning.transaction_ends import TransactionEnds
from analytics.questions.usage.keys.key_states import KeyStates, Place

if TYPE_CHECKING:
    from tests.support.reference_cleaner import Entry

TOPIC = "__consumer_offsets"
PLACE = Place(TOPIC, 0)
GROUP = "g"
NO_OTHERS = pa.table({"records": pa.array([], pa.int64()), "bytes": pa.array([], pa.int64())})


def commits(log: Sequence[Entry], batch_records: int = 1) -> pa.RecordBatch:
    """Return the data records of a log as rows of `offset_commit`; a key is a topic's name."""
    data = [each for each in log if not each.marker]
    key = [{"group": GROUP, "topic": each.key, "partition": 0} for each in data]
    value = [
        None
        if each.value is None
        else {"offset": each.value, "metadata": "m" * each.value, "commit_timestamp": None}
        for each in data
    ]
    key_type = [("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32())]
    value_type = [
        ("offset", pa.int64()),
        ("metadata", pa.string()),
        ("commit_timestamp", pa.timestamp("us", "UTC")),
    ]
    return pa.record_batch(
        {
            "partition": pa.array([PLACE.partition] * len(data), pa.int32()),
            "offset": pa.array([each.offset for each in data], pa.int64()),
            "timestamp": pa.array(
                [each.offset * 1_000_000 for each in data], pa.timestamp("us", "UTC")
            ),
            "record_type": pa.array([1] * len(data), pa.int16()),
            "is_tombstone": pa.array([each.value is None for each in data], pa.bool_()),
            "is_transactional": pa.array([each.producer >= 0 for each in data], pa.bool_()),
            "producer_id": pa.array([each.producer for each in data], pa.int64()),
            "batch_offset": pa.array(
                [each.offset // batch_records * batch_records for each in data], pa.int64()
            ),
            "record_bytes": pa.array([each.size for each in data], pa.int32()),
            "value": pa.array(value, pa.struct(value_type)),
            "key": pa.array(key, pa.struct(key_type)),
        }
    )


def markers(log: Sequence[Entry]) -> pa.Table:
    """Return the markers of a log as rows of `control_markers`."""
    found = [each for each in log if each.marker]
    return pa.table(
        {
            "topic": pa.array([TOPIC] * len(found), pa.string()),
            "partition": pa.array([PLACE.partition] * len(found), pa.int32()),
            "offset": pa.array([each.offset for each in found], pa.int64()),
            "producer_id": pa.array([each.producer for each in found], pa.int64()),
            "control_type": pa.array([each.marker for each in found], pa.string()),
            "record_bytes": pa.array([each.size for each in found], pa.int32()),
        }
    )


def states_of(log: Sequence[Entry], bound: int = 0, cut: int | None = None) -> KeyStates:
    """Return what is known of the keys of a log that comes in two pieces."""
    states = KeyStates({PLACE: bound}, TransactionEnds.of(markers(log)))
    rows = commits(log)
    cut = rows.num_rows // 2 if cut is None else min(cut, rows.num_rows)
    for piece in (rows.slice(0, cut), rows.slice(cut)):
        states.add(TOPIC, "offset_commit", piece)
    return states
