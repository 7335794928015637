"""What the state of a share partition is made from, and what it is made into, as Arrow columns."""

from __future__ import annotations

import pyarrow as pa

from analytics.time_columns import TIMESTAMP

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
