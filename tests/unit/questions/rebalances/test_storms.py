"""Storms, as the plain model finds them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from analytics.questions.rebalances.storms import rebalance_storms
from tests.support.contract_rows import rows_of
from tests.support.plain_storms import Begun, Storm, plain_storms

EPOCH = datetime(2026, 11, 21, tzinfo=UTC)
FEW, MINUTES = 4, 2.0


def epochs_of(groups: dict[str, list[Begun]]) -> pl.DataFrame:
    """Return rows of `group_epochs`; what storms do not look at is null."""
    return rows_of(
        "group_epochs",
        (
            {
                "group_id": group,
                "from_timestamp": EPOCH + timedelta(milliseconds=each.at),
                "from_offset": number,
                "missing_before": each.missing,
            }
            for group, begun in groups.items()
            for number, each in enumerate(sorted(begun))
        ),
    )


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
    return round((when - EPOCH) / timedelta(milliseconds=1))


def test_storms_are_those_of_the_plain_model() -> None:
    groups = random_groups()
    nobody = rows_of("membership_changes")
    found = rebalance_storms(epochs_of(groups), nobody, FEW, MINUTES).to_dicts()
    told = sorted(
        (
            row["group_id"],
            Storm(
                milliseconds(row["from_timestamp"]),
                milliseconds(row["to_timestamp"]),
                row["epochs"],
            ),
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
        seconds = max(60.0, (row["to_timestamp"] - row["from_timestamp"]).total_seconds())
        assert row["per_hour"] == pytest.approx(row["epochs"] / seconds * 3600)
