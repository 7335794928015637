"""Pending commits where the log cleaner has been: open only where the transaction log says so.

There a missing offset does not show that a marker is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest

from analytics.replay.log.losses import Coverage
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.offset_state import committed_offsets, pending_offsets
from tests.support.decoded_frames import frames_of, named_rows

OFFSETS = "__consumer_offsets"
AT = 1_700_000_000_000
ONGOING, PREPARE_COMMIT, COMPLETE_ABORT = 1, 2, 5
CLEANED = Coverage(uncompacted_from={(OFFSETS, 0): 10, (OFFSETS, 1): 4})


@dataclass(frozen=True)
class Transaction:
    """What the transaction log has last of producer 7."""

    status: int = ONGOING
    epoch: int = 0
    began: int = AT
    partitions: tuple[int, ...] = (0, 1)


def replayed(
    transaction: Transaction | None, coverage: Coverage = CLEANED
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Commit 1 and, pending, 5 in partitions 0 and 1; return what is committed, and pending."""
    rows: dict[str, list[dict[str, Any]]] = {
        "offset_commit": [
            {
                "topic": OFFSETS,
                "partition": partition,
                "offset": offset,
                "leader_epoch": 0,
                "producer_id": producer,
                "producer_epoch": min(producer, 0),
                "is_transactional": producer >= 0,
                "is_tombstone": False,
                "key": {"group": "g", "topic": "t", "partition": 0},
                "value": {
                    "offset": committed,
                    "leader_epoch": -1,
                    "metadata": "",
                    "commit_timestamp": AT + offset,
                    "expire_timestamp": None,
                    "topic_id": None,
                },
            }
            for partition in (0, 1)
            for offset, committed, producer in ((3, 1, -1), (5, 5, 7))
        ]
    }
    if transaction is not None:
        rows["transaction_log"] = [
            {
                "topic": "__transaction_state",
                "partition": 0,
                "offset": 0,
                "is_tombstone": False,
                "key": {"transactional_id": "tx"},
                "value": {
                    "producer_id": 7,
                    "previous_producer_id": -1,
                    "next_producer_id": -1,
                    "producer_epoch": transaction.epoch,
                    "transaction_status": transaction.status,
                    "transaction_start_timestamp_ms": transaction.began,
                    "transaction_partitions": [
                        {"topic": OFFSETS, "partition_ids": list(transaction.partitions)}
                    ],
                },
            }
        ]
    decoded = frames_of(rows, ("offset_commit", "control_markers", "transaction_log"))
    rules = replay_rules("4.3")
    pending = pending_offsets(decoded, rules, coverage)
    return by_home(committed_offsets(decoded, rules, None, coverage, pending)), by_home(pending)


def by_home(frame: pl.DataFrame) -> dict[int, Any]:
    return {row.coordinator_partition: row for row in named_rows(frame)}


@pytest.mark.parametrize(
    "transaction",
    [Transaction(), Transaction(began=AT + 5), Transaction(PREPARE_COMMIT, epoch=1)],
    ids=["ongoing", "began with the commit", "decided"],
)
def test_it_is_open_where_the_transaction_log_says_so(transaction: Transaction) -> None:
    committed, pending = replayed(transaction)
    assert {each.complete for each in pending.values()} == {True}
    assert {each.complete for each in committed.values()} == {True}


@pytest.mark.parametrize(
    "transaction",
    [
        None,
        Transaction(COMPLETE_ABORT),
        Transaction(epoch=1),
        Transaction(began=AT + 6),
        Transaction(partitions=(1,)),
    ],
    ids=["no transaction log", "ended", "a later epoch", "a later one", "of another partition"],
)
def test_else_nobody_can_tell_where_the_cleaner_has_been(transaction: Transaction | None) -> None:
    committed, pending = replayed(transaction)
    assert (pending[0].complete, committed[0].complete) == (False, False)
    assert "its marker may be missing" in pending[0].missing
    assert committed[0].missing.startswith("the commit in record 5 may have replaced it: ")
    # No record is missing from offset 4 of the other partition on: its marker would be there.
    assert (pending[1].complete, committed[1].complete) == (True, True)


def test_nothing_is_in_doubt_where_nothing_was_taken() -> None:
    committed, pending = replayed(None, Coverage())
    assert {each.complete for each in (*pending.values(), *committed.values())} == {True}
