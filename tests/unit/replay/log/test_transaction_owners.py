"""Whose transaction a pending commit is of: id, epoch, partition and state have to fit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.replay.offsets.effective_commits import transaction_owners, with_owner
from tests.support.decoded_frames import frames_of

OFFSETS = "__consumer_offsets"
BEGAN = datetime(2026, 11, 25, tzinfo=UTC)
ONGOING, PREPARE_ABORT, COMPLETE_COMMIT = 1, 3, 4


def transaction(name: str, status: int, epoch: int, *homes: int, began: int = 0) -> dict[str, Any]:
    """Return the last record of a transactional id that has, or had, producer 7."""
    return {
        "topic": "__transaction_state",
        "partition": 0,
        "offset": 0,
        "is_tombstone": False,
        "key": {"transactional_id": name},
        "value": {
            "producer_id": 7,
            "previous_producer_id": -1,
            "next_producer_id": -1,
            "producer_epoch": epoch,
            "transaction_status": status,
            "transaction_start_timestamp_ms": int(BEGAN.timestamp() * 1000) + began,
            "transaction_partitions": [{"topic": OFFSETS, "partition_ids": list(homes)}],
        },
    }


def owner(*transactions: dict[str, Any], epoch: int = 3, home: int = 9) -> dict[str, Any]:
    """Return what is known of a commit of producer 7 that was made a second after `BEGAN`."""
    log = frames_of({"transaction_log": list(transactions)}, ("transaction_log",))
    pending = pl.DataFrame(
        {
            "coordinator_partition": [home],
            "producer_id": [7],
            "producer_epoch": [epoch],
            "commit_timestamp": [BEGAN + timedelta(seconds=1)],
        },
        schema_overrides={"coordinator_partition": pl.Int32, "producer_epoch": pl.Int16},
    )
    (found,) = with_owner(pending, transaction_owners(log["transaction_log"])).to_dicts()
    return {name: found[name] for name in ("transactional_id", "decided", "is_open")}


UNKNOWN = {"transactional_id": None, "decided": None, "is_open": False}


def test_of_two_ids_that_had_a_producer_the_one_whose_transaction_fits_has_the_commit() -> None:
    open_one = transaction("payments", ONGOING, 3, 9)
    other = transaction("audit", ONGOING, 8, 4)
    told = {"transactional_id": "payments", "decided": None, "is_open": True}
    assert owner(open_one, other) == owner(other, open_one) == told


def test_one_that_fits_and_is_decided_says_how_it_ends() -> None:
    told = owner(transaction("payments", PREPARE_ABORT, 3, 9), transaction("audit", ONGOING, 2, 9))
    assert told == {"transactional_id": "payments", "decided": "abort", "is_open": True}


@pytest.mark.parametrize(
    "transactions",
    [
        (transaction("payments", ONGOING, 3, 9), transaction("audit", ONGOING, 3, 9)),
        (transaction("payments", ONGOING, 3, 9), transaction("audit", COMPLETE_COMMIT, 5)),
        (transaction("payments", ONGOING, 2, 9), transaction("audit", ONGOING, 3, 4)),
        (),
    ],
    ids=["both fit", "one may have ended it", "none fits", "no transaction log"],
)
def test_else_nobody_can_tell_whose_it_is(transactions: tuple[dict[str, Any], ...]) -> None:
    assert owner(*transactions) == UNKNOWN


def test_a_single_id_is_named_even_where_its_transaction_is_another_one() -> None:
    told = owner(transaction("payments", ONGOING, 4, 9))
    assert told == {"transactional_id": "payments", "decided": None, "is_open": False}
