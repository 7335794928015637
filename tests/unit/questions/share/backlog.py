"""Questions about the backlog of share groups, made of records of share state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import polars as pl
import pyarrow as pa

from analytics.contracts import polars_rows
from analytics.decode.tables import decoded_schema
from analytics.questions.share.backlog import WHOLE, ShareQuestion, ShareTables
from analytics.questions.share.group_pictures import PHASES
from analytics.questions.share.held_up import STABLE_ENDS
from analytics.questions.share.settings import (
    ASSUMED,
    DELIVERY_LIMIT,
    ISOLATION,
    OFFSET_RESET,
    RECORD_LOCKS,
    Setting,
    ShareSettings,
)
from analytics.questions.share.share_log import COLUMNS, ShareLog, share_log
from analytics.questions.share.state_topic import StateCoverage
from analytics.replay.log.log_times import LogClock
from analytics.replayed.end_offsets import SAMPLES, EndOffsetSamples
from schemas import record_types
from schemas.share_rules import ShareRules, share_rules
from tests.support.reference_share_coordinator import ShareKey, ShareRecord
from tests.support.share_histories import decoded_rows, expected_states

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
TEXT, INT, LONG = pa.string(), pa.int32(), pa.int64()
NAMES = {"topic": "orders"}
SHARES = pa.schema(
    [
        *((name, TEXT) for name in ("group_id", "topic_id", "topic", "phase", "fault", "missing")),
        *((name, INT) for name in ("partition", "state_epoch", "snapshot_epoch", "leader_epoch")),
        *((name, INT) for name in ("delivery_complete_count", "max_delivery_count")),
        ("coordinator_partition", INT),
        *((name, LONG) for name in ("start_offset", "available_count", "acknowledged_count")),
        *((name, LONG) for name in ("archiving_count", "archived_count", "record_offset")),
        ("complete", pa.bool_()),
    ]
)
BATCHES = pa.schema(
    [
        ("group_id", TEXT),
        ("topic_id", TEXT),
        ("partition", INT),
        ("first_offset", LONG),
        ("last_offset", LONG),
        ("delivery_state", pa.int8()),
        ("delivery_count", pa.int16()),
    ]
)
SETTINGS = ShareSettings(
    {
        DELIVERY_LIMIT: Setting(5, ASSUMED),
        RECORD_LOCKS: Setting(2000, ASSUMED),
        ISOLATION: Setting("read_uncommitted", ASSUMED),
        OFFSET_RESET: Setting("latest", ASSUMED),
    }
)


def time_of(record: int) -> datetime:
    """When the record of an offset was written: a minute each."""
    return BEGIN + timedelta(minutes=record)


def decoded(records: Sequence[ShareRecord]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return snapshots and updates as they are read from decoded tables."""
    kinds = {kind.table: kind for kind in record_types("__share_group_state").values()}
    found = []
    for name, rows in decoded_rows(records).items():
        schema = decoded_schema(kinds[name])
        fields = [schema.field(each) for each in COLUMNS]
        timed = [{**row, "timestamp": time_of(row["offset"])} for row in rows]
        found.append(_frame(timed, pa.schema(fields)))
    snapshots, updates = found
    return snapshots, updates


def log_of(records: Sequence[ShareRecord]) -> ShareLog:
    """Return records in order, as columns."""
    return share_log(*decoded(records))


def _frame(rows: list[dict[str, Any]], schema: pa.Schema) -> pl.DataFrame:
    return polars_rows(pa.Table.from_pylist(rows, schema))


def question(
    records: Sequence[ShareRecord],
    *,
    ends: dict[tuple[str, int], tuple[int, int]] | None = None,
    samples: Sequence[tuple[str, int, datetime, int]] = (),
    owned: Sequence[ShareKey] = (),
    groups: Sequence[str] = ("g",),
    has_whole_groups: bool = True,
    settings: ShareSettings = SETTINGS,
    as_of: datetime | None = None,
    rules: ShareRules | None = None,
    phases: Sequence[dict[str, Any]] = (),
    changed: dict[str, Any] | None = None,
    transactions: pl.DataFrame | None = None,
    stable: Mapping[tuple[str, int], int] | None = None,
    coverage: StateCoverage = WHOLE,
    names: Mapping[str, str] = NAMES,
    clocks: Mapping[int, LogClock] = MappingProxyType({}),
    groups_clocks: Mapping[int, LogClock] = MappingProxyType({}),
) -> ShareQuestion:
    """Ask about the state that records add up to; `changed` goes over every row of it."""
    states = expected_states(records, {})
    shares = [
        {
            "group_id": key[0],
            "topic_id": key[1],
            "topic": names.get(key[1]),
            "partition": key[2],
            "phase": "initialized",
            "complete": True,
            "coordinator_partition": partition,
            **{name: value for name, value in state.items() if name in SHARES.names},
            **(changed or {}),
        }
        for (partition, key), state in states.items()
    ]
    batches = [
        {"group_id": key[0], "topic_id": key[1], "partition": key[2], **asdict(each)}
        for (_, key), state in states.items()
        for each in state["batches"]
    ]
    there = [
        {
            "topic": topic,
            "partition": partition,
            "log_start_offset": start,
            "log_end_offset": end,
        }
        for (topic, partition), (start, end) in (ends or {}).items()
    ]
    last = max((each.offset for each in records), default=0)
    sampled = [
        {"topic": topic, "partition": partition, "timestamp": at, "log_end_offset": end}
        for topic, partition, at, end in samples
    ]
    assigned = [
        {"group_id": key[0], "topic_id": key[1], "partition": key[2], "kind": "current"}
        for key in owned
    ]
    return ShareQuestion(
        ShareTables(
            _frame(shares, SHARES),
            _frame(batches, BATCHES),
            pl.DataFrame(
                {"group_id": list(groups), "complete": [has_whole_groups] * len(groups)},
                {"group_id": pl.String, "complete": pl.Boolean},
            ),
            _frame(
                assigned,
                pa.schema(
                    [("group_id", TEXT), ("topic_id", TEXT), ("partition", INT), ("kind", TEXT)]
                ),
            ),
            pl.DataFrame(list(phases), PHASES),
            transactions,
            pl.DataFrame(
                [(topic, partition, end) for (topic, partition), end in (stable or {}).items()],
                STABLE_ENDS,
                orient="row",
            ),
        ),
        log_of(records),
        _frame(
            there,
            pa.schema(
                [
                    ("topic", TEXT),
                    ("partition", INT),
                    ("log_start_offset", LONG),
                    ("log_end_offset", LONG),
                ]
            ),
        ),
        EndOffsetSamples.of(pa.Table.from_pylist(sampled, SAMPLES)),
        pl.Series([], dtype=pl.String),
        settings,
        as_of or time_of(last),
        rules or share_rules(),
        coverage,
        clocks,
        groups_clocks,
    )
