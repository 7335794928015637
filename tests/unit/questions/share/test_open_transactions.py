"""Which partitions have an open transaction, as the transaction log has it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from analytics.contracts import polars_rows
from analytics.decode.tables import decoded_schema
from analytics.questions.share.held_up import COLUMNS, open_transactions
from schemas import record_types
from tests.unit.questions.share.backlog import BEGIN, time_of

KINDS = {kind.table: kind for kind in record_types("__transaction_state").values()}
SCHEMA = decoded_schema(KINDS["transaction_log"])
ONGOING, PREPARE_COMMIT, COMMITTED = 1, 2, 4
MINUTE = 60_000


def step(
    name: str, status: int | None, since: int = 0, on: dict[str, list[int]] | None = None
) -> tuple[str, dict[str, Any] | None]:
    begun = round(BEGIN.timestamp() * 1000) + since * MINUTE
    if status is None:
        return name, None
    partitions = [{"topic": topic, "partition_ids": ids} for topic, ids in (on or {}).items()]
    return name, {
        "transaction_status": status,
        "transaction_start_timestamp_ms": begun,
        "transaction_partitions": partitions if on is not None else None,
    }


def told(*steps: tuple[str, dict[str, Any] | None]) -> dict[tuple[str, int], Any]:
    rows = [
        {
            "partition": 0,
            "offset": offset,
            "is_tombstone": value is None,
            "key": {"transactional_id": name},
            "value": value,
        }
        for offset, (name, value) in enumerate(steps)
    ]
    schema = pa.schema([SCHEMA.field(name) for name in COLUMNS])
    found = open_transactions(polars_rows(pa.Table.from_pylist(rows, schema))).to_dicts()
    return {
        (each["topic"], each["partition"]): (each["transactional_id"], each["transaction_since"])
        for each in found
    }


def test_the_oldest_open_transaction_of_each_partition_is_told() -> None:
    found = told(
        step("late", ONGOING, 9, {"orders": [0, 1]}),
        step("early", ONGOING, 2, {"orders": [1], "clicks": [4]}),
    )
    assert found == {
        ("orders", 0): ("late", time_of(9)),
        ("orders", 1): ("early", time_of(2)),
        ("clicks", 4): ("early", time_of(2)),
    }


def test_what_is_decided_is_open_until_its_markers_are_written() -> None:
    begun = step("tx", ONGOING, 1, {"orders": [0]})
    decided = step("tx", PREPARE_COMMIT, 1, {"orders": [0]})
    assert told(begun, decided) == {("orders", 0): ("tx", time_of(1))}
    assert told(begun, decided, step("tx", COMMITTED, 1, {})) == {}


def test_what_was_forgotten_is_not_open() -> None:
    assert told(step("tx", ONGOING, 1, {"orders": [0]}), step("tx", None)) == {}
    assert told(step("tx", ONGOING, 1)) == {}
    assert told() == {}
