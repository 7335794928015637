"""Which batches of a fetch response are whole, and which are none."""

from __future__ import annotations

import struct

import pytest

from analytics.snapshot.fetched_batches import (
    LARGEST_BATCH,
    FetchedBatches,
    ForeignBatchesError,
    fetched_batches,
)
from tests.unit.snapshot.made_batches import batch


def legacy(offset: int, magic: int = 1) -> bytes:
    """A message of an older format: its offset is that of its last record."""
    return struct.pack(">qiIbbq", offset, 22, 0, magic, 0, 0) + b"\xff" * 8


SIZE = len(batch(0, 1))


def test_batches_that_follow_each_other_lack_nothing() -> None:
    records = batch(10, 3) + batch(13, 1)
    assert fetched_batches(records, 10, 100) == FetchedBatches(2 * SIZE, 10, 13, last_size=SIZE)


def test_the_first_may_begin_below_the_offset_asked_for() -> None:
    assert fetched_batches(batch(10, 5), 12, 100) == FetchedBatches(SIZE, 10, 14, last_size=SIZE)


def test_a_batch_that_is_cut_is_left_to_the_next_fetch() -> None:
    for size in (1, 11, 16, 17, 60, SIZE - 1):
        records = batch(0, 1) + batch(1, 1)[:size]
        assert fetched_batches(records, 0, 100) == FetchedBatches(SIZE, 0, 0, last_size=SIZE)


def test_of_a_first_batch_that_is_cut_it_says_how_much_is_needed() -> None:
    assert fetched_batches(batch(0, 1)[:-1], 0, 100).needed == SIZE
    assert fetched_batches(batch(0, 1)[:5], 0, 100).needed > 0
    assert fetched_batches(b"", 0, 100) == FetchedBatches(0, None, None)


def test_what_begins_at_the_end_is_not_kept_and_what_begins_below_it_whole() -> None:
    records = batch(0, 5) + batch(5, 5) + batch(10, 5)
    assert fetched_batches(records, 0, 7) == FetchedBatches(2 * SIZE, 0, 9, last_size=SIZE)
    assert fetched_batches(batch(20, 1), 5, 20) == FetchedBatches(0, None, None)


@pytest.mark.parametrize(
    "records",
    [
        batch(1, 1),
        batch(0, 1) + batch(2, 1),
        batch(0, 3, count=2),
        batch(0, 1, count=0),
    ],
    ids=["before the first", "between two", "within one", "of an empty one"],
)
def test_it_says_that_records_are_missing(records: bytes) -> None:
    assert fetched_batches(records, 0, 100).has_gaps


def test_messages_of_older_formats_name_their_last_offset_only() -> None:
    found = fetched_batches(legacy(4) + legacy(9, magic=0), 0, 100)
    # So that nobody can say whether records are missing.
    assert (found.first_offset, found.last_offset, found.has_gaps) == (0, 9, True)
    assert fetched_batches(legacy(4) + legacy(9), 0, 9).last_offset == 4


FOREIGN = {
    "of another offset": batch(0, 5),
    "that goes back": batch(20, 5) + batch(22, 1),
    "with an end before its begin": batch(20, -3),
    "of a negative offset": batch(-9, 100),
    "of the last offset there is": batch(2**63 - 1, 2),
    "of an unknown format": batch(20, 1)[:16] + b"\x03" + batch(20, 1)[17:],
    "shorter than its header": batch(20, 1)[:8] + struct.pack(">i", 20) + batch(20, 1)[12:],
    "of no size": batch(20, 1)[:8] + bytes(4) + batch(20, 1)[12:],
    "of a negative size": batch(20, 1)[:8] + b"\xff" * 4 + batch(20, 1)[12:],
    "too large": batch(20, 1)[:8] + struct.pack(">i", LARGEST_BATCH) + batch(20, 1)[12:],
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_batch_of_the_log_is_an_error(name: str) -> None:
    with pytest.raises(ForeignBatchesError, match=r"offset|batch"):
        fetched_batches(FOREIGN[name], 20, 100)
