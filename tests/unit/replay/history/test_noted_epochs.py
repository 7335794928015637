"""Leader epochs that are noted begin where they began, whichever records are left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.history.partition_history import (
    TABLES,
    coordinator_epochs,
    epochs_seen,
    noted_epochs,
)
from analytics.replay.log.losses import Coverage
from tests.support.decoded_frames import frames_of
from tests.unit.replay.history.test_coordinator_epochs import ELECTED, OFFSETS, at, row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WHERE = ("leader_epoch", "from_offset", "to_offset", "from_timestamp", "to_timestamp", "records")


def epochs(left: Sequence[tuple[int, int]], noted: Mapping[int, int]) -> list[tuple[object, ...]]:
    seen = epochs_seen(frames_of({"offset_commit": [row(OFFSETS, 0, *e) for e in left]}, TABLES))
    said = noted_epochs(Coverage(leader_epochs={(OFFSETS, 0): noted, ("parcels", 0): {0: 0}}))
    return coordinator_epochs(seen, ELECTED.to_frame(), said).select(WHERE).rows()


def test_what_is_noted_of_a_whole_log_changes_nothing() -> None:
    whole = [(0, 0), (1, 0), (2, 1), (3, 1), (4, 4)]
    said = [(0, 0, 1, at(0), at(1), 2), (1, 2, 3, at(2), at(3), 2), (4, 4, None, at(4), None, 1)]
    assert epochs(whole, {}) == epochs(whole, {0: 0, 1: 2, 4: 4}) == said


def test_a_filter_or_the_cleaner_moves_no_beginning_and_takes_the_time_that_it_took() -> None:
    assert epochs([(1, 0), (3, 1)], {0: 0, 1: 2, 4: 4}) == [
        (0, 0, 1, None, at(1), 1),
        (1, 2, 3, None, at(3), 1),
        (4, 4, None, None, None, 0),
    ]


def test_an_epoch_of_which_nothing_is_left_ends_the_one_before() -> None:
    assert epochs([(0, 0)], {0: 0, 1: 2, 4: 4})[0] == (0, 0, 1, at(0), None, 1)


def test_what_is_noted_of_another_line_of_history_is_not_taken() -> None:
    # Epoch 1 began at 2 here, where epoch 0 still wrote at 3.
    assert epochs([(0, 0), (3, 0), (5, 1)], {0: 0, 1: 2})[1][:2] == (1, 5)


def test_a_leader_that_wrote_nothing_has_no_row() -> None:
    assert [each[0] for each in epochs([(0, 1)], {0: 0, 1: 0})] == [1]
    assert pl.DataFrame(epochs([(0, 1)], {0: 0, 1: 0}), orient="row").height == 1
