"""Storms, as the plain model finds them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.dump.inspection.found_losses import Loss
from analytics.questions.rebalances.epochs import rebalance_storms
from analytics.replay.log.losses import Coverage
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


def test_a_storm_of_which_records_may_be_gone_is_marked() -> None:
    begun = [Begun(each * 1000, 0) for each in range(5)]
    epochs = epochs_of({"g": begun}).with_columns(coordinator_partition=pl.lit(4, pl.Int32))
    during, after = EPOCH + timedelta(seconds=2), EPOCH + timedelta(hours=2)

    def came(at: datetime) -> pl.DataFrame:
        row = {"group_id": "g", "at": at, "change": "joined", "member_id": "m"}
        return rows_of("membership_changes", [row])

    def missing(epochs: pl.DataFrame, *more: Any) -> tuple[bool, str | None]:
        nobody = rows_of("membership_changes")
        (row,) = rebalance_storms(epochs, nobody, FEW, MINUTES, *more).to_dicts()
        return row["complete"], row["missing"]

    assert missing(epochs) == (True, None)
    assert missing(epochs, came(after)) == (True, None)
    assert missing(epochs, came(during))[1] == (
        "whether members came in it or before cannot be told: earlier ones may be compacted"
    )
    compacted = epochs.with_columns(missing_is_compacted=pl.col("from_offset") == 3)
    assert missing(compacted) == (False, "records before one of its epochs may be compacted")
    key = ("__consumer_offsets", 4)
    for first, end, lacks in ((2, 3, True), (7, 9, False)):
        losses = {key: [Loss(first, end, "lost")]}
        coverage = Coverage(complete_from={key: end}, losses=losses)
        assert missing(epochs, None, coverage)[0] is not lacks
