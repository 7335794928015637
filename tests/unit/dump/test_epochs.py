"""Leader epochs: where a follower would be cut back, as the broker's own protocol finds it."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.dump.batches.headers import Headers
from analytics.dump.batches.walks import walk_chain
from analytics.dump.copies.leadership import EpochLine, are_plausible, epoch_line, truncation_offset
from tests.support.log_dirs import written


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, (0, 10)), (1, (0, 10)), (2, (2, 30)), (7, (7, 50)), (9, (7, 50)), (-1, (-1, 0))],
)
def test_the_end_of_an_epoch_is_where_the_next_one_begins(
    epoch: int, expected: tuple[int, int]
) -> None:
    assert EpochLine(((0, 0), (2, 10), (7, 30)), 50).end_of(epoch) == expected


@pytest.mark.parametrize(
    ("other", "leader", "expected"),
    [
        # The same line, one behind.
        (EpochLine(((0, 0),), 5), EpochLine(((0, 0),), 9), 5),
        # The dead broker wrote on in its own epoch.
        (EpochLine(((0, 0),), 445), EpochLine(((0, 0), (2, 245)), 453), 245),
        # It had been elected once more before it died.
        (EpochLine(((1, 0), (2, 27)), 41), EpochLine(((1, 0), (4, 27)), 142), 27),
        # Nothing was written in the surviving epoch.
        (EpochLine(((1, 0),), 26), EpochLine(((1, 0), (3, 2)), 2), 2),
        # Several steps back: epochs 5 and 3 are known to one side only.
        (EpochLine(((1, 0), (3, 10), (5, 20)), 30), EpochLine(((1, 0), (2, 8), (4, 15)), 40), 8),
        # The leader's log begins after all that the other one holds.
        (EpochLine(((1, 0),), 20), EpochLine(((5, 100),), 200), 20),
        # It begins later than the leader, in an epoch that the leader never saw.
        (EpochLine(((1, 50),), 70), EpochLine(((0, 0), (4, 60)), 90), 50),
        # Formats without epochs.
        (EpochLine((), 20), EpochLine((), 30), 20),
    ],
)
def test_a_follower_is_cut_back_to_the_end_of_the_last_common_epoch(
    other: EpochLine, leader: EpochLine, expected: int
) -> None:
    assert truncation_offset(other, leader) == expected


def test_epochs_of_batches_and_of_the_checkpoint_complete_each_other() -> None:
    line = epoch_line(
        [(0, 0), (3, 12)], np.array([0, 0, 2, 2], np.int32), np.array([4, 6, 8, 10]), 12
    )
    assert line.entries == ((0, 0), (2, 8), (3, 12))
    assert line.latest == 3
    assert [line.at(offset) for offset in (0, 7, 8, 11, 12, 99)] == [0, 0, 2, 2, 3, 3]


def test_batches_without_epochs_say_nothing() -> None:
    line = epoch_line([], np.array([-1, -1], np.int32), np.array([0, 5]), 9)
    assert (line.entries, line.latest) == ((), -1)


def headers_of(*epochs: int) -> Headers:
    content = b"".join(written(number, epoch=epoch) for number, epoch in enumerate(epochs))

    def fill(buffer: memoryview, position: int) -> None:
        buffer[:] = content[position : position + len(buffer)]

    return next(walk_chain(fill, len(content))).headers


@pytest.mark.parametrize(
    ("epochs", "noted", "plausible"),
    [
        ((0, 0, 2, 2), (), True),
        ((0, 0, 2, 2), ((0, 0), (2, 2)), True),
        ((-1, -1, 2), ((2, 2),), True),
        ((0, 5, 0), (), False),
        ((0, 0, 5), ((0, 0),), False),
        ((0, 2, 2), ((0, 0), (2, 2)), False),
        # Below the first note nothing is known.
        ((1, 1, 2), ((2, 2),), True),
    ],
)
def test_epochs_of_batches_grow_and_agree_with_the_notes(
    epochs: tuple[int, ...], noted: tuple[tuple[int, int], ...], plausible: bool
) -> None:
    whole = headers_of(*epochs)
    assert are_plausible([whole], noted) is plausible
    assert are_plausible([whole.take(slice(1)), whole.take(slice(1, 9))], noted) is plausible
