"""Storms: as the plain model finds them, and the one of a real group that flapped."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analytics.evaluate.rebalances.storms import rebalance_storms
from analytics.evaluate.rebalances.tables import REBALANCES, AskedTime
from analytics.replay.graph import resolve
from schemas import table
from schemas.evaluation_rules import rebalance_rules
from tests.support.plain_storms import Begun, Storm, plain_storms
from tests.support.replayed_dumps import empty, replayed_dump

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

FLAPPING = Path(__file__).parents[2] / "data" / "rebalances" / "flapping-indexer"
EPOCH = datetime(2026, 11, 21, tzinfo=UTC)
FEW, MINUTES = 4, 2.0
MAKES = ("groups", "members", "group_epochs", "membership_changes", "assignment_history")


def epochs_of(spark: SparkSession, groups: dict[str, list[Begun]]) -> DataFrame:
    """Return rows of `group_epochs`; what storms do not look at is null."""
    names = [column.name for column in table("group_epochs").columns]
    rows = [
        {
            "group_id": group,
            "from_timestamp": EPOCH + timedelta(milliseconds=each.at),
            "from_offset": number,
            "missing_before": each.missing,
        }
        for group, begun in groups.items()
        for number, each in enumerate(sorted(begun))
    ]
    ddl = table("group_epochs").ddl(not_null=False)
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], ddl)


def random_groups() -> dict[str, list[Begun]]:
    chance = random.Random()
    return {
        f"group-{number}": [
            Begun(chance.randrange(0, chance.choice([200, 600, 1200])) * 1000, missing)
            for missing in chance.choices([0, 0, 0, 1, 3], k=chance.randrange(1, 14))
        ]
        for number in range(300)
    }


def milliseconds(when: datetime) -> int:
    return round((when.replace(tzinfo=UTC) - EPOCH) / timedelta(milliseconds=1))


def test_storms_are_those_of_the_plain_model(spark: SparkSession) -> None:
    groups = random_groups()
    nobody = empty(spark, "membership_changes")
    found = rebalance_storms(epochs_of(spark, groups), nobody, FEW, MINUTES).collect()
    told = sorted(
        (
            row.group_id,
            Storm(milliseconds(row.from_timestamp), milliseconds(row.to_timestamp), row.epochs),
        )
        for row in found
    )
    expected = sorted(
        (group, storm)
        for group, begun in groups.items()
        for storm in plain_storms(begun, FEW, MINUTES)
    )
    assert told == expected
    assert len(expected) > 50
    for row in found:
        seconds = max(60.0, (row.to_timestamp - row.from_timestamp).total_seconds())
        assert row.per_hour == pytest.approx(row.epochs / seconds * 3600)


@pytest.fixture(scope="module")
def flapping(spark: SparkSession) -> dict[str, list[Row]]:
    made = replayed_dump(spark, [FLAPPING / "broker-1"], "4.3.1", MAKES)
    asked = AskedTime(None, None, datetime(2026, 11, 21, 9, 12, 30, tzinfo=UTC), rebalance_rules())
    given = {**made, "offset_history": empty(spark, "offset_history"), "asked": asked}
    evaluated = resolve(REBALANCES, given)
    return {
        name: [row for row in evaluated[name].collect() if row.group_id == "flapping-indexer"]
        for name in ("rebalance_storms", "rebalances", "group_churn", "stalled_members")
    }


def seen(event: str) -> Iterator[dict[str, Any]]:
    """Yield what the clients of the group saw."""
    for line in (FLAPPING / "timeline.jsonl").read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        if told["event"] == event:
            yield told


def test_a_group_that_flaps_is_named_with_its_members(flapping: dict[str, list[Row]]) -> None:
    (storm,) = flapping["rebalance_storms"]
    members = {told["member"] for told in seen("assigned")}
    assert storm.members_involved == sorted(members)
    assert len(members) == 15
    assert storm.epochs == max(told["epoch"] for told in seen("assigned")) == 15
    assert storm.cause == "15 joined, 14 left or timed out"
    assert storm.top_client_id == "flap-x0"
    assert storm.per_hour == 900  # in 43 seconds, which count as a minute


def test_each_rebalance_says_who_came_and_who_went(flapping: dict[str, list[Row]]) -> None:
    members = {told["actor"]: told["member"] for told in seen("assigned")}
    opened = [told["actor"] for told in seen("opened")]
    rows = sorted(flapping["rebalances"], key=lambda row: row.epoch)
    assert [row.epoch for row in rows] == list(range(1, 16))
    assert rows[0].joined == sorted(members[actor] for actor in opened[:2])
    for number, row in enumerate(rows[1:-1], start=1):
        assert row.joined == [members[f"flap-x{number}"]]
        assert row.left == [members[f"flap-x{number - 1}"]]
        assert (row.missing_before, row.stored_again, row.coordinator_change) == (0, 0, None)
    assert rows[-1].joined == []
    assert rows[-1].left == [members["flap-x13"]]
    assert all(2000 < row.since_previous_ms < 5000 for row in rows[1:])


def test_churn_sums_them_up(flapping: dict[str, list[Row]]) -> None:
    (churn,) = flapping["group_churn"]
    assert (churn.epochs, churn.missing, churn.storms) == (15, 0, 1)
    assert (churn.joined, churn.left, churn.restarted) == (15, 14, 0)
    assert 2.5 < churn.median_seconds_between < 3.5
    assert flapping["stalled_members"] == []
