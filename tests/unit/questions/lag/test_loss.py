"""When retention overtakes what is left to read: by hand, and against a broker that deletes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analytics.questions.lag.retention import (
    AT_LEAST,
    AT_MOST,
    ESTIMATED,
    EXACT,
    NEVER,
    NO_GROWTH,
    NO_SEGMENTS,
    NO_TIMES,
    NOT_LOCAL,
    UNKNOWN,
    TopicRetention,
    retention_frame,
    with_losses,
)
from tests.support.reference_retention import Segment, is_there

NOW = 1_700_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR


Files = list[tuple[int, int, int | None, bool]]
"""Of each segment the base offset, the size, the newest record known, and whether it is that."""


def log(*files: tuple[int, int, int], unsure: tuple[int, ...] = ()) -> Files:
    """Return files of a base offset, a size, and a newest record so many hours before now."""
    return [
        (base, size, NOW - age * HOUR if age >= 0 else None, place not in unsure)
        for place, (base, size, age) in enumerate(files)
    ]


def segments_of(files: Files, topic: str = "t") -> pl.DataFrame:
    names = ("base_offset", "size_bytes", "largest_timestamp", "is_largest")
    at = pl.Datetime("us", "UTC")
    types = dict(zip(names, (pl.Int64, pl.Int64, pl.Int64, pl.Boolean), strict=True))
    return pl.DataFrame(files, types, orient="row").with_columns(
        pl.lit(topic).alias("topic"),
        pl.lit(0, pl.Int32).alias("partition"),
        (pl.col("largest_timestamp") * 1000).cast(at),
    )


@dataclass(frozen=True)
class Loss:
    """When a record is deleted, as rows say it."""

    bound: str
    at_ms: int | None
    by: str | None
    basis: str | None


def loss_of(
    position: int, of: Files | None, kept: TopicRetention, now: int, start: int | None = 0
) -> Loss:
    row = pl.DataFrame(
        {
            "topic": ["t"],
            "partition": pl.Series([0], dtype=pl.Int32),
            "committed_offset": [position],
            "log_start_offset": pl.Series([start], dtype=pl.Int64),
            "records_to_read": [1],
        }
    )
    retention = retention_frame({"t": kept})
    rows = with_losses(row, segments_of(of or []), retention, now, is_end=True)
    bound, in_ms, by, basis = rows.select(
        "loss_in_bound", "loss_in_ms", "loss_by", "loss_basis"
    ).row(0)
    return Loss(bound, None if in_ms is None else now + in_ms, by, basis)


def found(position: int, of: Files | None, ms: int | None = DAY, size: int | None = None) -> Any:
    loss = loss_of(position, of, TopicRetention(ms, size, "said"), NOW)
    hours = None if loss.at_ms is None else (loss.at_ms - NOW) / HOUR
    return loss.bound, hours, loss.by


THREE = log((0, 100, 20), (50, 100, 10), (90, 100, 0))


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        # The newest record of its segment is 20 hours old: in four it is a day.
        (0, (EXACT, 4, "time")),
        (49, (EXACT, 4, "time")),
        (50, (EXACT, 14, "time")),
        # The segment that is written may get newer ones.
        (90, (AT_LEAST, 24, "time")),
        (500, (AT_LEAST, 24, "time")),
    ],
)
def test_a_segment_goes_once_its_newest_record_is_too_old(position: int, expected: Any) -> None:
    assert found(position, THREE) == expected


def test_a_segment_waits_for_those_before_it() -> None:
    assert found(50, log((0, 100, 3), (50, 100, 10), (90, 100, 0))) == (EXACT, 21, "time")


def test_a_record_that_may_be_newer_makes_it_a_bound() -> None:
    assert found(50, log((0, 1, 20), (50, 1, 10), (90, 1, 0), unsure=(0,)))[0] == AT_LEAST


def test_files_that_the_dump_lacks_go_first() -> None:
    of = log((10, 100, 20), (50, 100, 10), (90, 100, 0))
    kept = TopicRetention(DAY)

    assert loss_of(10, of, kept, NOW, 10).bound == EXACT
    assert loss_of(10, of, kept, NOW, 3).bound == AT_LEAST
    assert loss_of(10, of, kept, NOW, None).bound == AT_LEAST


def test_by_size_what_lies_after_a_segment_counts() -> None:
    # 200 bytes lie after the first one: it is due.
    assert found(0, THREE, None, 200) == (EXACT, 0, "size")
    # The log grew by 200 bytes in 20 hours; 100 more are needed.
    assert found(0, THREE, None, 300) == (ESTIMATED, 10, "size")
    assert found(50, THREE, None, 200) == (ESTIMATED, 10, "size")
    assert found(0, log((0, 100, 0)), None, 300) == (UNKNOWN, None, None)


def test_what_comes_first_counts() -> None:
    assert found(0, THREE, DAY, 200) == (EXACT, 0, "size")
    assert found(50, THREE, DAY, 200) == (ESTIMATED, 10, "size")
    # By size only later, at today's growth; nobody knows tomorrow's.
    assert found(0, THREE, DAY, 300) == (AT_MOST, 4, "time")


@pytest.mark.parametrize(
    ("of", "position", "kept", "bound", "basis"),
    [
        (THREE, 0, TopicRetention(said="compacted"), NEVER, "compacted"),
        (THREE, 0, TopicRetention(why_unknown="why"), UNKNOWN, "why"),
        (None, 0, TopicRetention(DAY), UNKNOWN, NO_SEGMENTS),
        (log((10, 1, 1)), 5, TopicRetention(DAY), UNKNOWN, NOT_LOCAL),
        (log((0, 1, -1), (9, 1, 1)), 3, TopicRetention(DAY), UNKNOWN, NO_TIMES),
        (log((0, 1, 1)), 3, TopicRetention(size=9), UNKNOWN, NO_GROWTH),
    ],
)
def test_what_is_not_known_is_said(
    of: Files | None, position: int, kept: TopicRetention, bound: str, basis: str
) -> None:
    loss = loss_of(position, of, kept, NOW)
    assert (loss.bound, loss.at_ms, loss.basis) == (bound, None, basis)


FILES = st.lists(
    st.tuples(st.integers(1, 30), st.integers(1, 50), st.integers(0, 100)), min_size=1, max_size=6
)


@given(
    files=FILES,
    position=st.integers(0, 200),
    ms=st.one_of(st.none(), st.integers(0, 120)),
    size=st.one_of(st.none(), st.integers(0, 150)),
    now=st.integers(0, 120),
)
def test_a_broker_that_is_written_no_more_deletes_no_earlier_than_said(
    files: list[tuple[int, int, int]],
    position: int,
    ms: int | None,
    size: int | None,
    now: int,
) -> None:
    segments, base = [], 0
    for length, bytes_, newest in files:
        segments.append(Segment(base, bytes_, newest))
        base += length
    assume(position < base)
    assume(is_there(position, segments, now, ms, None))
    of: Files = [(each.base, each.size, each.newest, True) for each in segments]
    loss = loss_of(position, of, TopicRetention(ms, size), now)
    is_due = not is_there(position, segments, now, ms, size)
    gone = next(
        (at for at in range(now, 400) if not is_there(position, segments, at, ms, size)), None
    )
    if loss.bound == NEVER:
        assert gone is None
    elif loss.bound == EXACT and loss.by == "size":
        assert is_due
    elif loss.bound in {EXACT, AT_MOST}:
        assert loss.at_ms is not None
        # A record is too old a millisecond after it is as old as retention allows.
        assert gone is not None
        assert gone <= loss.at_ms + 1
        assert loss.bound == AT_MOST or gone == loss.at_ms + 1
    elif loss.bound == AT_LEAST and not is_due:
        assert loss.at_ms is not None
        assert gone is None or gone >= loss.at_ms
    if is_due and size is not None and size > 0:
        assert loss.bound == EXACT


def test_files_of_a_log_are_those_of_its_partition_in_order() -> None:
    """Whatever lies between them, and whatever order they come in."""
    mine, other = segments_of(THREE), segments_of(log((0, 9, 0), (7, 9, 0)), "u")
    mixed = pl.concat([mine[2], other[1], mine[0], other[0], mine[1]])
    rows = pl.DataFrame(
        {
            "topic": ["u", "t"],
            "partition": pl.Series([0, 0], dtype=pl.Int32),
            "committed_offset": [3, 50],
            "log_start_offset": [0, 0],
            "records_to_read": [1, 1],
        }
    )
    kept = retention_frame({each: TopicRetention(DAY) for each in "tu"})
    told = with_losses(rows, mixed, kept, NOW, is_end=True)["loss_in_ms"].to_list()

    assert told == [24 * HOUR, 14 * HOUR]
