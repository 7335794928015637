"""Logs of a few records as the decoded tables would have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from analytics.questions.usage.key_usage import KnownLogs, ordered
from analytics.questions.usage.records import COMMITS, LogSums, Place, Transactions, records_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.reference_cleaner import Entry

Horizons = tuple[tuple[int, int, int], ...]

TOPIC = "__consumer_offsets"
PLACE = Place(TOPIC, 0)
GROUP = "g"


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


def known_logs(
    log: Sequence[Entry],
    bound: int = 0,
    complete_from: int | None = None,
    horizons: Horizons = (),
    now_ms: int | None = None,
) -> KnownLogs:
    """Return what is known of a log of a few records."""
    complete: Mapping[Place, int] = {} if complete_from is None else {PLACE: complete_from}
    sums = LogSums(Transactions.of(markers(log)), complete)
    sums.add(records_of(TOPIC, COMMITS, commits(log)))
    now = {} if now_ms is None else {PLACE: now_ms}
    return KnownLogs(
        sums.transactions, {PLACE: bound}, complete, sums.since, now, {PLACE: horizons}
    )


def ordered_rows(log: Sequence[Entry], logs: KnownLogs) -> pl.DataFrame:
    """Return the data records of a log by key, whatever order they come in."""
    return ordered(records_of(TOPIC, COMMITS, commits(log)).reverse(), logs)
