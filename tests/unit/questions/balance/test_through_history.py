"""Epochs of a group whose records lie in two partitions of `__consumer_offsets`."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from analytics.questions.balance.through_history import during, numbered
from analytics.replay.log.spans import EPOCH, LIFE

_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def _epochs() -> pl.DataFrame:
    """Return two epochs of one group in each of two partitions."""
    return pl.DataFrame(
        {
            "coordinator_partition": pl.Series([3, 3, 7, 7], dtype=pl.Int32),
            "group_id": ["copied"] * 4,
            "life": [1] * 4,
            "group_type": ["consumer"] * 4,
            "epoch": [1, 2, 1, 2],
            "assignment_epoch": [1, 2, 1, 2],
            "protocol_type": ["consumer"] * 4,
            "protocol": ["uniform"] * 4,
            "partitions_assigned": [1] * 4,
            "partitions_moved": [0] * 4,
            "member_count": [1] * 4,
            "from_offset": [0, 5, 0, 5],
            "from_timestamp": [_TIME] * 4,
            "to_timestamp": [_TIME] * 4,
        }
    )


def test_epochs_of_two_partitions_do_not_share_numbers_nor_members() -> None:
    held = pl.DataFrame(
        {
            "coordinator_partition": pl.Series([3, 7], dtype=pl.Int32),
            "group_id": ["copied"] * 2,
            "life": [1] * 2,
            LIFE: [1, 2],
            "member_id": ["of-3", "of-7"],
            "first_epoch_no": pl.Series([1, 2], dtype=pl.Int32),
            "last_epoch_no": pl.Series([None, None], dtype=pl.Int32),
        }
    )
    epochs = numbered(_epochs(), held)
    found = epochs.join(during(held, epochs), on=EPOCH)
    assert epochs[EPOCH].to_list() == [0, 1, 3, 4]
    assert (found["coordinator_partition"] == found["coordinator_partition_right"]).all()
    assert sorted(found["member_id"]) == ["of-3", "of-3", "of-7"]
