"""The storm of a real group that flapped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.contracts import contract_frame
from analytics.questions.rebalances.epochs import stored_again
from analytics.questions.rebalances.rebalance_tables import AskedTime, rebalance_tables
from analytics.replay.log.losses import WHOLE
from schemas.evaluation_rules import rebalance_rules
from tests.support.contract_rows import rows_of
from tests.support.replayed_dumps import replayed_dump

ROOT = Path(__file__).parents[4]
DUMP = ROOT / "examples" / "flapping-indexer"
TIMELINE = ROOT / "tests" / "data" / "rebalances" / "flapping-indexer" / "timeline.jsonl"
MAKES = ("groups", "members", "group_epochs", "membership_changes", "assignment_history")
Rows = dict[str, list[dict[str, Any]]]
NO_GENERATIONS = {
    "coordinator_partition": pl.Int32,
    "group_id": pl.String,
    "offset": pl.Int64,
    "leader_epoch": pl.Int32,
    "is_tombstone": pl.Boolean,
    "generation": pl.Int32,
}
"""It is a consumer group."""


@pytest.fixture(scope="module")
def flapping() -> Rows:
    replayed = replayed_dump([DUMP / "broker-1"], "4.3.1", MAKES)
    made = {name: contract_frame(replayed[name], name) for name in MAKES}
    asked = AskedTime(None, None, datetime(2026, 11, 21, 9, 12, 30, tzinfo=UTC), rebalance_rules())
    generations = pl.DataFrame(schema=NO_GENERATIONS)
    progress = rows_of("offset_history").select(
        "group_id", "topic", "partition", pl.col("effective_timestamp").alias("last")
    )
    tables = {**made, "stored_again": stored_again(generations), "progress": progress}
    return {
        name: frame.filter(pl.col("group_id") == "flapping-indexer").to_dicts()
        for name, frame in rebalance_tables(tables, WHOLE, asked).items()
    }


def seen(event: str) -> Iterator[dict[str, Any]]:
    """Yield what the clients of the group saw."""
    for line in TIMELINE.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        if told["event"] == event:
            yield told


def test_a_group_that_flaps_is_named_with_its_members(flapping: Rows) -> None:
    (storm,) = flapping["rebalance_storms"]
    members = {told["member"] for told in seen("assigned")}
    assert storm["members_involved"] == sorted(members)
    assert len(members) == 15
    assert storm["epochs"] == max(told["epoch"] for told in seen("assigned")) == 15
    assert storm["cause"] == "15 joined, 14 left or timed out"
    assert storm["top_client_id"] == "flap-x0"
    assert storm["per_hour"] == 900  # in 43 seconds, which count as a minute


def test_each_rebalance_says_who_came_and_who_went(flapping: Rows) -> None:
    members = {told["actor"]: told["member"] for told in seen("assigned")}
    opened = [told["actor"] for told in seen("opened")]
    rows = sorted(flapping["rebalances"], key=lambda row: row["epoch"])
    assert [row["epoch"] for row in rows] == list(range(1, 16))
    assert rows[0]["joined"] == sorted(members[actor] for actor in opened[:2])
    for number, row in enumerate(rows[1:-1], start=1):
        assert row["joined"] == [members[f"flap-x{number}"]]
        assert row["left"] == [members[f"flap-x{number - 1}"]]
        assert (row["missing_before"], row["stored_again"], row["coordinator_change"]) == (
            0,
            0,
            None,
        )
    assert rows[-1]["joined"] == []
    assert rows[-1]["left"] == [members["flap-x13"]]
    assert all(2000 < row["since_previous_ms"] < 5000 for row in rows[1:])


def test_churn_sums_them_up(flapping: Rows) -> None:
    (churn,) = flapping["group_churn"]
    assert (churn["epochs"], churn["missing"], churn["storms"]) == (15, 0, 1)
    assert (churn["joined"], churn["left"], churn["restarted"]) == (15, 14, 0)
    assert 2.5 < churn["median_seconds_between"] < 3.5
    assert flapping["stalled_members"] == []
