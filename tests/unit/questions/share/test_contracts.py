"""Every table has the columns of its contract, with rows and without."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest

from analytics.questions.share.backlog import evaluate_share
from analytics.questions.share.state_topic import (
    PLACE_COLUMNS,
    SNAPSHOT_COLUMNS,
    StateLogs,
    holders,
    prunable,
)
from schemas import table
from tests.support.reference_share_coordinator import ShareRecord
from tests.support.share_leader import random_leader
from tests.unit.questions.share.backlog import decoded, question

TYPES = {
    "string": pl.String(),
    "int": pl.Int32(),
    "bigint": pl.Int64(),
    "boolean": pl.Boolean(),
    "timestamp": pl.Datetime("us", "UTC"),
}
TOPICS = pl.DataFrame({"topic_id": ["topic"], "topic": ["orders"]})


def made(records: list[ShareRecord]) -> dict[str, pl.DataFrame]:
    found = evaluate_share(question(records, ends={("orders", 0): (0, 500)}))
    snapshots, updates = decoded(records)
    held = holders(snapshots.select(list(SNAPSHOT_COLUMNS)))
    places = [each.select(list(PLACE_COLUMNS)) for each in (snapshots, updates)]
    return {
        "share_backlog": found.rows,
        "share_delivery_counts": found.delivery_counts,
        "share_archived_ranges": found.archived,
        "share_faults": found.faults,
        "share_prunable": prunable([held], places, TOPICS, StateLogs()),
    }


def some_records() -> list[ShareRecord]:
    histories = (random_leader(Random(seed), 100) for seed in range(100))
    return next(each.records for each in histories if len(each.truths[-1].archived) > 2)


@pytest.mark.parametrize("records", [[], some_records()], ids=["nothing", "something"])
def test_columns_types_and_nulls_are_those_of_the_contract(records: list[ShareRecord]) -> None:
    for name, rows in made(records).items():
        contract = table(name)
        assert rows.columns == [column.name for column in contract.columns], name
        for column in contract.columns:
            assert rows.schema[column.name] == TYPES[column.type], (name, column.name)
            if not column.nullable:
                assert rows[column.name].null_count() == 0, (name, column.name)
        if records and name != "share_faults":
            assert rows.height
