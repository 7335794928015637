"""The state epoch of a share partition whose snapshot is gone: releases give it different ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analytics.replay.graph import needed_for, resolve
from analytics.replay.log.rules import replay_rules
from analytics.replay.state import STATE
from tests.support.broker_state import CutBatch
from tests.support.decoded_frames import frames_of
from tests.support.reference_share_coordinator import ShareRecord, Snapshot, Update
from tests.support.share_histories import decoded_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATE_TABLES = ("share_snapshot", "share_update")


@pytest.mark.parametrize(("release", "epoch"), [("4.0.2", -1), ("4.1.2", 0)])
def test_without_its_snapshot_a_state_has_the_epoch_that_its_release_gives_it(
    spark: SparkSession, release: str, epoch: int
) -> None:
    """Snapshots may lie below the log start: 4.0.2 answered -1 when it had loaded such a log."""
    alone, whole = ("robots", "t", 0), ("robots", "t", 1)
    update = Update(0, 0, 30, -1, (CutBatch(30, 30, 4, 3),))
    records = [
        ShareRecord(0, 0, whole, Snapshot(0, 6, 0, 0, -1, 0, 0, ())),
        ShareRecord(0, 1, whole, update),
        ShareRecord(0, 2, alone, update),
    ]
    decoded = frames_of(spark, decoded_rows(records), STATE_TABLES)
    given = {"cut": decoded, "rules": replay_rules(release)}
    made = resolve(needed_for(STATE, ("share_states",)), given)
    found = {row.partition: row.state_epoch for row in made["share_states"].collect()}
    assert found == {0: epoch, 1: 6}
