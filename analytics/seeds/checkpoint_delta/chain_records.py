"""Checkpoints and deltas of one data partition, as columns, and what of its log is not there."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from analytics.dump.files.model import MAX_OFFSET
from schemas.catalog import CHECKPOINT_DELTA, dialect_types

CHECKPOINT, DELTA = 0, 1
TABLES = ("share_checkpoint", "share_delta")
"""Record types in the order of the kinds."""
IDS = tuple(dialect_types(CHECKPOINT_DELTA)[name].ids[0] for name in TABLES)

STATES = pa.list_(
    pa.struct(
        [
            ("base_offset", pa.int64()),
            ("last_offset", pa.int64()),
            ("state", pa.int8()),
            ("delivery_count", pa.int16()),
        ]
    )
)
RECORDS = pa.schema(
    [
        ("offset", pa.int64()),
        ("kind", pa.int8()),
        ("group_id", pa.string()),
        ("checkpoint_epoch", pa.int32()),
        ("back_offset", pa.int64()),  # null in a checkpoint
        ("start_offset", pa.int64()),  # null in a delta
        ("end_offset", pa.int64()),  # likewise
        ("states", STATES),
    ]
)


@dataclass(frozen=True, order=True)
class Lost:
    """Offsets at which there may have been records that cannot be seen.

    Attributes:
        first_offset: The first of them.
        end_offset: Behind the last; `MAX_OFFSET` where that is not known.
        why: In words.
    """

    first_offset: int
    end_offset: int = MAX_OFFSET
    why: str = ""


@dataclass(frozen=True)
class ChainLog:
    """What a data partition holds of the dialect.

    Attributes:
        topic: The topic's name.
        partition: The partition's number.
        records: Ascending by offset; the columns are `RECORDS`.
        topic_id: 22 characters, None where nothing names it.
        log_start_offset: What lies below is not the broker's any more.
        log_end_offset: One more than the last offset there is; None where only records are given.
        lost: What cannot be seen, ascending.
    """

    topic: str
    partition: int
    records: pa.Table = field(default_factory=RECORDS.empty_table)
    topic_id: str | None = None
    log_start_offset: int = 0
    log_end_offset: int | None = None
    lost: tuple[Lost, ...] = ()
