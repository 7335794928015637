"""What the bytes of batches are, and where the cleaner left delete horizons: made batches."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from analytics.dump.batches.batch_bytes import Horizon, first_horizons
from analytics.dump.records.segment_reader import read_segment
from tests.support.segments import (
    COMMIT,
    Header,
    Made,
    batch,
    control_batch,
    empty_batch,
    joined,
    messages,
    random_segment,
    records,
    wrapper,
)

if TYPE_CHECKING:
    from analytics.dump.batches.batch_bytes import Summary

HEADER = 61


def summary_of(made: list[Made]) -> Summary:
    reader = read_segment(io.BytesIO(joined(made)))
    for _ in reader:
        pass
    return reader.summary


def test_headers_and_records_come_to_the_size_of_the_batches() -> None:
    made = [batch(records(0, 3)), batch(records(3, 1)), empty_batch(4, 9)]
    use = summary_of(made).use
    assert use.headers == 3 * HEADER
    assert use.empty_batches == 1
    assert use.plain == sum(len(each.data) for each in made) - 3 * HEADER
    assert use.control == use.compressed == use.uncompressed == 0


def test_a_plain_message_of_an_old_format_is_a_record_and_no_header() -> None:
    made = [*messages(records(0, 4), magic=1), *messages(records(4, 4), magic=0)]
    use = summary_of(made).use
    assert use.headers == 0
    assert use.plain == sum(len(each.data) for each in made)


@pytest.mark.parametrize(("magic", "around"), [(1, 34), (0, 26)])
def test_around_a_compressed_message_of_an_old_format_there_is_a_header(
    magic: int, around: int
) -> None:
    made = [wrapper(records(0, 8), magic=magic, codec=1)]
    use = summary_of(made).use
    assert use.headers == around
    assert use.compressed == len(made[0].data) - around
    assert use.uncompressed == sum(len(each.data) for each in messages(records(0, 8), magic=magic))


@pytest.mark.parametrize("seed", range(40))
def test_random_segments_come_out_even(seed: int) -> None:
    found = summary_of(random_segment(seed))
    assert found.use.on_disk == found.bytes_in_batches


def with_horizon(base: int, horizon: int | None) -> Made:
    return batch(records(base, 1), Header(delete_horizon=horizon))


def test_a_marker_without_a_horizon_follows_the_last_one_there_can_be() -> None:
    found = summary_of([with_horizon(0, 2**63 - 1), control_batch(1, [COMMIT])]).horizons

    assert first_horizons(found, 10) == [Horizon(2**63 - 1, 0, 1, 1)]


def test_neighbours_with_one_horizon_are_one_stretch_and_markers_without_one_part_them() -> None:
    made = [
        with_horizon(0, 500),
        with_horizon(1, None),
        with_horizon(2, 500),
        with_horizon(3, 700),
        control_batch(4, [COMMIT]),
        with_horizon(5, 700),
        with_horizon(6, None),
    ]
    found = summary_of(made).horizons
    assert first_horizons(found, 10) == [
        Horizon(500, 0, 3, 2),
        Horizon(700, 3, 4, 1),
        Horizon(700, 5, 6, 1),
    ]
    assert first_horizons(found, 2) == [Horizon(500, 0, 3, 2), Horizon(700, 3, 6, 2)]
    assert first_horizons(found, 1) == [Horizon(700, 3, 6, 2)]
