"""The state epoch of a share partition whose snapshot is gone: releases give it different ones."""

from __future__ import annotations

import pytest

from analytics.replay.log.rules import replay_rules
from analytics.replay.share_fold import share_states
from tests.support.broker_state import CutBatch
from tests.support.decoded_frames import frames_of
from tests.support.reference_share_coordinator import ShareRecord, Snapshot, Update
from tests.support.share_histories import decoded_rows

STATE_TABLES = ("share_snapshot", "share_update")


@pytest.mark.parametrize(("release", "epoch"), [("4.0.2", -1), ("4.1.2", 0)])
def test_without_its_snapshot_a_state_has_the_epoch_that_its_release_gives_it(
    release: str, epoch: int
) -> None:
    """Snapshots may lie below the log start: 4.0.2 answered -1 when it had loaded such a log."""
    alone, whole = ("robots", "t", 0), ("robots", "t", 1)
    update = Update(0, 0, 30, -1, (CutBatch(30, 30, 4, 3),))
    records = [
        ShareRecord(0, 0, whole, Snapshot(0, 6, 0, 0, -1, 0, 0, ())),
        ShareRecord(0, 1, whole, update),
        ShareRecord(0, 2, alone, update),
    ]
    decoded = frames_of(decoded_rows(records), STATE_TABLES)
    states = share_states(decoded, replay_rules(release).share_epoch_without_snapshot)
    assert dict(states.select("partition", "state_epoch").iter_rows()) == {0: epoch, 1: 6}
